//! Runs the build of a module, with a time limit, and finds the line that says why it failed.

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

/// A build takes 2 to 5 s; this is for a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
/// The interval between looks at the caller's wish to stop.
const LOOK: Duration = Duration::from_millis(50);

/// What is built with what.
pub(super) struct Order<'a> {
    pub make: &'a Path,
    pub compiler: &'a Path,
    /// The headers.
    pub tree: &'a Path,
    /// The module's directory.
    pub source: &'a Path,
    /// For what the compiler makes on the way.
    pub private: &'a PrivateDirectory,
}

/// Builds the module in its directory.
///
/// # Errors
/// The compiler's or linker's first sentence; the time limit; or that `stop` said so. All that was started has ended.
pub(super) fn run(
    order: &Order<'_>,
    cleanup: &Cleanup,
    stop: &dyn Fn() -> bool,
) -> Result<(), EnvironmentError> {
    let command = command(order);
    // Those of a surrounding make(1) or kernel build would be obeyed.
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
    // The pipe has no writer any more: all have ended.
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
        // make(1) appends to its standard error, which a file of a fixed size refuses: all goes into the pipe.
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

/// Whether a line says what went wrong, and is neither a warning nor the trail of make(1).
fn is_reason(line: &str) -> bool {
    let marks = ["error:", "Error:", "ERROR", "not found", "No such file", "*** "];
    marks.iter().any(|mark| line.contains(mark))
}

/// All that it writes until its last writer has ended. More than a little is read and not kept.
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
