//! A fault that ended a program: its instruction, its registers, and what the processor did.

use std::ops::Range;

use serde::Serialize;
use tollgate_dump::output::{Walked, walk};
use tollgate_model::text::clean;
use tollgate_output::table::{heading, paragraph};
use tollgate_x86::walk::{Exception, Mode};

use super::super::text;
use crate::Moment;
use crate::program::{CODE_32, is_refused_lock};
use crate::system::{ADDRESSES, Cause, Fault};

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FaultOfProgram"))]
pub(super) struct FaultRecord {
    /// The exception's name, or null.
    exception: Option<String>,
    /// The exception's vector, or null.
    vector: Option<u8>,
    /// The exception's error code, or null.
    error: Option<u32>,
    /// The address of a page fault, or null.
    cr2: Option<String>,
    /// The saved CS.
    cs: String,
    /// The saved RIP. After a trap it points past `instruction`.
    rip: String,
    /// The saved RSP.
    rsp: String,
    /// The saved RFLAGS.
    rflags: String,
    /// The general-purpose registers.
    registers: Vec<RegisterRecord>,
    /// The bytes of the instruction.
    bytes: String,
    /// The instruction.
    instruction: String,
    /// The meaning of the fault, in sentences.
    why: String,
    /// The address by which the text names the fault: that of the instruction, or RIP if that is not known.
    #[serde(skip)]
    at: String,
    /// The processor's steps, as in a walk of [`decode`](#decode); or null.
    walk: Option<Walked>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SavedRegister"))]
struct RegisterRecord {
    /// Its name.
    name: &'static str,
    /// Its value.
    value: String,
}

const NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];
const READ: [usize; 16] = [0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

/// Bits of a page fault's error code. SDM 3A, "Interrupt 14: page-fault exception".
const PRESENT: u32 = 1;
const WRITE: u32 = 1 << 1;
const RESERVED: u32 = 1 << 3;
const FETCH: u32 = 1 << 4;

/// The page of every address space that has the test-and-set; it may be read and executed.
const TEST_AND_SET: Range<u64> = 0x3fff_f000..0x4000_0000;

pub(super) fn outcome(fault: &Fault) -> &'static str {
    match fault.cause {
        Cause::Exception { .. } => "fault",
        Cause::Unknown => "unknown",
    }
}

impl FaultRecord {
    pub(super) fn new(fault: &Fault, moment: Option<&Moment>) -> Self {
        let (vector, error, cr2) = match fault.cause {
            Cause::Exception { vector, error, cr2 } => {
                let is_of_a_page = Exception(vector) == Exception::PAGE_FAULT;
                (Some(vector), Some(error), is_of_a_page.then(|| format!("{cr2:#x}")))
            }
            Cause::Unknown => (None, None, None),
        };
        let general = fault.general.iter().flatten().zip(NAMES);
        // The bytes at the moment of the fault; the program may have written them itself.
        let (bytes, instruction) = moment
            .filter(|moment| !moment.bytes.is_empty())
            .map_or((&fault.bytes, &fault.text), |moment| (&moment.bytes, &moment.text));
        Self {
            exception: vector.map(|vector| text::exception(vector, code(vector, error))),
            vector,
            error,
            cr2,
            cs: format!("{:#x}", fault.cs),
            rip: format!("{:#x}", fault.rip),
            rsp: format!("{:#x}", fault.place.rsp),
            rflags: format!("{:#x}", fault.place.rflags),
            registers: general
                .map(|(value, name)| RegisterRecord { name, value: format!("{value:#x}") })
                .collect(),
            bytes: bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "),
            instruction: instruction.clone(),
            why: why(
                &fault.cause,
                fault.rip,
                is_refused_lock(bytes, if fault.cs == CODE_32 { 32 } else { 64 }),
            ),
            at: format!("{:x}", moment.map(|moment| moment.before.rip).or(fault.at).unwrap_or(fault.rip)),
            walk: moment.zip(vector).map(|(moment, vector)| walked(fault, moment, vector, error)),
        }
    }

    /// Returns `#PF(7)`, or `unknown` for an instruction that the engine does not know.
    pub(super) fn name(&self) -> String {
        self.exception.clone().unwrap_or_else(|| "unknown".to_owned())
    }

    pub(super) fn about(&self) -> String {
        format!("at {}: {}", self.at, self.why)
    }

