//! Runs the build of a module with a time limit, and finds the line that says why it failed.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use tollgate_model::text::excerpt;
use tollgate_os::private::PrivateDirectory;

use crate::cleanup::Cleanup;
use crate::error::{EnvironmentError, plainly, unusable};
use crate::started::{self, Start};

/// A build takes 2 to 5 s; a busy machine needs longer.
const LIMIT: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(50);

pub(super) struct Order<'a> {
    pub make: &'a Path,
    pub compiler: &'a Path,
    pub tree: &'a Path,
    pub source: &'a Path,
    /// For the compiler's temporary files.
    pub private: &'a PrivateDirectory,
}

/// Builds the module in its directory. An error is the compiler's or linker's first sentence, the time limit, or that `stop`
/// asked to stop. All processes have ended by then.
pub(super) fn run(
    order: &Order<'_>,
    cleanup: &Cleanup,
    stop: &dyn Fn() -> bool,
) -> Result<(), EnvironmentError> {
    let command = command(order);
    // Variables of a surrounding make(1) or kernel build would take effect.
    let variables =
        ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "KBUILD_OUTPUT", "KBUILD_EXTMOD", "KCFLAGS", "W", "C"];
    let variables: Vec<(OsString, OsString)> = variables.map(|name| (name.into(), OsString::new())).into();
    let (tmpdir, private) = order.private.variable();
    let variables =
        [variables, vec![("LC_ALL".into(), "C".into()), (tmpdir.into(), private.into())]].concat();
    let started = started::start(
        &Start { command: &command, variables: &variables, is_bound: true, files: &[] },
        cleanup,
        &mut || {},
    )?;
    drop(started.to);
    let output = read_to_end(started.from.into(), stop)?;
    // The pipe has no writers left: all processes have ended.
    drop(started.promise);
    if order.source.join(super::NAME).with_extension("ko").is_file() {
        return Ok(());
    }
    let lines = || output.lines().map(str::trim).filter(|line| !line.is_empty());
    let why = lines().find(|line| is_reason(line)).or_else(|| lines().next());
    Err(unusable!("make: {}", why.map_or_else(|| "it built nothing".into(), excerpt)))
}

fn command(order: &Order<'_>) -> Vec<OsString> {
    let assigned = |name: &str, value: &Path| {
        let mut word = OsString::from(name);
        word.push("=");
        word.push(value);
        word
    };
    vec![
        // make(1) opens its standard error for appending, which a file of fixed size refuses: so both streams go to the pipe.
        "/bin/sh".into(),
        "-c".into(),
        "exec \"$@\" 2>&1".into(),
        "sh".into(),
        order.make.into(),
        "--silent".into(),
        "--no-print-directory".into(),
        "-C".into(),
        order.tree.into(),
        assigned("M", order.source),
        assigned("CC", order.compiler),
        "modules".into(),
    ]
}

/// Returns whether a line says what went wrong, and is neither a warning nor make(1)'s trail of messages.
fn is_reason(line: &str) -> bool {
    let marks = ["error:", "Error:", "ERROR", "not found", "No such file", "*** "];
    marks.iter().any(|mark| line.contains(mark))
}

/// Reads until the last writer has ended. Keeps only the beginning of a long output.
fn read_to_end(from: File, stop: &dyn Fn() -> bool) -> Result<String, EnvironmentError> {
    const MOST: usize = 1 << 16;
    let fault = |error: std::io::Error| unusable!("make: {}", plainly(error));
    let began = Instant::now();
    let mut from = from;
    let mut kept = Vec::new();
    let mut bytes = [0; 4096];
    let look = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
    while began.elapsed() < LIMIT {
        if stop() {
            return Err(EnvironmentError::Interrupted);
        }
        let mut polled = [PollFd::new(&from, PollFlags::IN)];
        match poll(&mut polled, Some(&look)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(fault(error.into())),
        }
        match from.read(&mut bytes).map_err(fault)? {
            0 => return Ok(String::from_utf8_lossy(&kept).into_owned()),
            read if kept.len() < MOST => kept.extend_from_slice(&bytes[..read]),
            _ => {}
        }
    }
    Err(unusable!("make: it did not end within {} s", LIMIT.as_secs()))
}
