//! Measurements of an environment itself, made by the side that starts it.

/// A measurement of an environment itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    /// The time from fork(2) of its first process to its agent's first message.
    Start,
    /// A phase of a guest's start.
    Phase(Phase),
    /// The time from fork(2) of its first process to the first byte of a shell that replaces the agent.
    StartToShell,
    /// The time from the end of its input to the end of its last process.
    Stop,
    /// Bytes, while its agent waits for a request.
    Memory(Memory),
    /// The time to touch a page that it never had before.
    FirstTouch,
}

/// A phase of a guest's start. Each begins at the end of the one before.
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
    /// Every phase, in the order of time.
    pub const ALL: [Self; 4] = [Self::Monitor, Self::Firmware, Self::Kernel, Self::Init];

    /// Returns the name in the parameters of a case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Monitor => "monitor",
            Self::Firmware => "firmware",
            Self::Kernel => "kernel",
            Self::Init => "init",
        }
    }
}

/// The memory to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Memory {
    /// The proportional set sizes of its processes on this machine.
    Processes,
    /// The growth of this machine's page cache since before the start.
    PageCache,
    /// The memory in use by its own kernel's account.
    Inside,
}

impl Memory {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Processes, Self::PageCache, Self::Inside];

    /// Returns the name in the parameters of a case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::PageCache => "page-cache",
            Self::Inside => "inside",
        }
    }
}
