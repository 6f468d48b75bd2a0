//! systemd-nspawn: a container without systemd's manager, registered nowhere.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Bundle, Order, PROGRAM, WORK, Words, cgroups, joined, system};
use crate::commands;
use crate::error::{EnvironmentError, plainly, unusable};
use crate::prepared::{Prepared, Undo};
use crate::seccomp::{Seccomp, takes_no_file};

/// Directory of nspawn's files about running containers.
const KEPT: &str = "/run/systemd/nspawn";
/// Makes and enters the cgroups that come first, then executes the program after `--`.
const ENTER: &str = "while [ \"$1\" != -- ]; do mkdir \"$1\" && echo $$ >\"$1/cgroup.procs\"; shift; done 2>/dev/null; shift; exec \"$@\"";
/// Longest name of a container in characters; the name is its host name too (hostname(7)).
const MAX_NAME: usize = 63;

pub(super) fn prepare(nspawn: &Path, order: &Order<'_>) -> Result<Prepared, EnvironmentError> {
    if !rustix::process::geteuid().is_root() {
        return Err(unusable!("needs root"));
    }
    let bundle = Bundle::make(order)?;
    // Identifiers differ at their end.
    let name = order.id.get(order.id.len().saturating_sub(MAX_NAME)..).unwrap_or(&order.id);
    let name = name.trim_start_matches('-');
    // nspawn moves itself and the container to cgroups below the one that it starts in. Other containers would share that, so each has its own.
    let cgroups = cgroups::below_own(&order.id);
    let shell = commands::find("sh").ok_or_else(|| unusable!("there is no shell (sh)"))?;
    let mut words = Words::new(&shell);
    words.add(["-c", ENTER, "sh"]).add(&cgroups).add(["--"]).add([nspawn]);
    words.add(["--quiet", "--settings=no", "--register=no", "--keep-unit", "--as-pid2", "--pipe"]);
    words.add(["--private-network", "--link-journal=no", "--resolv-conf=off", "--timezone=off"]);
    words.option("--machine", name).option("--directory", &bundle.root);
    let bound = |from: &Path, to: &str| joined(&[from.as_os_str(), OsStr::new(":"), OsStr::new(to)]);
    for directory in system::directories() {
        words.option("--bind-ro", bound(Path::new(directory), directory));
    }
    words.option("--bind-ro", bound(order.program, PROGRAM)).option("--bind", bound(&bundle.work, WORK));
    words.add(&order.inside);
    let variables = match order.seccomp {
        // nspawn's own filter is a list of allowed calls.
        Seccomp::Default => Vec::new(),
        Seccomp::None => vec![(OsString::from("SYSTEMD_SECCOMP"), OsString::from("0"))],
        Seccomp::File(_) => return Err(takes_no_file()),
    };
    let mut undo = vec![Undo::Unmount(order.private.join(&order.id))];
    undo.extend(kept(name, &bundle.root)?);
    undo.extend(cgroups.into_iter().map(Undo::Cgroup));
    Ok(Prepared { runtime: None, command: words.done(), variables, undo })
}

/// Undo actions for the files that nspawn leaves when it is killed, and for its directories that did not exist before. Each
/// directory is removed only if it is empty.
fn kept(name: &str, root: &Path) -> Result<Vec<Undo>, EnvironmentError> {
    let metadata = root.metadata().map_err(|error| unusable!("{}: {}", root.display(), plainly(error)))?;
    let remover = |program: &str| commands::find(program).ok_or_else(|| unusable!("there is no {program}"));
    let (rmdir, rm) = (remover("rmdir")?, remover("rm")?);
    let of_path = |program: &PathBuf, path: &Path| Undo::Program(vec![program.into(), path.into()]);
    let at = Path::new(KEPT);
    let directories = [at.to_owned(), at.join("locks"), at.join("propagate"), at.join("unix-export")];
    let mut undo: Vec<Undo> =
        directories.iter().filter(|path| !path.exists()).map(|path| of_path(&rmdir, path)).collect();
    for kind in ["propagate", "unix-export"] {
        let path = at.join(kind).join(name);
        undo.push(of_path(&rmdir, &path));
        undo.push(Undo::Unmount(path));
    }
    // Named after the root directory, which is ours (image_path_lock in systemd).
    let lock = at.join("locks").join(format!("inode-{}:{}", metadata.dev(), metadata.ino()));
    undo.push(of_path(&rm, &lock));
    Ok(undo)
}
