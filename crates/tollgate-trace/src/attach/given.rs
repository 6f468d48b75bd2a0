//! Finds the processes to trace, and checks that each can be traced.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::{fs, io};

use rustix::process::{Resource, getrlimit};
use tollgate_model::text::plainly;
use tollgate_os::process;

use super::group::Directory;
use crate::outcome::TraceError;

/// `PF_KTHREAD` of include/linux/sched.h, in the flags of proc_pid_stat(5).
const KERNEL_THREAD: u64 = 0x0020_0000;
const MOST_BYTES: usize = 1 << 16;

/// The number of descriptors that are left for programs, maps and files.
const RESERVED: u64 = 64;

#[derive(Debug)]
pub(super) struct Given {
    pub pid: u32,
    /// The name of its first thread (comm of proc(5)).
    pub name: String,
    /// Its command line; its name if it has none.
    pub command: Vec<String>,
    /// A pidfd, which refers to this process even if its number is reused.
    pub descriptor: OwnedFd,
}

impl Given {
    pub fn all(pids: &[u32]) -> Result<Vec<Self>, TraceError> {
        let pids: BTreeSet<u32> = pids.iter().copied().collect();
        if pids.is_empty() {
            return Err(TraceError::Request("there is no process to trace".to_owned()));
        }
        pids.into_iter().map(|pid| Self::read(pid).map_err(TraceError::Request)).collect()
    }

    pub fn read(pid: u32) -> Result<Self, String> {
        let number = i32::try_from(pid).map_err(|_| no_process(pid))?;
        if number == process::own_pid() {
            return Err(format!("process {pid} is tollgate itself"));
        }
        let descriptor = match process::pidfd(number) {
            Ok(descriptor) => descriptor,
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                return Err("this kernel has no pidfd_open(2), which Linux 5.3 and later have".to_owned());
            }
            Err(error) => return Err(why_not(pid, &error)),
        };
        // The pidfd is opened first, so what is read afterwards is about this process, or fails.
        let stat = Stat::read(pid).ok_or_else(|| no_process(pid))?;
        if stat.flags & KERNEL_THREAD != 0 {
            let name = stat.name;
            return Err(format!("process {pid} ({name}) is a kernel thread, which makes no system calls"));
        }
        if matches!(stat.state, 'Z' | 'X') {
            return Err(format!(
                "process {pid} ({}) has ended, but its parent has not waited for it",
                stat.name
            ));
        }
        let command = command_line(pid).unwrap_or_else(|| vec![stat.name.clone()]);
        Ok(Self { pid, name: stat.name, command, descriptor })
    }

    pub fn runs(&self) -> bool {
        Stat::read(self.pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
    }
}

#[derive(Debug, Default)]
pub(super) struct GroupProcesses {
    /// Those that can be traced: not this process, kernel threads, or processes that have just ended.
    pub given: Vec<Given>,
    /// The number of processes left out because of the limit on descriptors.
    pub left_out: usize,
}

impl GroupProcesses {
    pub fn in_group(group: &Directory, known: &BTreeSet<u32>) -> Result<Self, String> {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).saturating_sub(RESERVED);
        let mut found = Self::default();
        for pid in group.processes()?.difference(known) {
            let Ok(given) = Given::read(*pid) else { continue };
            // A new descriptor is the lowest free number, so this many are in use.
            if u64::from(given.descriptor.as_raw_fd().unsigned_abs()) < limit {
                found.given.push(given)
            } else {
                found.left_out += 1
            }
        }
        Ok(found)
    }

    /// Finds the processes that a trace begins with.
    ///
    /// # Errors
    /// A sentence, if there is none.
    pub fn first(group: &Directory) -> Result<Self, String> {
        let found = Self::in_group(group, &BTreeSet::new())?;
        let path = group.path().display();
        match (found.given.is_empty(), found.left_out) {
            (false, _) => Ok(found),
            (true, 0) if group.processes()?.is_empty() => Err(format!("control group {path} has no process")),
            (true, 0) => Err(format!("control group {path} has no process that can be traced")),
            (true, left_out) => Err(format!("control group {path}: {}", note_of(left_out))),
        }
    }

    pub fn note(&self) -> Option<String> {
        (self.left_out > 0).then(|| note_of(self.left_out))
    }
}

