//! The results of programs under the lab's kernel: a row for each, and each fault with its registers and its walk.

mod fault;

use fault::FaultRecord;
use serde::Serialize;
use tollgate_model::text::listed;
use tollgate_output::table::{Look, Table, paragraph};

use super::{json, text};
use crate::Moment;
use crate::system::{Control, End, Program, Ran};

/// The results of programs under the lab's kernel.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ExecutedPrograms"))]
pub struct Programs {
    /// The executor: `kvm`, `kvm-emulated`, `qemu-kvm`, `qemu-tcg` or `interpreter`.
    provenance: &'static str,
    /// The processor's vendor according to the guest's CPUID, or null.
    maker: Option<String>,
    /// The unit of a tick; null if ticks have no meaning.
    unit: Option<&'static str>,
    /// One object per program.
    programs: Vec<ProgramRecord>,
    /// Why the programs were stopped before all of them had ended, or null.
    cut_short: Option<String>,
    /// Remarks, one sentence each.
    remarks: Vec<String>,
    /// The executor, in a sentence.
    #[serde(skip)]
    executed: &'static str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ExecutedProgram"))]
struct ProgramRecord {
    /// The name of its file, at most 23 characters long.
    name: String,
    /// `exit`, `fault`, `unknown` (an instruction that the interpreter does not know), `stuck` (it waits forever), `not-loaded` or
    /// `stopped`.
    outcome: &'static str,
    /// The status that its first thread of control passed to `exit`, or null.
    status: Option<u64>,
    /// The threads of control that ended.
    threads: Vec<ThreadRecord>,
    /// The fault that ended it, or null. Addresses and register values are text in hexadecimal.
    fault: Option<FaultRecord>,
    /// Why it did not end by itself, or null.
    why: Option<String>,
    /// Its output, as text.
    output: String,
    /// The output's bytes in hexadecimal if it is not text, else null.
    output_hex: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ExecutedThread"))]
struct ThreadRecord {
    /// Its number.
    number: u32,
    /// How it ended.
    outcome: &'static str,
    /// The status that it passed to `exit`, or null.
    status: Option<u64>,
    /// The ticks that it took, or null.
    ticks: Option<u64>,
    /// The number of its system calls, or null.
    calls: Option<u64>,
    /// How often it got the processor, or null.
    switches: Option<u64>,
}

impl Programs {
    /// Makes the document of a run of these programs, with the delivery of each program's fault if it is known.
    pub fn new(ran: &Ran, programs: &[Program], walks: &[Option<Moment>]) -> Self {
        let unit = text::unit(Some(&ran.provenance));
        let record = |(at, program): (usize, &Program)| {
            ProgramRecord::new(ran, at, program, unit.is_some(), walks.get(at).and_then(Option::as_ref))
        };
        Self {
            provenance: json::provenance(&ran.provenance),
            maker: ran.maker.clone(),
            unit,
            programs: programs.iter().enumerate().map(record).collect(),
            cut_short: ran.cut_short.clone(),
            remarks: remarks(ran, programs.len()),
            executed: text::executed(&ran.provenance),
        }
    }
}

impl ProgramRecord {
    fn new(ran: &Ran, at: usize, program: &Program, has_figures: bool, walk: Option<&Moment>) -> Self {
        let controls = ran.programs.get(at).map(Vec::as_slice).unwrap_or_default();
        let fault = ran.fault(at);
        let unloaded = ran.unloaded.iter().find(|(which, _)| which.is_none_or(|which| which == at));
        let outcome = match (unloaded, fault, ran.first(at)) {
            (Some(_), ..) => "not-loaded",
            (_, Some(fault), _) => fault::outcome(fault),
            (.., Some(first)) => outcome(first),
            (.., None) => "stopped",
        };
        let why = match outcome {
            "not-loaded" => unloaded.map(|(_, why)| refused(*why)),
            "stopped" => ran.cut_short.clone(),
            "stuck" => Some("it waits for a thread of control that can never end".to_owned()),
            _ => None,
        };
        let bytes = ran.output(at);
        let is_text = std::str::from_utf8(&bytes).is_ok();
        Self {
            name: program.name.clone(),
            outcome,
            status: ran.status(at),
            threads: controls.iter().map(|control| ThreadRecord::new(control, has_figures)).collect(),
            fault: fault.map(|fault| FaultRecord::new(fault, walk)),
            why,
            output: String::from_utf8_lossy(&bytes).into_owned(),
            output_hex: (!is_text).then(|| bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        }
    }

    /// Returns the thread that the row describes: the one that faulted, or number 0; `None` if that had not ended.
    fn main(&self) -> Option<&ThreadRecord> {
        match self.fault {
            Some(_) => self.threads.iter().find(|thread| thread.outcome == self.outcome),
            None => self.threads.iter().find(|thread| thread.number == 0),
        }
    }

    fn told(&self) -> (Look, String, Vec<String>) {
        match (&self.fault, self.status) {
            (Some(fault), _) => (Look::Flagged, fault.name(), vec![fault.about()]),
            (None, Some(status)) => (Look::Plain, signed(status), Vec::new()),
            (None, None) => {
                (Look::Flagged, self.outcome.replace('-', " "), self.why.iter().cloned().collect())
            }
        }
    }
}

impl ThreadRecord {
    fn new(control: &Control, has_figures: bool) -> Self {
        let number = control.number;
        let outcome = outcome(control);
        match &control.end {
            End::Exit { status, ticks, calls, switches } => Self {
                number,
                outcome,
                status: Some(*status),
                ticks: Some(*ticks).filter(|_| has_figures),
                calls: Some(*calls),
                switches: Some(*switches),
            },
            End::Fault(fault) => {
                let ticks = Some(fault.place.ticks).filter(|_| has_figures);
                Self { number, outcome, status: None, ticks, calls: None, switches: None }
            }
            End::Stuck => Self { number, outcome, status: None, ticks: None, calls: None, switches: None },
        }
    }

