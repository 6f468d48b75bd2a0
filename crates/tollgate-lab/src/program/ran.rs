use crate::guest::{self, Complaint, Record, Report, Serial, Text, Thread, ThreadState};
use crate::interpreter::written;
use crate::{EngineNote, Output, Provenance};

use super::Program;

/// The most bytes of an instruction. SDM 2A, "Instruction format".
const LONGEST: usize = 15;
/// The program number for an archive that the kernel refused as a whole.
const ARCHIVE: u8 = 0xff;
/// The selector of the kernel's 32-bit code of ring 3.
pub(crate) const CODE_32: u16 = 0x1b;

/// The result of a run of programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Executor of the code.
    pub provenance: Provenance,
    /// The vendor string that CPUID shows in the guest; `None` if the guest ended before reporting it.
    pub maker: Option<String>,
    /// Output of the programs, in order.
    pub written: Vec<Written>,
    /// The ends of each program's threads of control, by number. A thread without an end was running when the machine
    /// was stopped.
    pub programs: Vec<Vec<Control>>,
    /// Programs that the kernel did not load, with its reason, a number of errno. A program of `None` stands for all of them.
    pub unloaded: Vec<(Option<usize>, u32)>,
    /// Why the machine was stopped before every program had ended, in a clause.
    pub cut_short: Option<String>,
    /// A fault of the kernel itself, which is a defect.
    pub broken: Option<guest::Fault>,
    /// Lines of the serial port that could not be read, with their numbers from 1.
    pub complaints: Vec<(usize, Complaint)>,
    /// Remarks on the choice of the engine.
    pub notes: Vec<EngineNote>,
}

/// Bytes that a program wrote in one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Index of the program, from 0.
    pub program: usize,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A thread of control that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// Number of the thread, as the system call `self` returns it.
    pub number: u32,
    /// How it ended.
    pub end: End,
}

/// How a thread of control ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It ended itself.
    Exit {
        /// Its argument of `exit`.
        status: u64,
        /// Ticks of the time-stamp counter from its first instruction to its end, including time in which others ran.
        ticks: u64,
        /// Number of system calls that it made.
        calls: u64,
        /// How often it was given the processor.
        switches: u64,
    },
    /// A fault ended its program.
    Fault(Box<Fault>),
    /// It waits for a thread that can never end.
    Stuck,
}

/// Why the kernel ended a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// An exception.
    Exception {
        /// Vector of the exception.
        vector: u8,
        /// Error code; 0 if the exception has none.
        error: u32,
        /// CR2: the address of a page fault.
        cr2: u64,
    },
    /// An instruction that the engine does not know, although a processor may execute it.
    Unknown,
}

/// A fault that ended a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Cause of the fault.
    pub cause: Cause,
    /// CS: 1b for 32-bit code.
    pub cs: u16,
    /// The saved RIP: the address of the instruction, or after a trap (#DB, #BP, #OF) that of the next one. SDM 3A,
    /// "Program or task restart".
    pub rip: u64,
    /// Address of the instruction; `None` for #DB, which may follow a jump.
    pub at: Option<u64>,
    /// RSP, RFLAGS, and the ticks until the fault.
    pub place: ThreadState,
    /// RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15; `None` if the line was lost.
    pub general: Option<[u64; 16]>,
    /// Bytes of the instruction, from the program's file; empty if it ran elsewhere, or its address is unknown.
    pub bytes: Vec<u8>,
    /// The instruction in Intel's syntax; empty without bytes.
    pub text: String,
}

impl Ran {
    pub(crate) fn new(programs: &[Program], output: &Output, notes: Vec<EngineNote>) -> Self {
        let serial = Serial::read(whole_lines(&output.serial));
        let mut ran = Self {
            provenance: output.provenance.clone(),
            maker: None,
            written: Vec::new(),
            programs: vec![Vec::new(); programs.len()],
            unloaded: Vec::new(),
            cut_short: output.cut_short.clone(),
            broken: None,
            complaints: serial.complaints,
            notes,
        };
        for record in &serial.records {
            ran.add(record, programs);
        }
        ran.name_unknown(output);
        if !matches!(serial.records.last(), Some(Record::End { .. })) && ran.cut_short.is_none() {
            ran.cut_short = Some("the guest ended before its programs".to_owned());
        }
        for controls in &mut ran.programs {
            controls.sort_by_key(|control| control.number);
        }
        ran
    }

