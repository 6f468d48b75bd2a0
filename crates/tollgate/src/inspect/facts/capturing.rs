//! `tollgate inspect --capture`: keeps the sources of the facts, and describes them.

use std::path::Path;

use serde::Serialize;
use tollgate_engine::interrupt;
use tollgate_inspect::{CaptureError, Captured};
use tollgate_output::figures;
use tollgate_output::table::paragraph;

use crate::args::Format;
use crate::failure::{Failure, plainly};
use crate::out;

const CONTENT: &str = "\
It holds only the sources of the facts: the kernel's command line up to `--`, mounts with their options, \
names of control groups, limits, and as root the kernel's address. It has no host name, no variable except container=, and no command line of a process. Read proc/cmdline and proc/self/mountinfo before you share it: a \
parameter or a mount may hold a secret.";

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CapturedTree<'a> {
    /// The directory of the capture.
    directory: &'a Path,
    /// Copied files.
    files: usize,
    /// Their bytes.
    bytes: u64,
    /// Calls whose answers were kept.
    calls: usize,
    /// Paths that could not be read.
    failed: usize,
}

/// # Errors
/// When the target exists, it cannot be written, or a signal interrupts.
pub fn capture(directory: &Path, target: &Path, format: Format) -> Result<(), Failure> {
    interrupt::install();
    let captured = tollgate_inspect::capture(directory, target, &|| interrupt::requested().is_some());
    let captured = captured.map_err(|error| match (error, interrupt::requested()) {
        (_, Some(signal)) => Failure::Interrupted(signal),
        (CaptureError::Unwritable(error), None) => {
            Failure::input(format!("--capture: {} cannot be written: {}", target.display(), plainly(&error)))
        }
        (error, None) => Failure::input(format!("--capture: {} {error}", target.display())),
    })?;
    let Captured { files, bytes, failed, calls } = captured;
    match format {
        Format::Json => out::print_json(&CapturedTree { directory: target, files, bytes, calls, failed }),
        Format::Table => {
            let width = out::width();
            let files = figures::count(files, "file", "files");
            let what = format!(
                "Captured into {}: {files} ({} KiB), the answers of {}, and {}. `tollgate inspect --from {}` \
                 reads it.",
                target.display(),
                bytes.div_ceil(1024),
                figures::count(calls, "call", "calls"),
                figures::count(failed, "refusal or error", "refusals and errors"),
                target.display(),
            );
            out::print(&format!("{}{}", paragraph(&what, width, ""), paragraph(CONTENT, width, "")))
        }
    }
}
