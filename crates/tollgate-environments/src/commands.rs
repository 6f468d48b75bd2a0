//! Runs mkfs, modprobe and rmmod, with a time limit. Their output is an error's reason.

use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};
use std::{ffi::OsStr, fs::File, time::Duration};

use tollgate_model::text::said_by;
pub(crate) use tollgate_os::programs::{find, named};
use tollgate_os::{memfd, process};

use crate::error::{EnvironmentError, unusable};

/// The interval between checks for a program's end.
const LOOK: Duration = Duration::from_millis(5);
/// Checks before it is killed: 30 s.
const LOOKS: u32 = 6000;
/// The most that is read of its output.
const MAX_SAID: u64 = 1 << 16;

/// Runs a program to its end; the first line of its output.
///
/// # Errors
/// It could not be started, failed, took too long, or `stop` said so; it has ended in any case.
pub(crate) fn run<A: AsRef<OsStr>>(
    program: &Path,
    arguments: &[A],
    stop: &dyn Fn() -> bool,
) -> Result<String, EnvironmentError> {
    output(program, arguments, stop).map(|text| first_line(&text))
}

/// The same; its whole output, as far as it is read.
///
/// # Errors
/// As [`run`].
pub(crate) fn output<A: AsRef<OsStr>>(
    program: &Path,
    arguments: &[A],
    stop: &dyn Fn() -> bool,
) -> Result<String, EnvironmentError> {
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let fault = |why: String| unusable!("{name}: {why}");
    let of_start =
        |error: std::io::Error| fault(format!("it could not be started: {}", said_by("process", &error)));
    // A file, not a pipe: long output needs no reader.
    let mut said = memfd::create("said").map_err(of_start)?;
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C").current_dir("/").stdin(Stdio::null());
    command.stdout(said.try_clone().map_err(of_start)?).stderr(said.try_clone().map_err(of_start)?);
    process::bind(&mut command, || Ok(()));
    let mut child = process::Program(command.spawn().map_err(of_start)?);
    for _ in 0..LOOKS {
        if let Some(status) = child.0.try_wait().map_err(of_start)? {
            let text = text(&mut said);
            let line = first_line(&text);
            return if status.success() {
                Ok(text)
            } else if stop() {
                Err(EnvironmentError::Interrupted)
            } else if line.is_empty() {
                Err(fault(format!("it failed: {status}")))
            } else {
                Err(fault(line.strip_prefix(&format!("{name}: ")).unwrap_or(&line).to_owned()))
            };
        }
        if stop() {
            return Err(EnvironmentError::Interrupted);
        }
        std::thread::sleep(LOOK);
    }
    Err(fault("it did not end within 30 s".to_owned()))
}

fn text(said: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = said.rewind().and_then(|()| said.take(MAX_SAID).read_to_end(&mut bytes));
    if read.is_err() {
        return String::new();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).collect()
}

/// A word of a shell's command line.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@+%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
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
