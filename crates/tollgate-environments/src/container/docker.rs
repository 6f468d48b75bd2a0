//! Docker: its daemon makes the container, from an image without files that is imported for it.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::podman::volume;
use super::{Order, PROGRAM, WORK, Words, joined, system};
use crate::commands;
use crate::error::{EnvironmentError, plainly, unusable};
use crate::prepared::{Prepared, Undo};
use crate::seccomp::{Seccomp, file_for};

/// Socket of the daemon, unless DOCKER_HOST names another.
const SOCKET: &str = "/var/run/docker.sock";
/// End mark of a tar archive: on its own, an archive without files.
const EMPTY: [u8; 1024] = [0; 1024];
/// `docker --host=… ARCHIVE IMAGE WORDS…`: imports the image if it is missing, then executes docker with the words.
const IMPORT_AND_RUN: &str = "c=$0 h=$1; \"$c\" \"$h\" image inspect \"$3\" >/dev/null 2>&1 || \
    \"$c\" \"$h\" import \"$2\" \"$3\" >/dev/null || exit; shift 3; exec \"$c\" \"$h\" \"$@\"";

pub(super) fn prepare(docker: &Path, order: &Order<'_>) -> Result<Prepared, EnvironmentError> {
    let of_daemon = daemon(docker)?;
    let words = || Words(of_daemon.clone());
    let work = order.work()?;
    let archive = order.directory("docker")?.join("empty.tar");
    fs::write(&archive, EMPTY).map_err(|error| unusable!("{}: {}", archive.display(), plainly(error)))?;
    // Image names have no capital letters.
    let image = order.id.to_ascii_lowercase();
    let mut run = Words(Vec::new());
    run.add([
        "run",
        "--rm",
        "--interactive",
        "--network=none",
        "--log-driver=none",
        "--pull=never",
        "--read-only",
    ]);
    run.option("--name", &order.id);
    match order.seccomp {
        Seccomp::Default => {}
        Seccomp::None => drop(run.add(["--security-opt=seccomp=unconfined"])),
        Seccomp::File(file) => {
            let file = file_for("docker", file)?;
            run.option("--security-opt", joined(&[OsStr::new("seccomp="), file.as_os_str()]));
        }
    }
    run.add(["--tmpfs=/tmp:rw,nosuid,nodev,mode=1777"]);
    for directory in system::directories() {
        run.option("--volume", volume(Path::new(directory), directory, "ro"));
    }
    run.option("--volume", volume(order.program, PROGRAM, "ro"));
    run.option("--volume", volume(&work, WORK, "rw"));
    run.add([image.as_str()]).add(&order.inside);
    let undo = vec![
        Undo::Program(words().add(["image", "rm", "--force", &image]).done()),
        Undo::Program(words().add(["rm", "--force", &order.id]).done()),
    ];
    // A single command, so that removing the image is registered before the image is made.
    let shell = commands::find("sh").ok_or_else(|| unusable!("there is no shell (sh)"))?;
    let mut command = Words::new(&shell);
    command.add(["-c", IMPORT_AND_RUN]).add(&of_daemon);
    command.add([archive.as_os_str(), OsStr::new(&image)]).add(run.done());
    Ok(Prepared { command: command.done(), undo, ..Prepared::default() })
}

fn daemon(docker: &Path) -> Result<Vec<std::ffi::OsString>, EnvironmentError> {
    let socket = socket()?;
    UnixStream::connect(&socket).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            unusable!("no daemon answers at {} (docker)", socket.display())
        }
        ErrorKind::PermissionDenied => {
            unusable!("you may not use the daemon at {} (docker); its group and root may", socket.display())
        }
        _ => unusable!("{}: {}", socket.display(), plainly(error)),
    })?;
    let mut words = Words::new(docker);
    words.option("--host", joined(&[OsStr::new("unix://"), socket.as_os_str()]));
    Ok(words.done())
}

fn socket() -> Result<PathBuf, EnvironmentError> {
    let Some(host) = std::env::var_os("DOCKER_HOST").filter(|host| !host.is_empty()) else {
        return Ok(SOCKET.into());
    };
    let host = host.to_string_lossy().into_owned();
    host.strip_prefix("unix://").map(PathBuf::from).ok_or_else(|| {
        unusable!("DOCKER_HOST is {host}, another machine's daemon; tollgate uses only this machine's (unix://SOCKET)")
    })
}

pub(super) fn version(docker: &Path, stop: &dyn Fn() -> bool) -> Result<String, EnvironmentError> {
    let mut words = Words(daemon(docker)?);
    words.add(["version", "--format", "Docker version {{.Server.Version}}"]);
    commands::run(docker, &words.done()[1..], stop)
}