fn note_of(left_out: usize) -> String {
    let were = if left_out == 1 { "1 process was".to_owned() } else { format!("{left_out} processes were") };
    format!(
        "{were} not traced: each needs a descriptor, and the limit was reached (RLIMIT_NOFILE of getrlimit(2))"
    )
}

fn no_process(pid: u32) -> String {
    format!("there is no process {pid}")
}

/// Explains why a pidfd cannot be opened: there is no such process, or it is a thread.
fn why_not(pid: u32, error: &io::Error) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let group = status.lines().find_map(|line| line.strip_prefix("Tgid:")).map(str::trim);
    match group.and_then(|group| group.parse::<u32>().ok()) {
        Some(group) if group != pid => {
            format!("{pid} is a thread of process {group}; processes are traced with all of their threads")
        }
        Some(_) => format!("process {pid}: pidfd_open(2): {}", plainly(error)),
        None => no_process(pid),
    }
}

/// Adds the owner of the processes to the reason for a refusal, if it is another user.
pub(super) fn with_owners(given: &[Given], why: String) -> String {
    let own = rustix::process::geteuid().as_raw();
    let owner = |one: &Given| fs::metadata(format!("/proc/{}", one.pid)).map(|file| file.uid()).ok();
    let foreign = given.iter().find_map(|one| owner(one).filter(|uid| *uid != own).map(|uid| (one, uid)));
    match foreign {
        Some((one, uid)) if own != 0 => {
            format!("{why}; process {} ({}) belongs to user {uid}, not to you", one.pid, one.name)
        }
        _ => why,
    }
}

/// Some fields of proc_pid_stat(5).
struct Stat {
    name: String,
    state: char,
    flags: u64,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses a line. The name is in parentheses and may contain anything, including parentheses.
    fn parse(line: &[u8]) -> Option<Self> {
        let line = String::from_utf8_lossy(line);
        let (begin, end) = (line.find('(')?, line.rfind(')')?);
        let name = line.get(begin + 1..end)?.to_owned();
        let mut words = line.get(end + 1..)?.split_whitespace();
        let state = words.next()?.chars().next()?;
        // ppid, pgrp, session, tty_nr, tpgid, flags
        let flags = words.nth(5)?.parse().ok()?;
        Some(Self { name, state, flags })
    }
}

fn command_line(pid: u32) -> Option<Vec<String>> {
    use io::Read;
    let mut bytes = Vec::new();
    let file = fs::File::open(format!("/proc/{pid}/cmdline")).ok()?;
    file.take(MOST_BYTES as u64).read_to_end(&mut bytes).ok()?;
    let line = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
    (!line.is_empty()).then(|| {
        line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_end_of_a_name() {
        let line = b"17 (a) R (b) S 1 2 3 4 5 2097152 7 8";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.name.as_str(), stat.state, stat.flags), ("a) R (b", 'S', KERNEL_THREAD));
        for line in [&b""[..], b"17 (a", b"17 (a) S 1 2", b")(", b"17 (a) S 1 2 3 4 5 x"] {
            assert!(Stat::parse(line).is_none());
        }
    }

    #[test]
    fn what_cannot_be_traced_says_why() {
        let why = |pid: u32| Given::read(pid).map(drop).unwrap_err();
        assert!(why(std::process::id()).contains("tollgate itself"));
        assert_eq!(why(u32::MAX), format!("there is no process {}", u32::MAX));
        assert_eq!(why(0), "there is no process 0");
        let kernel = (2..100).filter_map(|pid| Stat::read(pid).map(|stat| (pid, stat)));
        match kernel.into_iter().find(|(_, stat)| stat.flags & KERNEL_THREAD != 0) {
            Some((pid, _)) => assert!(why(pid).contains("kernel thread"), "{}", why(pid)),
            None => println!("skipped: no thread of the kernel is to be seen here"),
        }
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
            let _ = ended.recv();
        });
        let tid = told.recv().unwrap();
        assert!(why(tid).contains(&format!("is a thread of process {}", std::process::id())), "{}", why(tid));
        drop(end);
        thread.join().unwrap();
    }

    #[test]
    fn a_process_that_was_not_waited_for_has_ended() {
        let child = process::fork(|| 0).unwrap();
        let pid = child.pid().unsigned_abs();
        let why = loop {
            match Given::read(pid) {
                Ok(_) => std::thread::yield_now(),
                Err(why) => break why,
            }
        };
        assert!(why.contains("has ended"), "{why}");
    }
}
