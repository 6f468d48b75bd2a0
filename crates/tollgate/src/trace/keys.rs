//! `tollgate trace --keys FILE COMMAND`: the command's delay for each key.

use std::path::Path;
use std::time::Duration;

use tollgate_os::paths::{PathError, read_regular};
use tollgate_trace::Request;
use tollgate_trace::keys::{recording, type_keys};
use tollgate_trace::output::keys::KeysRecord;

use super::{failure, request};
use crate::args::Format;
use crate::args::trace::TraceArgs;
use crate::failure::{Failure, plainly};
use crate::{out, say};

/// A fast typist's.
const PACE: Duration = Duration::from_millis(100);
/// The terminal type for programs if this process has none.
const TERM: &str = "xterm";

/// # Errors
/// Wrong input; a command that cannot be started; a signal that asked to end.
pub fn trace_keys(args: &TraceArgs, file: &Path) -> Result<(), Failure> {
    let wrong = |why: String| Failure::input(format!("--keys {}: {why}", file.display()));
    let bytes = read_regular(file, recording::MOST_BYTES).map_err(|why| match why {
        PathError::Io(why) => wrong(plainly(&why)),
        why => wrong(why.to_string()),
    })?;
    let keys = recording::keys(&bytes);
    if keys.is_empty() {
        return Err(wrong("it has no keys; a file that quits vi has `:q!` and a newline".to_owned()));
    }
    let session =
        type_keys(with_terminal(request(args)?), &keys, args.pace.unwrap_or(PACE)).map_err(failure)?;
    let record = KeysRecord::of(&session);
    match args.format {
        Format::Json => out::print_json_line(&record)?,
        Format::Table if args.quiet => {}
        Format::Table => say::warn(&record.text(out::width_beside())),
    }
    if let Some(signal) = session.asked {
        return Err(Failure::Interrupted(signal));
    }
    tollgate_trace::end_like(session.trace.ended)
}

/// A program of full screens needs the name of a terminal.
fn with_terminal(request: Request) -> Request {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let variables = is_dumb.then(|| ("TERM".into(), TERM.into())).into_iter().collect();
    Request { variables, ..request }
}
