use serde::{Deserialize, Serialize};
use tollgate_model::traced::Ended;

/// The end of a bench process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It finished its task.
    Finished,
    /// It exited with this status instead.
    Exited(i32),
    /// It was killed by this signal.
    Killed(i32),
    /// It made no progress for the time allowed, and was killed.
    Stalled,
    /// The time of the whole run was over, and it was killed.
    OutOfTime,
    /// The user asked to stop, and it was killed.
    Interrupted,
}

impl From<Ended> for Ending {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Signal(signal) => Self::Killed(signal),
            Ended::Exit(0) => Self::Finished,
            Ended::Exit(code) => Self::Exited(code),
        }
    }
}

impl Ending {
    /// Returns the reason why the running instance failed.
    pub fn describe(self, stall: std::time::Duration) -> String {
        match self {
            Self::Finished => "ended".to_owned(),
            Self::Exited(code) => format!("its process ended with status {code}"),
            Self::Killed(libc::SIGKILL) => {
                "its process was killed by SIGKILL, perhaps by the out-of-memory killer".to_owned()
            }
            Self::Killed(libc::SIGSYS) => "killed by SIGSYS: a seccomp filter forbids it".to_owned(),
            Self::Killed(signal) => format!("its process was killed by {}", signal_name(signal)),
            Self::Stalled => format!("no progress for {:.1} s: it hangs", stall.as_secs_f64()),
            Self::OutOfTime => "it took longer than the time that the run had left for it".to_owned(),
            Self::Interrupted => "interrupted".to_owned(),
        }
    }
}

/// Returns `SIGSEGV` for 11, or the number if it has no name.
pub fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}
