//! Starts the command of an environment with pipes as its standard input and output, and a memfd as its standard error.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tollgate_engine::session::Link;
use tollgate_engine::signal_name;
use tollgate_model::text::{excerpt, first_line};
use tollgate_model::traced::Ended;
use tollgate_os::signals::{self, Disposition};
use tollgate_os::{memfd, process};

use crate::cleanup::{Cleanup, Promise};
use crate::commands;
use crate::error::{EnvironmentError, plainly, unusable};
use crate::prepared::Undo;
use crate::undo;

/// Bytes of standard error that are kept. Writing more fails.
const MOST_SAID: u64 = 64 << 10;
/// Signals whose disposition a program can inherit: all but SIGKILL, SIGSTOP and the two that the C library reserves.
const SIGNALS: [libc::c_int; 60] = {
    let mut all = [0; 60];
    let (mut signal, mut at) = (1, 0);
    while signal <= 64 {
        if !matches!(signal, libc::SIGKILL | libc::SIGSTOP | 32 | 33) {
            all[at] = signal;
            at += 1;
        }
        signal += 1;
    }
    all
};

pub(crate) struct Start<'a> {
    pub command: &'a [OsString],
    pub variables: &'a [(OsString, OsString)],
    /// Whether the kernel kills it when this thread ends. A command that makes more than its own process instead ends at the
    /// end of its standard input, and cleans up.
    pub is_bound: bool,
    /// Files that it inherits, under the numbers that they have here.
    pub files: &'a [File],
}

/// A started command. Dropping it ends its process group.
pub(crate) struct Started {
    pub to: OwnedFd,
    pub from: OwnedFd,
    pub said: Said,
    pub promise: Promise,
    pub pid: i32,
}

impl Started {
    /// Returns the pipes for a session, and the promise to end the command.
    pub fn link(self) -> (Link, Promise) {
        let (said, pid) = (self.said, self.pid);
        let said = Box::new(move || said.killed(pid).or_else(|| said.first_line()));
        (Link { to: self.to, from: self.from, said }, self.promise)
    }
}

/// Why a command ended, and what it wrote on standard error.
pub(crate) struct Said {
    errors: memfd::Said,
    process: &'static str,
    elsewhere: Option<LastWords>,
}

/// Says why a command ended if its standard error is empty.
type LastWords = Box<dyn Fn() -> Option<String>>;

impl Said {
    /// Sets the name of its process, and a second source for why it ended.
    pub fn also(&mut self, process: &'static str, last_words: LastWords) {
        self.process = process;
        self.elsewhere = Some(last_words);
    }

    /// The signal that killed its process, which is not reaped yet.
    fn killed(&self, pid: i32) -> Option<String> {
        /// The kernel closes the pipes of a process just before its end becomes visible.
        const TRIES: u32 = 20;
        for _ in 0..TRIES {
            match process::peek_end(pid) {
                Ok(Some(Ended::Signal(signal))) => {
                    return Some(format!("{} was killed by {}", self.process, signal_name(signal)));
                }
                Ok(Some(Ended::Exit(_))) | Err(_) => return None,
                Ok(None) => thread::sleep(Duration::from_millis(5)),
            }
        }
        None
    }

    /// The first line that is not empty, without control characters.
    pub fn first_line(&self) -> Option<String> {
        self.first_error().or_else(|| self.elsewhere.as_ref()?())
    }

    fn first_error(&self) -> Option<String> {
        let written = self.errors.beginning(4096);
        Some(first_line(&written)).filter(|line| !line.is_empty()).map(|line| excerpt(&line).into_owned())
    }
}

