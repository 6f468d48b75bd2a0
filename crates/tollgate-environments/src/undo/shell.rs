//! Commands of the user, executed by sh(1).

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};

use tollgate_model::text::{excerpt, first_line, plainly};
use tollgate_os::memfd::Said;
use tollgate_os::process;
use tollgate_os::signals::{self, Disposition};

use super::group;
use crate::error::{EnvironmentError, unusable};
use crate::prepared::Undo;

/// A command that takes longer is ended.
const LIMIT: Duration = Duration::from_secs(60);
/// How often a command is looked at.
const LOOK: Duration = Duration::from_millis(1);
/// Bytes kept of what a command says.
const MOST_SAID: usize = 1 << 16;
/// Signals that a shell may not inherit as ignored, as from the cleanup process.
const SIGNALS: [libc::c_int; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE];

/// Executes a command by sh(1) to its end, or until `stop` asks to stop. `begun` is told how to end it before that. Its processes in
/// the background live on.
pub(crate) fn execute(
    command: &str,
    directory: &Path,
    stop: &dyn Fn() -> bool,
    begun: &mut dyn FnMut(&[Undo]),
) -> Result<(), EnvironmentError> {
    let fault = |why: String| unusable!("`{}`: {why}", excerpt(command));
    let refused = |error: io::Error| fault(format!("it could not be started: {}", plainly(&error)));
    let said = Said::new(MOST_SAID as u64).map_err(refused)?;
    let [output, errors] = [said.stream().map_err(refused)?, said.stream().map_err(refused)?];
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).current_dir(directory).process_group(0);
    shell.stdin(Stdio::null()).stdout(output).stderr(errors);
    signals::start_with(&mut shell, Disposition::default_with(0), &SIGNALS);
    process::bind(&mut shell, || Ok(()));
    let mut child = shell.spawn().map_err(refused)?;
    let pid = child.id().cast_signed();
    let began = group::started(pid);
    begun(&[Undo::Group { pid, started: began }]);
    let status = ended(&mut child, stop);
    if status.is_none() {
        group::end(pid, began);
        let _ = child.wait();
    }
    let said = first_line(&said.beginning(MOST_SAID));
    match status {
        Some(status) if status.success() => Ok(()),
        None if stop() => Err(EnvironmentError::Interrupted),
        None => Err(fault(format!("it did not end within {} s", LIMIT.as_secs()))),
        Some(status) if said.is_empty() => Err(fault(format!("it failed: {status}"))),
        Some(status) => Err(fault(format!("it failed: {status}: {said}"))),
    }
}

fn ended(child: &mut Child, stop: &dyn Fn() -> bool) -> Option<ExitStatus> {
    let began = Instant::now();
    while began.elapsed() < LIMIT && !stop() {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        thread::sleep(LOOK);
    }
    None
}