    fn add(&mut self, record: &Record, programs: &[Program]) {
        match *record {
            Record::Begin { maker, .. } => self.maker = Some(maker.name()),
            Record::Broken { fault } => self.broken = Some(fault),
            Record::Program(ref report) => self.report(report, programs),
            _ => {}
        }
    }

    fn report(&mut self, report: &Report, programs: &[Program]) {
        let fault = |thread: Thread, cause, cs, rip, place| {
            let program = programs.get(usize::from(thread.program));
            let at = match cause {
                Cause::Exception { vector, .. } => program.and_then(|program| program.raised(vector, rip)),
                Cause::Unknown => Some(rip),
            };
            let bytes = program.zip(at).map_or_else(Default::default, |(it, at)| it.bytes_at(at, LONGEST));
            let (length, text) = written(bytes, cs != CODE_32, at.unwrap_or(rip));
            let bytes = bytes.get(..length).unwrap_or_default().to_vec();
            End::Fault(Box::new(Fault { cause, cs, rip, at, place, general: None, bytes, text }))
        };
        match *report {
            Report::Out { program, ref text } => self.write(program.into(), text),
            Report::Exit { thread, status, ticks, calls, switches } => {
                self.end(thread, End::Exit { status, ticks, calls, switches });
            }
            Report::Dead { thread, fault: guest::Fault { vector, error, cs, rip }, cr2, place } => {
                self.end(thread, fault(thread, Cause::Exception { vector, error, cr2 }, cs, rip, place));
            }
            Report::Unknown { thread, cs, rip, place } => {
                self.end(thread, fault(thread, Cause::Unknown, cs, rip, place));
            }
            Report::Registers { thread, general } => self.registers(thread, general),
            Report::Stuck { thread } => self.end(thread, End::Stuck),
            Report::Unloaded { program, why } => {
                self.unloaded.push(((program != ARCHIVE).then_some(program.into()), why));
            }
            Report::Stop => {}
        }
    }

    fn write(&mut self, program: usize, text: &Text) {
        match self.written.last_mut() {
            Some(last) if last.program == program => last.bytes.extend_from_slice(text.bytes()),
            _ => self.written.push(Written { program, bytes: text.bytes().to_vec() }),
        }
    }

    fn end(&mut self, thread: Thread, end: End) {
        if let Some(controls) = self.programs.get_mut(usize::from(thread.program)) {
            controls.push(Control { number: thread.number, end });
        }
    }

    fn registers(&mut self, thread: Thread, general: [u64; 16]) {
        let controls = self.programs.get_mut(usize::from(thread.program));
        let last =
            controls.and_then(|controls| controls.last_mut()).filter(|last| last.number == thread.number);
        if let Some(Control { end: End::Fault(fault), .. }) = last {
            fault.general = Some(general);
        }
    }

    /// Takes the bytes of unknown instructions from the engine: they may have changed since the file was loaded.
    fn name_unknown(&mut self, output: &Output) {
        let faults = self.programs.iter_mut().flatten().filter_map(|control| match &mut control.end {
            End::Fault(fault) if fault.cause == Cause::Unknown => Some(fault),
            _ => None,
        });
        for fault in faults {
            if let Some(unknown) = output.unknown.iter().find(|unknown| unknown.rip == fault.rip) {
                fault.bytes.clone_from(&unknown.bytes);
                fault.text.clone_from(&unknown.text);
            }
        }
    }

    /// Returns all output of a program.
    pub fn output(&self, program: usize) -> Vec<u8> {
        let own = self.written.iter().filter(|written| written.program == program);
        own.flat_map(|written| written.bytes.iter().copied()).collect()
    }

    /// Returns the fault that ended a program.
    pub fn fault(&self, program: usize) -> Option<&Fault> {
        self.programs.get(program)?.iter().find_map(|control| match &control.end {
            End::Fault(fault) => Some(fault.as_ref()),
            End::Exit { .. } | End::Stuck => None,
        })
    }

    /// Returns the end of a program's first thread of control, number 0; `None` if it had not ended, even if later ones had.
    pub fn first(&self, program: usize) -> Option<&Control> {
        self.programs.get(program)?.first().filter(|control| control.number == 0)
    }

    /// Returns the status of a program: that of its first thread of control. `None` if that thread did not end by itself.
    pub fn status(&self, program: usize) -> Option<u64> {
        match self.first(program)?.end {
            End::Exit { status, .. } => Some(status),
            End::Fault(_) | End::Stuck => None,
        }
    }
}

/// Removes the line that was incomplete when the machine was stopped.
fn whole_lines(serial: &[u8]) -> &[u8] {
    let end = serial.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    serial.get(..end).unwrap_or_default()
}
