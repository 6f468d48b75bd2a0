//! bubblewrap: namespaces, and nothing that outlives the process.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use super::{Order, PROGRAM, WORK, Words, system};
use crate::commands;
use crate::error::{EnvironmentError, plainly, unusable};
use crate::prepared::Prepared;
use crate::seccomp::Filter;

/// Descriptor from which bubblewrap reads the filter. A redirection in a shell is only certain to accept one digit.
const FILTER: &str = "9";

pub(super) fn prepare(bwrap: &Path, order: &Order<'_>) -> Result<Prepared, EnvironmentError> {
    let work = order.work()?;
    let filter = Filter::read(order.seccomp)?;
    let mut words = Words(Vec::new());
    if let Some(filter) = &filter {
        let file = order.directory("bwrap")?.join("filter");
        fs::write(&file, filter.bytes())
            .map_err(|error| unusable!("{}: {}", file.display(), plainly(error)))?;
        let shell = commands::find("sh").ok_or_else(|| unusable!("there is no shell (sh)"))?;
        words.add([shell.as_os_str(), OsStr::new("-c")]);
        words.add([format!("exec \"$@\" {FILTER}<\"$0\"")]).add([&file]);
    }
    words.add([bwrap]);
    // bwrap's child is killed when bwrap ends, and bwrap when its parent does (PR_SET_PDEATHSIG).
    words.add([
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--as-pid-1",
        "--hostname",
        "tollgate",
    ]);
    words.add(["--tmpfs", "/", "--proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys", "/sys"]);
    words.add(["--tmpfs", "/tmp"]);
    for directory in system::directories() {
        words.add(["--ro-bind", directory, directory]);
    }
    words.add([OsStr::new("--ro-bind"), order.program.as_os_str(), OsStr::new(PROGRAM)]);
    words.add([OsStr::new("--bind"), work.as_os_str(), OsStr::new(WORK)]);
    words.add(["--remount-ro", "/", "--chdir", "/"]);
    if filter.is_some() {
        words.add(["--seccomp", FILTER]);
    }
    words.add(["--"]).add(&order.inside);
    Ok(Prepared { command: words.done(), ..Prepared::default() })
}
