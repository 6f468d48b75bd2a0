use super::Fault;

/// A thread of control of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thread {
    /// Index of the program in the archive.
    pub program: u8,
    /// Number of the thread; 0 is the program's first.
    pub number: u32,
}

/// Up to 64 bytes that a program wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text {
    bytes: [u8; Text::MOST],
    length: u8,
}

impl Text {
    /// The most bytes of one record.
    pub const MOST: usize = 64;

    /// Copies these bytes; `None` if there are none, or too many.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut text = Self { bytes: [0; Self::MOST], length: u8::try_from(bytes.len()).ok()? };
        text.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        (!bytes.is_empty()).then_some(text)
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// A thread's stack and flags, and the time that it had taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadState {
    /// RSP.
    pub rsp: u64,
    /// RFLAGS.
    pub rflags: u64,
    /// Ticks of the time-stamp counter since the thread was first entered, without those spent on the serial port.
    pub ticks: u64,
}

/// A record of a program.
#[expect(missing_docs, reason = "the table of records has the fields")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Report {
    /// A program was not loaded; `why` is a number of errno. Program ffh is the archive itself.
    Unloaded { program: u8, why: u32 },
    /// A program wrote.
    Out { program: u8, text: Text },
    /// A thread ended by itself. It made `calls` system calls, and was given the processor `switches` times.
    Exit { thread: Thread, status: u64, ticks: u64, calls: u64, switches: u64 },
    /// A fault ended a program.
    Dead { thread: Thread, fault: Fault, cr2: u64, place: ThreadState },
    /// An instruction that the engine does not know ended a program.
    Unknown { thread: Thread, cs: u16, rip: u64, place: ThreadState },
    /// The general registers, by number, at the end that the record before reports.
    Registers { thread: Thread, general: [u64; 16] },
    /// A thread waits for another for ever.
    Stuck { thread: Thread },
    /// No thread is left.
    Stop,
}

impl Thread {
    fn fields(self) -> [u64; 2] {
        [self.program.into(), self.number.into()]
    }
}

impl ThreadState {
    fn fields(self) -> [u64; 3] {
        [self.rsp, self.rflags, self.ticks]
    }
}

impl Report {
    /// Returns the kind and the fields, except the bytes that a program wrote.
    pub(super) fn parts(&self) -> (&'static str, Vec<u64>) {
        match *self {
            Self::Unloaded { program, why } => ("unloaded", vec![program.into(), why.into()]),
            Self::Out { program, .. } => ("out", vec![program.into()]),
            Self::Exit { thread, status, ticks, calls, switches } => {
                ("exit", [thread.fields().as_slice(), &[status, ticks, calls, switches]].concat())
            }
            Self::Dead { thread, fault, cr2, place } => {
                ("dead", [thread.fields().as_slice(), &fault.fields(), &[cr2], &place.fields()].concat())
            }
            Self::Unknown { thread, cs, rip, place } => {
                ("unknown", [thread.fields().as_slice(), &[cs.into(), rip], &place.fields()].concat())
            }
            Self::Registers { thread, general } => ("regs", [thread.fields().as_slice(), &general].concat()),
            Self::Stuck { thread } => ("stuck", thread.fields().to_vec()),
            Self::Stop => ("stop", Vec::new()),
        }
    }

    pub(super) fn text(&self) -> Option<String> {
        let Self::Out { text, .. } = self else { return None };
        Some(text.bytes().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}