    pub(super) fn page(&self, program: &str, width: usize) -> String {
        let mut page = heading(&format!("{program}: {} at {}", self.name(), self.at), width);
        if !self.bytes.is_empty() {
            page.push_str(&format!("  {}  [{}]\n", clean(&self.instruction), self.bytes));
        }
        page.push_str(&paragraph(&format!("{}.", self.why), width, "  "));
        let of = |value: &str| format!("{:0>16}", bare(value));
        let mut line =
            format!("  rip {}  rflags {:0>8}  cs {}\n", of(&self.rip), bare(&self.rflags), bare(&self.cs));
        let by_number: Vec<String> =
            self.registers.iter().map(|it| format!("{:3} {}", it.name, of(&it.value))).collect();
        let read: Vec<&str> = READ.iter().filter_map(|&at| by_number.get(at).map(String::as_str)).collect();
        for three in read.chunks(if width < 68 { 1 } else { 3 }) {
            line.push_str(&format!("  {}\n", three.join("  ")));
        }
        page.push_str(&line);
        match &self.walk {
            Some(walked) => {
                page.push('\n');
                page.push_str(&walk(walked, width));
            }
            None if self.vector.is_some() => {
                let missing =
                    "A second run, in the interpreter, did not reach this fault, so there is no walk.";
                page.push_str(&paragraph(missing, width, "  "));
            }
            None => {}
        }
        page
    }
}

fn bare(value: &str) -> &str {
    value.trim_start_matches("0x")
}

/// Returns the error code of an exception that has one. SDM 3A, table "Protected-mode exceptions and interrupts".
fn code(vector: u8, error: Option<u32>) -> Option<u32> {
    error.filter(|_| matches!(vector, 8 | 10..=14 | 17 | 21))
}

/// Says in a clause what went wrong, including a LOCK prefix that makes the instruction invalid.
fn why(cause: &Cause, rip: u64, is_refused_lock: bool) -> String {
    let (vector, error, cr2) = match *cause {
        Cause::Exception { vector, error, cr2 } => (vector, error, cr2),
        Cause::Unknown => {
            return "an instruction unknown to the interpreter; a processor may execute it".to_owned();
        }
    };
    let exception = Exception(vector);
    if exception == Exception::PAGE_FAULT {
        return of_a_page(error, cr2, rip);
    }
    let name = exception.name().unwrap_or("an exception");
    match exception.0 {
        7 => format!("{name}: the kernel keeps no x87 state; build for the general registers only"),
        6 if is_refused_lock => format!(
            "{name}: LOCK goes before ADD, ADC, AND, BTC, BTR, BTS, CMPXCHG, CMPXCHG8B, CMPXCHG16B, DEC, INC, NEG, NOT, OR, SBB, \
             SUB, XADD, XCHG and XOR alone, and where their destination is memory (SDM 2A, LOCK)"
        ),
        6 => format!(
            "{name}: no instruction, one that this processor's CPUID does not offer, or one of MMX, SSE or AVX, whose \
             registers the kernel does not keep"
        ),
        1 | 3 | 4 => format!("{name}: a trap, after which RIP points past the instruction"),
        13 => format!("{name}: an instruction, an address or a selector that is not for ring 3"),
        _ => name.to_owned(),
    }
}

fn of_a_page(error: u32, cr2: u64, rip: u64) -> String {
    let has = |bit: u32| error & bit != 0;
    let access = match (has(FETCH) || cr2 == rip, has(WRITE)) {
        (true, _) => "an instruction's fetch",
        (false, true) => "a write",
        (false, false) => "a read",
    };
    let page = match (has(PRESENT), has(RESERVED)) {
        (false, _) => "where no page is mapped",
        (true, true) => "where the page table's entry has a reserved bit",
        (true, false) if TEST_AND_SET.contains(&cr2) => {
            "in the page of the test-and-set, which may not be written"
        }
        (true, false) if !ADDRESSES.contains(&cr2) => "in a page that is not for ring 3",
        (true, false) if has(WRITE) => "in a page that may not be written",
        (true, false) if has(FETCH) => "in a page that may not be executed",
        (true, false) => "in a page that may not be read",
    };
    format!("{access} at {cr2:x}, {page}")
}

fn walked(fault: &Fault, moment: &Moment, vector: u8, error: Option<u32>) -> Walked {
    let mode = if fault.cs == CODE_32 { Mode::Compatibility } else { Mode::Long64 };
    Walked {
        entry: text::exception(vector, code(vector, error)),
        vendor: None,
        from: mode.to_string(),
        cpl: 3,
        steps: moment.steps.iter().map(ToString::to_string).collect(),
        crosses: true,
        outcome: "the kernel has the fault, and ends the program".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpreter::written;

    #[test]
    fn a_lock_prefix_that_makes_an_instruction_invalid_is_the_reason() {
        let invalid = Cause::Exception { vector: 6, error: 0, cr2: 0 };
        let why = |bytes: &[u8]| why(&invalid, 0, is_refused_lock(bytes, 64));
        let locked = [0xf0, 0x89, 0xc8];
        assert_eq!(written(&locked, true, 0), (3, "lock mov eax,ecx".to_owned()));
        assert!(why(&locked).starts_with("invalid opcode: LOCK goes before ADD, "), "{}", why(&locked));
        // LOCK may go before INC, but not with a register as its destination.
        assert_eq!(why(&[0xf0, 0xff, 0xc0]), why(&locked));
        for other in [&[0x0f, 0xb9, 0xc8][..], &[0xf0, 0xff, 0x07], &[]] {
            assert!(why(other).starts_with("invalid opcode: no instruction, "), "{other:?}");
        }
    }
}
