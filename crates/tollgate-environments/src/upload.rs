//! Uploads this program through a command's standard input, if the command has a shell.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::OFlags;
use rustix::io::Errno;
use tollgate_os::temporary::new_name;

use crate::agent::Agent;
use crate::error::EnvironmentError;
use crate::greeting::{self, Seen};

/// Directories that are tried for the program, in shell syntax.
const DIRECTORIES: [&str; 4] = ["${TMPDIR:-/tmp}", "/var/tmp", "/dev/shm", "$HOME"];

/// Returns a POSIX shell script that reads exactly `bytes` bytes into a file of its own and executes that file.
///
/// The file is made in a directory of this name and mode 0700. Its parent is the first of [`DIRECTORIES`] from which a
/// program can be executed and whose entries no other user can replace: one that belongs to root or the user and is not
/// writable by others, or a sticky one. The shell enters the directory that it made and checks again: in a directory that
/// only the user can write, every name is the user's, even if another user renames the directory. File and directory are
/// unlinked before the bytes arrive, so nothing is left if a process is killed then. The program is executed through its
/// descriptor.
///
/// In a user namespace, root's directories have the overflow id (user_namespaces(7)). The script begins with a command that
/// does nothing: if the words are joined and a second shell parses them, as with ssh(1), the inner one gets only `sh -c :`.
pub(crate) fn script(name: &str, bytes: u64) -> String {
    let directories = DIRECTORIES.map(|directory| format!("\"{directory}\"")).join(" ");
    [
        ":; umask 077; set -f; CDPATH=; u=$(id -u); o=0; p=; i=; w=$PWD",
        "trap 'if [ \"$i\" ]; then rm -f f; fi; if [ \"$p\" ]; then rmdir \"$p\"; fi' 0; trap 'exit 1' 1 2 13 15",
        "if (exec 5<.) 2>/dev/null; then exec 5<.; w=/proc/self/fd/5; fi",
        "read a b c </proc/self/uid_map",
        "case \"$a $b $c\" in '0 0 4294967295') ;; *) read o </proc/sys/kernel/overflowuid ;; esac",
        &format!("for d in {directories}; do case \"$d\" in /*) ;; *) continue ;; esac"),
        // Mode, links, owner.
        "set -- $(ls -ldn \"$d/.\" 2>/dev/null)",
        "case \"$3\" in 0|\"$u\"|\"$o\") ;; *) continue ;; esac",
        "case \"$1\" in d????????[tT]*) ;; d????w*|d???????w*) continue ;; esac",
        &format!("p=\"$d/{name}\"; mkdir -m 700 \"$p\" 2>/dev/null || {{ p=; continue; }}"),
        "if cd -P \"$p\" 2>/dev/null; then set -- $(ls -ldn .)",
        "case \"$1 $3\" in drwx--[-S]---*\" $u\") if [ -z \"$(ls -A)\" ]; then i=1; fi ;; esac; fi",
        "if [ \"$i\" ] && echo '#!/bin/sh' >f && chmod 700 f && ./f </dev/null 2>/dev/null; then break; fi",
        "if [ \"$i\" ]; then rm -f f; i=; fi; cd -P \"$w\"; rmdir \"$p\" 2>/dev/null; p=; done",
        "if [ -z \"$p\" ]; then echo no directory there allows a program to be executed and keeps other users from replacing it >&2; exit 1; fi",
        "exec 3>f; rm -f f; i=; cd -P \"$w\"; rmdir \"$p\"; p=",
        // A program that is open for writing cannot be executed (ETXTBSY in execve(2)), so its descriptor is opened again.
        &format!("head -c {bytes} >&3; exec 4</proc/self/fd/3; exec 3>&-; exec 5<&-"),
        &format!("if [ \"$(wc -c </proc/self/fd/4)\" -eq {bytes} ]; then exec /proc/self/fd/4 agent; fi"),
        "echo tollgate could not be copied there >&2; exit 1",
    ]
    .join("; ")
}

/// The directories that a script of this name may have made if it ran on this machine with these variables.
pub(crate) fn directories_here(name: &str) -> Vec<PathBuf> {
    let value = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let temporary = value("TMPDIR").unwrap_or_else(|| "/tmp".into());
    let directories = [Some(temporary), Some("/var/tmp".into()), Some("/dev/shm".into()), value("HOME")];
    directories.into_iter().flatten().filter(|path| path.is_absolute()).map(|path| path.join(name)).collect()
}

/// A unique name. It does not look like a private directory's, or the next run would remove it as one that was left.
pub(crate) fn name() -> Result<String, EnvironmentError> {
    new_name(".tollgate-copy-").map_err(|error| EnvironmentError::new("getrandom(2)", error))
}

/// Writes the program to the command. Returns early if the command answers or ends, or if it has been silent for too long
/// since `heard`: reading bytes counts as a sign of life.
pub(crate) fn write(
    agent: &Agent,
    to: &OwnedFd,
    from: &OwnedFd,
    heard: &mut Instant,
    patience: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Seen>, EnvironmentError> {
    let (mut file, _) = agent.open()?;
    let fault = |error: io::Error| EnvironmentError::new("pipe", errno(&error));
    let before = rustix::fs::fcntl_getfl(to).map_err(|error| EnvironmentError::new("pipe", error))?;
    let set =
        |flags| rustix::fs::fcntl_setfl(to, flags).map_err(|error| EnvironmentError::new("pipe", error));
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
                // The caller looks for the command's end or its answer.
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

#[cfg(test)]
mod tests;
