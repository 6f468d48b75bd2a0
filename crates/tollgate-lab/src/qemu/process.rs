//! One QEMU process. It ends when the value is dropped, or when this program ends.

#![allow(unsafe_code)] // The child between fork and exec.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};
use tollgate_model::text::commands_a_reader;
use tollgate_os::memfd::Said;
use tollgate_os::process::{self, Program};

/// Bytes of its messages that are kept. A write of more fails.
const MAX_COMPLAINT: usize = 4096;
const LOOK: Duration = Duration::from_millis(1);
/// The interval of waiting; its messages are checked after each.
const INTERVAL: Duration = Duration::from_millis(100);
/// The message of a QEMU that then hangs.
const STANDS_STILL: &str = "KVM internal error";

#[derive(Debug)]
pub(super) struct Process {
    child: Program,
    /// Its messages, in a memory file: a pipe that is not read would fill.
    complaints: Said,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Exited(ExitStatus),
    /// The receiver refused more, for this reason.
    Refused(String),
    TimeIsOver,
}

impl Process {
    /// Starts QEMU, with an image to load if there is one.
    pub fn start(program: &Path, arguments: &[String], image: Option<OwnedFd>) -> io::Result<Self> {
        let complaints = Said::new(MAX_COMPLAINT as u64)?;
        let mut command = Command::new(program);
        command.args(arguments).env("LC_ALL", "C").current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(complaints.stream()?);
        let inherited = image.as_ref().map(AsRawFd::as_raw_fd);
        if let Some(fd) = inherited {
            command.arg("-kernel").arg(format!("/proc/self/fd/{fd}"));
        }
        process::bind(&mut command, move || prepare(inherited));
        let child = Program(command.spawn()?);
        Ok(Self { child, complaints })
    }

    /// Passes its output to `take` until it ends, `take` returns a reason to stop, or the deadline comes.
    pub fn listen(
        &mut self,
        deadline: Option<Instant>,
        mut take: impl FnMut(&[u8]) -> Option<String>,
    ) -> io::Result<End> {
        let left =
            || deadline.map_or(INTERVAL, |deadline| deadline.saturating_duration_since(Instant::now()));
        let mut output = self.child.0.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut part = [0; 4096];
        loop {
            let left = left();
            if left.is_zero() {
                return Ok(End::TimeIsOver);
            }
            let timeout = Timespec { tv_sec: 0, tv_nsec: left.min(INTERVAL).subsec_nanos().into() };
            match poll(&mut [PollFd::new(&output, PollFlags::IN)], Some(&timeout)) {
                Ok(0) => match self.complaint().filter(|complaint| complaint.starts_with(STANDS_STILL)) {
                    Some(complaint) => return Ok(End::Refused(format!("QEMU said: {complaint}"))),
                    None => continue,
                },
                Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            match output.read(&mut part) {
                Ok(0) => break,
                Ok(got) => {
                    if let Some(why) = take(&part[..got]) {
                        return Ok(End::Refused(why));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        while !left().is_zero() {
            if let Some(status) = self.child.0.try_wait()? {
                return Ok(End::Exited(status));
            }
            std::thread::sleep(LOOK);
        }
        Ok(End::TimeIsOver)
    }

    pub fn complaint(&self) -> Option<String> {
        complaint(&self.complaints.beginning(MAX_COMPLAINT))
    }
}

/// Runs in the child: disables core files, and keeps the image open.
fn prepare(inherited: Option<i32>) -> io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    // SAFETY: fcntl takes an open descriptor and no pointer.
    match inherited.map(|fd| unsafe { libc::fcntl(fd, libc::F_SETFD, 0) }) {
        None | Some(0) => Ok(()),
        Some(_) => Err(io::Error::last_os_error()),
    }
}

/// Returns the first line that is not a warning, without the program's name and characters that cannot be printed.
fn complaint(said: &str) -> Option<String> {
    let mut lines =
        said.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains(": warning: "));
    let line = lines.next()?;
    let line = line.strip_prefix(&format!("{}: ", super::PROGRAM)).unwrap_or(line);
    Some(line.replace(commands_a_reader, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, patience: Duration) -> (End, String, Option<String>) {
        let arguments = ["-c".to_owned(), script.to_owned()];
        let mut process = Process::start(Path::new("/bin/sh"), &arguments, None).unwrap();
        let mut said = Vec::new();
        let end = process.listen(Instant::now().checked_add(patience), |bytes| {
            said.extend(bytes);
            (said.len() > 100_000).then(|| "enough".to_owned())
        });
        (end.unwrap(), String::from_utf8(said).unwrap(), process.complaint())
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn its_messages_and_its_status_are_read() {
        let (end, said, complaint) =
            shell("echo one; echo 'qemu-system-x86_64: no such thing' >&2; exit 33", LONG);
        assert!(matches!(end, End::Exited(status) if status.code() == Some(33)), "{end:?}");
        assert_eq!((said.as_str(), complaint.as_deref()), ("one\n", Some("no such thing")));
    }

    #[test]
    fn who_does_not_end_is_ended() {
        // The sleeps are longer than a test that waits for them.
        let (end, said, _) = shell("echo one; exec sleep 100000", Duration::from_millis(200));
        assert!(end == End::TimeIsOver && matches!(said.as_str(), "" | "one\n"), "{end:?} {said:?}");
        let (end, _, _) = shell("exec >&-; exec sleep 100000", Duration::from_millis(200));
        assert_eq!(end, End::TimeIsOver, "one who has closed its output");
    }

    #[test]
    fn who_says_too_much_is_ended() {
        let (end, said, _) = shell("while :; do echo 0123456789; done", LONG);
        assert_eq!(end, End::Refused("enough".to_owned()));
        assert!(said.len() < 110_000);
    }

    #[test]
    fn who_stands_still_is_ended() {
        let (end, _, _) = shell("echo 'KVM internal error. Suberror: 1' >&2; exec sleep 100000", LONG);
        assert_eq!(end, End::Refused("QEMU said: KVM internal error. Suberror: 1".to_owned()));
    }

    #[test]
    fn no_core_file_is_left() {
        let (end, said, _) = shell("ulimit -c; ulimit -H -c; kill -ABRT $$", LONG);
        assert_eq!(said, "0\n0\n");
        assert!(matches!(end, End::Exited(status) if status.code().is_none()));
    }

    #[test]
    fn warnings_are_no_complaints() {
        let said = "\nqemu-system-x86_64: warning: TCG doesn't support it\nqemu-system-x86_64: -cpu X: no\u{7} such\n";
        assert_eq!(complaint(said).as_deref(), Some("-cpu X: no such"));
        assert_eq!(complaint(""), None);
    }
}
