//! Tools: programs that this one executes for itself, such as assemblers and mkfs(8), with limits on their resources.
//!
//! A tool has children, as cc(1) starts as(1), which PR_SET_PDEATHSIG of prctl(2) does not reach. So a tool is in the
//! process group of a [`guard`].

use std::io::{self, PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::group::{Group, guard};
use crate::process::{Program, bind};

const LOOK: Duration = Duration::from_millis(1);
/// The most bytes that a tool may write. A write beyond that fails with EPIPE.
const MOST_WRITTEN: usize = 16 << 20;
const MOST_SAID: usize = 1 << 16;

/// Outcome of a tool that had a time limit.
#[derive(Debug)]
pub struct Attended {
    /// How it ended; `None` if it was killed at the end of its time or on request.
    pub status: Option<ExitStatus>,
    /// First 64 KiB of its standard output and standard error.
    pub said: String,
}

/// Runs a tool without input until it ends. Its process group is killed after about `limit`, when `stop` returns true, and
/// when this process is killed.
///
/// # Errors
/// Those of memfd_create(2), fork(2) and execve(2).
pub fn attend(command: &mut Command, limit: Duration, stop: &dyn Fn() -> bool) -> io::Result<Attended> {
    let (reader, writer) = io::pipe()?;
    rustix::io::ioctl_fionbio(&reader, true)?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let group = Group::of(guard(0)?);
    bind(command, || Ok(()));
    let mut program = Program(command.process_group(group.first().pid()).spawn()?);
    // The command holds the other end of the pipe until it gets other streams.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut said = Said { reader: Some(reader), beginning: Vec::new(), bytes: 0 };
    let mut left = limit.as_millis() / LOOK.as_millis();
    let mut status = None;
    while left > 0 && !stop() {
        status = program.0.try_wait()?;
        said.read();
        if status.is_some() {
            break;
        }
        thread::sleep(LOOK);
        left -= 1;
    }
    drop(program);
    drop(group);
    Ok(Attended { status, said: String::from_utf8_lossy(&said.beginning).into_owned() })
}

/// A tool's output. It is a pipe, since no other file can be bounded for a tool that sets O_APPEND, as make(1) does.
struct Said {
    /// `None` once the tool has written too much.
    reader: Option<PipeReader>,
    beginning: Vec<u8>,
    /// Bytes read so far.
    bytes: usize,
}

impl Said {
    fn read(&mut self) {
        let mut part = [0; 1 << 16];
        // At most one pipe buffer at a time, so a tool that writes without end does not keep this busy.
        if let Some(Ok(got)) = self.reader.as_mut().map(|reader| reader.read(&mut part)) {
            self.bytes += got;
            let room = MOST_SAID - self.beginning.len();
            self.beginning.extend_from_slice(&part[..got.min(room)]);
        }
        if self.bytes > MOST_WRITTEN {
            self.reader = None;
        }
    }
}

/// Limits the address space of a tool and the length of its files, in bytes, and disables core files (getrlimit(2)).
pub fn limit(command: &mut Command, memory: u64, file: u64) {
    let limits = [(Resource::As, memory), (Resource::Fsize, file), (Resource::Core, 0)];
    let set = move || {
        limits.iter().try_for_each(|(resource, most)| {
            let most = getrlimit(*resource).maximum.map_or(*most, |allowed| allowed.min(*most));
            Ok(setrlimit(*resource, Rlimit { current: Some(most), maximum: Some(most) })?)
        })
    };
    // SAFETY: the closure makes system calls and nothing else.
    unsafe { command.pre_exec(set) };
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;
    use crate::process;

    const LONG: Duration = Duration::from_secs(600);

    fn shell(line: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]);
        command
    }

    #[test]
    fn a_tool_has_its_time_and_is_heard() {
        let run = |line: &str, limit, stop: fn() -> bool| attend(&mut shell(line), limit, &stop).unwrap();
        let said = run("echo out; echo error >&2; exit 3", LONG, || false);
        assert_eq!(
            (said.status.and_then(|status| status.code()), said.said.as_str()),
            (Some(3), "out\nerror\n")
        );
        assert!(run("exec sleep 600", Duration::from_millis(20), || false).status.is_none());
        assert!(run("exec sleep 600", LONG, || true).status.is_none());
        let much = run("yes | head -c 100000", LONG, || false);
        assert_eq!(much.said.len(), MOST_SAID);
        // GNU make reopens its standard output like this.
        let appends = run("exec 3>>/dev/stdout; echo appended >&3", LONG, || false);
        assert_eq!(appends.said, "appended\n");
        assert!(attend(&mut Command::new("/nowhere"), LONG, &|| false).is_err());
    }

    #[test]
    fn what_it_says_and_makes_is_bounded() {
        // Without a limit it would write until memory is full.
        let endless = attend(&mut shell("yes"), LONG, &|| false).unwrap();
        assert!(endless.status.is_some_and(|status| !status.success()), "{:?}", endless.status);
        let directory = tempfile::tempdir().unwrap();
        let mut command = shell("ulimit -c; ulimit -v; yes > long");
        limit(command.current_dir(directory.path()), 1 << 30, 1 << 20);
        let made = attend(&mut command, LONG, &|| false).unwrap();
        assert!(made.status.is_some_and(|status| !status.success()), "{:?}", made.status);
        assert!(made.said.starts_with("0\n1048576\n"), "{}", made.said);
        assert_eq!(directory.path().join("long").metadata().unwrap().len(), 1 << 20);
    }

    #[test]
    fn all_that_it_started_ends_with_it_and_when_this_process_is_killed() {
        for (rest, is_killed) in [("exit", false), ("wait", true)] {
            // Every process that a tool has started holds the pipe open.
            let (mut pipe, end) = io::pipe().unwrap();
            // dash(1) redirects to descriptors of one digit only.
            let line = format!("{{ echo > /proc/self/fd/{}; exec sleep 600; }} & {rest}", end.as_raw_fd());
            let mut one = process::fork_bound(|| {
                let _ = rustix::io::fcntl_setfd(&end, rustix::io::FdFlags::empty());
                attend(&mut shell(&line), LONG, &|| false)
                    .map_or(1, |ended| i32::from(ended.status.is_none()))
            })
            .unwrap();
            drop(end);
            let mut next = || {
                let long = Timespec { tv_sec: 60, tv_nsec: 0 };
                assert_eq!(poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&long)), Ok(1), "one is left");
                pipe.read(&mut [0]).unwrap()
            };
            if is_killed {
                assert_eq!(next(), 1);
                one.kill(libc::SIGKILL);
            }
            one.wait().unwrap();
            while next() != 0 {}
        }
    }
}
