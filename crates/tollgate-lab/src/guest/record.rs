//! The guest's output: records of one line each over the serial port, version 1.
//!
//! `tg1 <kind> <fields> *<checksum>`: words with one space between them. Each field is a number in hexadecimal, in
//! lower case and without leading zeros. The checksum has 8 digits: FNV-1a of 32 bits over everything before its space.
//! A line ends with a newline, which a carriage return may precede. Text before `tg1` in a line, and lines without it,
//! are not the guest's: firmware writes to the same port.
//!
//! | kind | fields |
//! |---|---|
//! | `begin` | the vendor's name as CPUID 0 has it in EBX and EDX, and in ECX; EAX of CPUID 1; features; n; rounds |
//! | `try` | experiment: it is attempted now |
//! | `done` | experiment; round; iterations; ticks with one operation per iteration, with two; arrivals in the first, in the second; value |
//! | `lacks` | experiment; the features that are missing |
//! | `fault` | experiment; round; vector; error code; CS; RIP; arrivals until then |
//! | `broken` | vector; error code; CS; RIP: a fault outside any experiment |
//! | `refused` | none: a processor without long mode |
//! | `end` | number of lines before this one |
//!
//! Records of programs (`P` and `T` are the program and its thread):
//!
//! | kind | fields |
//! |---|---|
//! | `unloaded` | P, or ff for the archive; why, a number of errno |
//! | `out` | P; up to 64 bytes that it wrote, two digits each |
//! | `exit` | P; T; status; ticks; system calls; how often it was given the processor |
//! | `dead` | P; T; vector; error code; CS; RIP; CR2, 0 unless it is a page fault; RSP; RFLAGS; ticks |
//! | `unknown` | P; T; CS; RIP; RSP; RFLAGS; ticks: an instruction that the engine does not know |
//! | `regs` | P; T; RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15 at its end |
//! | `stuck` | P; T: it waits for another thread for ever |
//! | `stop` | none: no thread is left |
//!
//! A field that is added, or changes its meaning, requires a new version.

mod parse;
mod report;
#[cfg(test)]
mod tests;

use std::fmt;

pub use parse::{Complaint, Serial};
pub use report::{Report, Text, Thread, ThreadState};

const VERSION: &str = "tg1";

/// The processor's vendor, by the 12 characters of CPUID 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Maker {
    /// EBX in the low half, EDX in the high half.
    pub ebx_edx: u64,
    /// ECX.
    pub ecx: u32,
}

impl Maker {
    /// Returns the characters, such as `GenuineIntel`. Characters that are not printable become question marks.
    pub fn name(self) -> String {
        let bytes = self.ebx_edx.to_le_bytes().into_iter().chain(self.ecx.to_le_bytes());
        bytes.map(|byte| if byte.is_ascii_graphic() { char::from(byte) } else { '?' }).collect()
    }
}

/// A fault and where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fault {
    /// Vector of the exception.
    pub vector: u8,
    /// Error code; 0 if the exception has none.
    pub error: u32,
    /// CS of the interrupted code; its lowest two bits are the ring.
    pub cs: u16,
    /// Address of the interrupted instruction.
    pub rip: u64,
}

impl Fault {
    /// Returns the ring of the interrupted code.
    pub const fn ring(self) -> u8 {
        (self.cs & 3) as u8
    }
}

/// A round: two batches of the same number of iterations, one with one operation per iteration and one with two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Round {
    /// Iterations of each batch (n).
    pub iterations: u32,
    /// Ticks of the time-stamp counter in the first batch.
    pub ticks_one: u64,
    /// Ticks in the second batch. The difference is n operations, without the loop.
    pub ticks_two: u64,
    /// Operations that arrived in the first batch.
    pub count_one: u64,
    /// Operations that arrived in the second batch.
    pub count_two: u64,
    /// The value that the last operation found or computed.
    pub value: u64,
}

impl Round {
    /// Returns the ticks of n operations; `None` if the second batch was shorter, which can happen on a disturbed processor.
    pub const fn ticks(self) -> Option<u64> {
        self.ticks_two.checked_sub(self.ticks_one)
    }

    /// Returns whether each operation arrived exactly once.
    pub fn is_counted(self) -> bool {
        let iterations = u64::from(self.iterations);
        self.count_one == iterations && self.count_two == 2 * iterations
    }
}

/// One line.
#[expect(missing_docs, reason = "the table above has the fields")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Record {
    /// The first line of a run.
    Begin { maker: Maker, signature: u32, features: u64, operations: u32, rounds: u32 },
    /// An experiment is attempted. If no result follows, it ended the run.
    Try { experiment: u8 },
    /// A round ended.
    Done { experiment: u8, number: u32, round: Round },
    /// The processor lacks features that an experiment needs.
    Lacks { experiment: u8, features: u64 },
    /// A fault ended an experiment.
    Fault { experiment: u8, number: u32, fault: Fault, count: u64 },
    /// A fault outside any experiment made the guest give up.
    Broken { fault: Fault },
    /// The processor has no long mode.
    Refused,
    /// A report on a program.
    Program(Report),
    /// The last line.
    End { lines: u32 },
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, fields) = self.parts();
        let mut line = format!("{VERSION} {kind}");
        for field in fields {
            line.push_str(&format!(" {field:x}"));
        }
        if let Self::Program(report) = self
            && let Some(digits) = report.text()
        {
            line.push_str(&format!(" {digits}"));
        }
        write!(f, "{line} *{:08x}", checksum(line.as_bytes()))
    }
}

impl Record {
    fn parts(&self) -> (&'static str, Vec<u64>) {
        match *self {
            Self::Begin { maker, signature: s, features, operations: n, rounds } => {
                let Maker { ebx_edx, ecx } = maker;
                ("begin", vec![ebx_edx, ecx.into(), s.into(), features, n.into(), rounds.into()])
            }
            Self::Try { experiment } => ("try", vec![experiment.into()]),
            Self::Done { experiment, number, round } => {
                let Round { iterations: n, ticks_one, ticks_two, count_one, count_two, value } = round;
                let own = [n.into(), ticks_one, ticks_two, count_one, count_two, value];
                ("done", [[experiment.into(), number.into()].as_slice(), &own].concat())
            }
            Self::Lacks { experiment, features } => ("lacks", vec![experiment.into(), features]),
            Self::Fault { experiment, number, fault, count } => {
                ("fault", [[experiment.into(), number.into()].as_slice(), &fault.fields(), &[count]].concat())
            }
            Self::Broken { fault } => ("broken", fault.fields().to_vec()),
            Self::Refused => ("refused", Vec::new()),
            Self::Program(report) => report.parts(),
            Self::End { lines } => ("end", vec![lines.into()]),
        }
    }
}

impl Fault {
    fn fields(self) -> [u64; 4] {
        [self.vector.into(), self.error.into(), self.cs.into(), self.rip]
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, &byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