/// Starts a command in its own process group, with the default action of every signal, and without this process's other
/// descriptors. `begin` is called right before fork(2).
pub(crate) fn start(
    start: &Start<'_>,
    cleanup: &Cleanup,
    begin: &mut dyn FnMut(),
) -> Result<Started, EnvironmentError> {
    let (name, arguments) = start.command.split_first().ok_or_else(|| unusable!("there is no command"))?;
    let program =
        commands::named(name).ok_or_else(|| unusable!("{}: there is no such program", name.display()))?;
    let fault = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => unusable!("{}: there is no such program", name.display()),
        _ => unusable!("{}: it could not be started: {}", name.display(), plainly(error)),
    };
    let said = memfd::Said::new(MOST_SAID).map_err(fault)?;
    let mut command = Command::new(program);
    command.arg0(name).args(arguments).envs(start.variables.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(said.stream().map_err(fault)?);
    command.process_group(0);
    signals::start_with(&mut command, Disposition::default_with(0), &SIGNALS);
    let kept: Vec<RawFd> = start.files.iter().map(AsRawFd::as_raw_fd).collect();
    // SAFETY: the closure makes system calls that take numbers, and nothing else.
    unsafe { command.pre_exec(move || close_others(&kept)) };
    if start.is_bound {
        process::bind(&mut command, || Ok(()));
    }
    begin();
    let mut child = command.spawn().map_err(fault)?;
    let pid = child.id().cast_signed();
    // Only the promise waits for its end: std would signal a process ID that is no longer the child's.
    let group = [Undo::Group { pid, started: undo::started(pid) }];
    let promise = cleanup.promise(&group).map_err(fault);
    let (Some(to), Some(from), Ok(promise)) = (child.stdin.take(), child.stdout.take(), promise) else {
        let _ = undo::undo_all(&group);
        return Err(unusable!("{}: it could not be started", name.display()));
    };
    Ok(Started {
        to: to.into(),
        from: from.into(),
        said: Said { errors: said, process: "its first process", elsewhere: None },
        promise,
        pid,
    })
}

/// Makes execve(2) close everything but the standard streams and these. Descriptors that this process inherited may lack the
/// flag.
fn close_others(kept: &[RawFd]) -> io::Result<()> {
    // SAFETY: close_range(2) takes numbers. Before Linux 5.11 the descriptors stay open: this program's own have the flag anyway.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    for &file in kept {
        // SAFETY: a descriptor that is open.
        if unsafe { libc::fcntl(file, libc::F_SETFD, 0) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn shell(script: &str, cleanup: &Cleanup) -> Started {
        let command = ["sh", "-c", script].map(OsString::from);
        let variables = [("TOLLGATE_X".into(), "a b".into())];
        let start_of = Start { command: &command, variables: &variables, is_bound: true, files: &[] };
        start(&start_of, cleanup, &mut || {}).unwrap()
    }

    fn heard(started: Started) -> String {
        let (link, promise) = started.link();
        drop(link.to);
        let mut text = String::new();
        File::from(link.from).read_to_string(&mut text).unwrap();
        drop(promise);
        text
    }

    #[test]
    fn a_command_has_pipes_a_group_and_no_other_descriptor() {
        let cleanup = Cleanup::begin().unwrap();
        let (open, _write) = std::io::pipe().unwrap();
        rustix::io::fcntl_setfd(&open, rustix::io::FdFlags::empty()).unwrap();
        let script = "cat; echo $TOLLGATE_X; for f in /proc/$$/fd/*; do [ -e $f ] && printf '%s ' ${f##*/}; done; \
            test \"$(ps -o pgid= -p $$ | tr -d ' ')\" = $$ && echo own; exec grep -E '^Sig(Blk|Ign)' /proc/self/status";
        let started = shell(script, &cleanup);
        File::from(started.to.try_clone().unwrap()).write_all(b"hello\n").unwrap();
        let text = heard(started);
        let (lines, sets) = text.split_once("SigBlk:").unwrap();
        assert_eq!(lines, "hello\na b\n0 1 2 own\n");
        // The program that started the test may ignore realtime signals.
        for set in sets.split("SigIgn:") {
            let set = u64::from_str_radix(set.trim(), 16).unwrap();
            assert_eq!(set & 0x7fff_ffff, 0, "{text}");
        }
    }

    #[test]
    fn its_first_line_is_known_and_what_it_says_is_bounded() {
        let cleanup = Cleanup::begin().unwrap();
        let started = shell("echo; printf 'no\\033 such\\nmore\\n' >&2; yes >&2; echo over", &cleanup);
        let (mut link, promise) = started.link();
        let mut text = String::new();
        File::from(link.from).read_to_string(&mut text).unwrap();
        assert_eq!(text, "\nover\n");
        assert_eq!((link.said)().as_deref(), Some("no such"));
        drop(promise);
        let killed = shell("echo a warning >&2; kill -s KILL $$", &cleanup);
        let (mut link, promise) = killed.link();
        File::from(link.from).read_to_string(&mut text).unwrap();
        assert_eq!((link.said)().as_deref(), Some("its first process was killed by SIGKILL"));
        drop(promise);
        assert_eq!(shell("exit 1", &cleanup).said.first_line(), None);
        let none = [OsString::from("tollgate-no-such-program")];
        let of_none = Start { command: &none, variables: &[], is_bound: false, files: &[] };
        let refused = start(&of_none, &cleanup, &mut || {}).err().unwrap();
        assert_eq!(refused.to_string(), "tollgate-no-such-program: there is no such program");
    }
}
