//! Runs mkfs, modprobe and rmmod with a time limit. If one fails, its output is the reason in the error.

use std::path::Path;
use std::process::Command;
use std::{ffi::OsStr, time::Duration};

pub(crate) use tollgate_model::text::quoted;
use tollgate_model::text::{first_line, said_by};
pub(crate) use tollgate_os::programs::{find, named};
use tollgate_os::tool;

use crate::error::{EnvironmentError, unusable};

/// Programs that take longer are killed.
const LIMIT: Duration = Duration::from_secs(30);

/// Runs a program to its end and returns the first line of its output. Fails if the program could not be started, failed, took
/// too long, or `stop` asked to stop. The program has ended in any case.
pub(crate) fn run<A: AsRef<OsStr>>(
    program: &Path,
    arguments: &[A],
    stop: &dyn Fn() -> bool,
) -> Result<String, EnvironmentError> {
    output(program, arguments, stop).map(|text| first_line(&text))
}

/// Like [`run`], but returns all output, up to the limit of what is read.
pub(crate) fn output<A: AsRef<OsStr>>(
    program: &Path,
    arguments: &[A],
    stop: &dyn Fn() -> bool,
) -> Result<String, EnvironmentError> {
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let fault = |why: String| unusable!("{name}: {why}");
    let of_start =
        |error: std::io::Error| fault(format!("it could not be started: {}", said_by("process", &error)));
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C").current_dir("/");
    let ended = tool::attend(&mut command, LIMIT, stop).map_err(of_start)?;
    let line = first_line(&ended.said);
    match ended.status {
        Some(status) if status.success() => Ok(ended.said),
        // The signal that asked this program to stop may have reached the child too.
        Some(_) | None if stop() => Err(EnvironmentError::Interrupted),
        Some(status) if line.is_empty() => Err(fault(format!("it failed: {status}"))),
        Some(_) => Err(fault(line.strip_prefix(&format!("{name}: ")).unwrap_or(&line).to_owned())),
        None => Err(fault(format!("it did not end within {} s", LIMIT.as_secs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, stop: &dyn Fn() -> bool) -> Result<String, EnvironmentError> {
        run(&find("sh").expect("a shell"), &["-c", script], stop)
    }

    #[test]
    fn its_first_line_is_the_answer_or_the_reason() {
        assert_eq!(shell("echo; echo one; echo two", &|| false), Ok("one".to_owned()));
        let failed = shell("echo 'sh: no\u{1b} such' >&2; exit 1", &|| false).unwrap_err().to_string();
        assert_eq!(failed, "sh: no such");
        let silent = shell("exit 3", &|| false).unwrap_err().to_string();
        assert_eq!(silent, "sh: it failed: exit status: 3");
    }

    #[test]
    fn it_ends_when_asked() {
        assert_eq!(shell("sleep 100", &|| true), Err(EnvironmentError::Interrupted));
    }

    #[test]
    fn who_says_much_is_not_kept_waiting() {
        assert_eq!(shell("head -c 1000000 /dev/zero; echo", &|| false), Ok(String::new()));
    }
}
