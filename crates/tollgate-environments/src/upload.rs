//! Brings this program over a command's standard input, where the command has a shell.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::OFlags;
use rustix::io::Errno;
use tollgate_os::process;

use crate::agent::Agent;
use crate::error::EnvironmentError;
use crate::greeting::{self, Seen};

/// Where it is tried to put the program, as a shell names the directories.
const DIRECTORIES: [&str; 4] = ["${TMPDIR:-/tmp}", "/var/tmp", "/dev/shm", "$HOME"];

/// A script of a POSIX shell that takes exactly so many bytes into a file of its own and becomes that program.
///
/// It makes the file under this name in the first directory from which a program can be executed, and removes the name before the
/// bytes come: whatever is killed then, nothing is left. It begins with a command that does nothing: where the words are joined
/// and a second shell reads them, as ssh(1) does, `sh -c :` is all that the inner one gets.
pub(crate) fn script(name: &str, bytes: u64) -> String {
    let directories = DIRECTORIES.map(|directory| format!("\"{directory}\"")).join(" ");
    [
        ":; umask 077; f=; trap 'rm -f \"$f\"' 0; trap 'exit 1' 1 2 13 15",
        &format!("for d in {directories}; do f=\"$d/{name}\""),
        "(set -C; echo '#!/bin/sh' >\"$f\") 2>/dev/null || continue",
        "chmod 700 \"$f\" && \"$f\" </dev/null 2>/dev/null && break",
        "rm -f \"$f\"; f=; done",
        "if [ -z \"$f\" ]; then echo no directory there takes a program that can be executed >&2; exit 1; fi",
        // A program that is open for writing cannot be executed (ETXTBSY of execve(2)): it is opened anew, by its descriptor.
        "exec 3>\"$f\"; rm -f \"$f\"",
        &format!("head -c {bytes} >&3; exec 4</proc/self/fd/3; exec 3>&-"),
        &format!("if [ \"$(wc -c </proc/self/fd/4)\" -eq {bytes} ]; then exec /proc/self/fd/4 agent; fi"),
        "echo tollgate could not be copied there >&2; exit 1",
    ]
    .join("; ")
}

/// The files that a script of this name may have made, if it ran on this machine with these variables.
pub(crate) fn files_here(name: &str) -> Vec<PathBuf> {
    let value = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let temporary = value("TMPDIR").unwrap_or_else(|| "/tmp".into());
    let directories = [Some(temporary), Some("/var/tmp".into()), Some("/dev/shm".into()), value("HOME")];
    directories.into_iter().flatten().filter(|path| path.is_absolute()).map(|path| path.join(name)).collect()
}

/// A name that no other program chooses.
pub(crate) fn name() -> Result<String, EnvironmentError> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| EnvironmentError::of("getrandom(2)", error))?;
    Ok(format!(".tollgate-{}-{:016x}", process::own_pid(), u64::from_ne_bytes(bytes)))
}

/// Writes the program to the command. Returns early where the command answers, ends, or has given no sign of life for so long since
/// `heard`: bytes that it takes are one.
pub(crate) fn write(
    agent: &Agent,
    to: &OwnedFd,
    from: &OwnedFd,
    heard: &mut Instant,
    patience: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Seen>, EnvironmentError> {
    let (mut file, _) = agent.open()?;
    let fault = |error: io::Error| EnvironmentError::of("pipe", errno(&error));
    let before = rustix::fs::fcntl_getfl(to).map_err(|error| EnvironmentError::of("pipe", error))?;
    let set = |flags| rustix::fs::fcntl_setfl(to, flags).map_err(|error| EnvironmentError::of("pipe", error));
    set(before | OFlags::NONBLOCK)?;
    let written = pump(&mut file, to, from, heard, patience, stop).map_err(fault);
    set(before)?;
    written
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn pump(
    file: &mut impl Read,
    to: &OwnedFd,
    from: &OwnedFd,
    heard: &mut Instant,
    patience: Duration,
    stop: &dyn Fn() -> bool,
) -> io::Result<Option<Seen>> {
    let mut buffer = vec![0; 64 << 10];
    let mut pipe = std::fs::File::from(to.try_clone()?);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(None);
        }
        let mut rest = &buffer[..read];
        while !rest.is_empty() {
            match pipe.write(rest) {
                Ok(written) => {
                    rest = &rest[written..];
                    *heard = Instant::now();
                    continue;
                }
                // Its end, or its answer, is seen by the one who looks for that.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if let Some(seen) = greeting::now(from)? {
                return Ok(Some(seen));
            }
            if stop() {
                return Ok(Some(Seen::Stopped));
            }
            if heard.elapsed() >= patience {
                return Ok(Some(Seen::Nothing));
            }
            greeting::wait(&mut [PollFd::new(to, PollFlags::OUT)])?;
        }
    }
}
