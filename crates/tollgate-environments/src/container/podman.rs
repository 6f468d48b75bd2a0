//! Podman, with storage, state and cgroups that only this container uses.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

use super::{Bundle, Order, PROGRAM, WORK, Words, cgroups, joined, system};
use crate::commands;
use crate::error::{EnvironmentError, plainly, unusable};
use crate::prepared::{Prepared, Undo};
use crate::seccomp::{Seccomp, file_for};

/// For unprivileged users, Podman also writes to the home directory: this one.
const USER: &str = "u";
const CONFIGURATION: &str = "containers.conf";
/// File locks in the private directory, instead of one shared memory for all containers of a user: a podman that is killed
/// while it holds a lock there blocks every other one (containers.conf(5), `lock_type`).
const OWN_LOCKS: &str = "[engine]\nlock_type = \"file\"\n";

pub(super) fn prepare(podman: &Path, order: &Order<'_>) -> Result<Prepared, EnvironmentError> {
    let bundle = Bundle::make(order)?;
    make_home(order.private)?;
    let is_root = rustix::process::geteuid().is_root();
    let mut run = of_state(podman, order);
    run.add([
        "run",
        "--rm",
        "--replace",
        "--interactive",
        "--network=none",
        "--log-driver=none",
        "--no-hosts",
    ]);
    run.option("--name", &order.id);
    if is_root {
        // Its monitor outlives it, and gets a cgroup beside the container's.
        run.option("--cgroup-parent", format!("/{}", order.id));
    }
    // Podman raises limits to its own defaults, which a process without CAP_SYS_RESOURCE may not do.
    for (name, resource, usual) in [("nofile", Resource::Nofile, 1 << 20), ("nproc", Resource::Nproc, 32768)]
    {
        let most = getrlimit(resource).maximum.map_or(usual, |most| most.min(usual));
        run.option("--ulimit", format!("{name}={most}:{most}"));
    }
    match order.seccomp {
        Seccomp::Default => {}
        Seccomp::None => drop(run.add(["--security-opt=seccomp=unconfined"])),
        Seccomp::File(file) => {
            let file = file_for("podman", file)?;
            run.option("--security-opt", joined(&[OsStr::new("seccomp="), file.as_os_str()]));
        }
    }
    run.add(["--tmpfs=/tmp:rw,nosuid,nodev,mode=1777"]);
    for directory in system::directories() {
        run.option("--volume", volume(Path::new(directory), directory, "ro"));
    }
    run.option("--volume", volume(order.program, PROGRAM, "ro"));
    run.option("--volume", volume(&bundle.work, WORK, "rw"));
    run.add(["--rootfs"]).add([&bundle.root]).add(&order.inside);
    let mut undo = vec![Undo::Unmount(order.private.to_owned())];
    if is_root {
        undo.extend(cgroups::named(&order.id));
    }
    if !is_root {
        // Ends the process that holds the user namespace (podman-system-migrate(1)).
        undo.push(Undo::Program(of_state(podman, order).add(["system", "migrate"]).done()));
    }
    let remove = of_state(podman, order).add(["rm", "--force", "--time=0", "--ignore", &order.id]).done();
    undo.push(Undo::Program(remove));
    Ok(Prepared { command: run.done(), undo, ..Prepared::default() })
}

fn of_state(podman: &Path, order: &Order<'_>) -> Words {
    let mut words = of_user(podman, order.private);
    // --runroot takes a path of at most 50 characters.
    for (option, name) in [("--root", "podman"), ("--runroot", "r"), ("--tmpdir", "t")] {
        words.option(option, order.private.join(name));
    }
    // Uses neither systemd nor its journal.
    words.add(["--cgroup-manager=cgroupfs", "--events-backend=none"]);
    // If both are installed, the default may be crun, which refuses cgroups in hybrid mode.
    if let Some(runc) = commands::find("runc") {
        words.option("--runtime", runc);
    }
    words
}

/// A bind mount: `FROM:TO:OPTIONS`.
pub(super) fn volume(from: &Path, to: &str, options: &str) -> std::ffi::OsString {
    joined(&[from.as_os_str(), OsStr::new(":"), OsStr::new(to), OsStr::new(":"), OsStr::new(options)])
}

/// Configures Podman in the private directory. Unprivileged users get a home there too, since podman always writes to it.
fn of_user(podman: &Path, private: &Path) -> Words {
    let mut words = Words(Vec::new());
    if let Some(env) = commands::find("env") {
        let user = private.join(USER);
        words.add([&env]);
        if !rustix::process::geteuid().is_root() {
            words.add(["-u", "XDG_CONFIG_HOME", "-u", "XDG_DATA_HOME"]);
            words.option("HOME", &user).option("XDG_RUNTIME_DIR", &user);
        }
        words.option("CONTAINERS_CONF", user.join(CONFIGURATION));
    }
    words.add([podman]);
    words
}

fn make_home(private: &Path) -> Result<(), EnvironmentError> {
    let user = private.join(USER);
    let made = fs::create_dir_all(&user).and_then(|()| fs::write(user.join(CONFIGURATION), OWN_LOCKS));
    made.map_err(|error| unusable!("{}: {}", user.display(), plainly(error)))
}

pub(super) fn version(
    podman: &Path,
    private: &Path,
    stop: &dyn Fn() -> bool,
) -> Result<String, EnvironmentError> {
    make_home(private)?;
    let words = of_user(podman, private).add(["--version"]).done();
    let (program, arguments) = words.split_first().ok_or_else(|| unusable!("there is no command"))?;
    commands::run(Path::new(program), arguments, stop)
}
