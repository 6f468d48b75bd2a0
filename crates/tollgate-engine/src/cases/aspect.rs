//! What is measured of an environment itself, by the side that starts it.

/// What a case measures of an environment itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    /// The time from fork(2) of its first process to its agent's first message.
    Start,
    /// A part of that, of a guest.
    Phase(Phase),
    /// The time from fork(2) of its first process to the first byte of a shell in the agent's place.
    StartToShell,
    /// The time from the end of its input to the end of its last process.
    Stop,
    /// Bytes, while its agent waits for a request.
    Memory(Memory),
    /// The time for a page that it has never had.
    FirstTouch,
}

/// A part of a guest's start, each from the end of the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// From fork(2) to the first byte of the firmware.
    Monitor,
    /// To the first byte of the kernel.
    Firmware,
    /// To the first program of the guest.
    Kernel,
    /// To the agent's first message.
    Init,
}

impl Phase {
    /// All of them, in the order of time.
    pub const ALL: [Self; 4] = [Self::Monitor, Self::Firmware, Self::Kernel, Self::Init];

    /// Its name in the parameters of a case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Monitor => "monitor",
            Self::Firmware => "firmware",
            Self::Kernel => "kernel",
            Self::Init => "init",
        }
    }
}

/// Whose memory is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Memory {
    /// Its processes on this machine: their proportional set sizes.
    Processes,
    /// The growth of this machine's page cache since before the start.
    PageCache,
    /// What a kernel of its own says is in use.
    Inside,
}

impl Memory {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Processes, Self::PageCache, Self::Inside];

    /// Its name in the parameters of a case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::PageCache => "page-cache",
            Self::Inside => "inside",
        }
    }
}