    fn cells(&self) -> [String; 3] {
        [self.ticks, self.calls, self.switches].map(|it| it.map_or_else(String::new, |it| it.to_string()))
    }
}

fn outcome(control: &Control) -> &'static str {
    match &control.end {
        End::Exit { .. } => "exit",
        End::Fault(fault) => fault::outcome(fault),
        End::Stuck => "stuck",
    }
}

/// Formats a status as a program may have meant it: -1, not 18446744073709551615.
fn signed(status: u64) -> String {
    (status as i64).to_string()
}

fn refused(errno: u32) -> String {
    match errno {
        12 => "there is no memory for it".to_owned(),
        8 => "its place in the archive is invalid".to_owned(),
        14 => "a part of it is outside of the addresses of programs".to_owned(),
        other => format!("error {other} of the kernel"),
    }
}

fn remarks(ran: &Ran, programs: usize) -> Vec<String> {
    let mut remarks: Vec<String> =
        ran.notes.iter().map(|note| text::note(&crate::Note::Engine(note.clone()))).collect();
    if let Some(fault) = ran.broken {
        remarks.push(format!(
            "The lab's own kernel met {} at {:x}, which is a defect in it.",
            text::name(fault),
            fault.rip
        ));
    }
    let lines: Vec<String> = ran.complaints.iter().map(|(line, _)| line.to_string()).take(5).collect();
    if !lines.is_empty() {
        remarks.push(format!("Lines of the serial port that could not be read: {}.", listed(&lines)));
    }
    if let Some(why) = &ran.cut_short {
        remarks.push(format!("The programs were stopped before all of them had ended: {why}."));
    }
    if programs > 1 && text::unit(Some(&ran.provenance)).is_some() {
        remarks.push("The figure of a program counts from its first instruction to its end, even while others had the processor.".to_owned());
    }
    remarks
}

/// Formats the rows and the faults as text, at most `width` columns wide.
pub fn ended(document: &Programs, width: usize) -> String {
    let mut table = Table::new(&["program", "status", document.unit.unwrap_or("ticks"), "calls", "switches"]);
    for program in &document.programs {
        let (look, status, remarks) = program.told();
        let main = program.main();
        let [ticks, calls, switches] = main.map_or_else(Default::default, ThreadRecord::cells);
        table.row(look, &[program.name.clone(), status, ticks, calls, switches], &remarks);
        let number = main.map(|main| main.number);
        for thread in program.threads.iter().filter(|thread| Some(thread.number) != number) {
            let [ticks, calls, switches] = thread.cells();
            let status = thread.status.map_or_else(|| thread.outcome.to_owned(), signed);
            table.row(
                Look::Plain,
                &[format!("  thread {}", thread.number), status, ticks, calls, switches],
                &[],
            );
        }
    }
    let mut text = table.render(width);
    text.push('\n');
    let maker = document.maker.as_deref().map_or(String::new(), |maker| format!("; the guest found {maker}"));
    text.push_str(&paragraph(&format!("{}{maker}.", document.executed), width, ""));
    for remark in &document.remarks {
        text.push_str(&paragraph(remark, width, ""));
    }
    for program in &document.programs {
        if let Some(fault) = &program.fault {
            text.push('\n');
            text.push_str(&fault.page(&program.name, width));
        }
    }
    text
}
