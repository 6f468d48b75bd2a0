use tollgate_model::stats;
use tollgate_output::figures;
use tollgate_output::table::{Look, Table, paragraph};
use tollgate_x86::walk::Exception;

use crate::guest::{Ending, Fault, Group, Round};
use crate::{Defect, EngineNote, EntryRow, Mistake, Note, Obstacle, Provenance, Results, Status};

/// Formats the table and its remarks as text, at most `width` columns wide.
pub fn page(results: &Results, remarks: &[String], width: usize) -> String {
    let unit = unit(results.provenance.as_ref());
    let has_references = results.rows.iter().any(|row| row.references.is_some());
    let columns = ["experiment", unit.unwrap_or("result"), "reads", "writes"];
    let mut table =
        if has_references { Table::new(&columns).with_dispensable(2) } else { Table::new(&columns[..2]) };
    let mut headed: Option<Group> = None;
    for EntryRow { experiment, status, references } in &results.rows {
        if headed.replace(experiment.group) != Some(experiment.group) {
            table.heading(group(experiment.group));
        }
        let (look, figure, remark) = shown(status, unit.is_some());
        let [reads, writes] = references.map_or([String::new(), String::new()], |references| {
            [references.reads, references.writes].map(|number| number.to_string())
        });
        let remarks: Vec<String> =
            [experiment.operation.to_owned(), remark].into_iter().filter(|text| !text.is_empty()).collect();
        table.row(look, &[format!("  {}", experiment.name), figure, reads, writes], &remarks);
    }
    let mut text = table.render(width);
    text.push('\n');
    text.push_str(&paragraph(&whereabouts(results), width, ""));
    for remark in remarks {
        text.push_str(&paragraph(remark, width, ""));
    }
    text
}

/// Returns the unit of the guest's clock, for one operation; `None` if its figures mean nothing.
pub(crate) fn unit(provenance: Option<&Provenance>) -> Option<&'static str> {
    match provenance {
        Some(Provenance::Interpreter | Provenance::QemuTcg { icount: true }) => Some("instructions"),
        Some(Provenance::Kvm | Provenance::QemuKvm) => Some("cycles"),
        Some(Provenance::KvmEmulated { .. } | Provenance::QemuTcg { icount: false }) => None,
        None => Some("ticks"),
    }
}

/// Returns the ticks of one operation: the median of all rounds that were not disturbed.
pub(crate) fn per_operation(rounds: &[Round]) -> Option<f64> {
    stats::median(&rounds.iter().filter_map(sample).collect::<Vec<_>>())
}

/// Returns the ticks of one operation in a round; `None` if the round was disturbed.
pub fn sample(round: &Round) -> Option<f64> {
    Some(round.ticks()? as f64 / f64::from(round.iterations.max(1)))
}

fn shown(status: &Status, has_figures: bool) -> (Look, String, String) {
    match status {
        Status::Done(rounds) if has_figures => match per_operation(rounds) {
            Some(ticks) => (Look::Plain, amount(ticks), String::new()),
            None => (Look::Flagged, "?".to_owned(), "every round was disturbed".to_owned()),
        },
        Status::Done(_) => (Look::Plain, "done".to_owned(), String::new()),
        Status::Refused { fault, is_right: true } => {
            (Look::Plain, name(*fault), "refused, as the manual says".to_owned())
        }
        Status::Refused { fault, is_right: false } => {
            (Look::Flagged, name(*fault), "refused, which is not what the manual says".to_owned())
        }
        Status::Lacks(features) => {
            (Look::Faint, "lacking".to_owned(), format!("this processor has no {}", features.join(", ")))
        }
        Status::Defect(what) => (Look::Faint, "a defect".to_owned(), defect(*what).to_owned()),
        Status::NotHere(why) => (Look::Faint, "not here".to_owned(), obstacle(why)),
        Status::Wrong(what) => (Look::Flagged, "wrong".to_owned(), mistake(*what)),
    }
}

/// Describes a known defect of an engine.
pub fn defect(defect: Defect) -> &'static str {
    match defect {
        Defect::LockedMove => "QEMU's translator executes lock mov as a mov; #UD is right",
        Defect::CompatSyscall => {
            "QEMU's translator has SYSCALL in compatibility mode on Intel's processors too; #UD is right"
        }
        Defect::CompatSysenter => {
            "QEMU's translator enters by SYSENTER in compatibility mode on AMD's processors too; #UD is right"
        }
        Defect::ErrorCode => {
            "QEMU's translator gives the vector times 16 plus 2 as the error code; times 8 plus 2 is right"
        }
        Defect::NonCanonicalReturn => {
            "QEMU's translator returns to an address that is not canonical; it should raise #GP first"
        }
    }
}

/// Says why an engine did not execute an experiment.
pub fn obstacle(obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::NoTime => "the time for all experiments was over".to_owned(),
        Obstacle::Ended => "the guest ended".to_owned(),
        Obstacle::CutShort(why) => why.clone(),
        Obstacle::Emulator(fault) => format!("KVM's emulator raises {} instead", name(*fault)),
    }
}

/// Says how an experiment failed to do its operation.
pub fn mistake(mistake: Mistake) -> String {
    match mistake {
        Mistake::NotRefused => "it was done, but the manual says that it must be refused".to_owned(),
        Mistake::Count { counted: [one, two], executed: [of_one, of_two] } => {
            format!("{one} and {two} of {of_one} and {of_two} operations arrived")
        }
        Mistake::Value(value) => format!("the last operation left {value:x}"),
    }
}

/// Formats a remark on a run.
pub fn note(note: &Note) -> String {
    match note {
        Note::Engine(EngineNote::Emulated { why }) => {
            format!("KVM emulates ring 0 here, so its times are not latencies: {why}.")
        }
        Note::Engine(EngineNote::NoKvm { why }) => {
            format!("{why}; without KVM only instructions are counted.")
        }
        Note::Line { number, complaint } => format!("line {number}: {complaint}"),
        Note::Ending(Ending::Complete) => "The run ended.".to_owned(),
        Note::Ending(Ending::Lost { written, read }) => {
            format!("The guest wrote {written} records, but only {read} were received.")
        }
        Note::Ending(Ending::Broken(fault)) => format!(
            "A fault outside any experiment ended the run: vector {:x} at {:x}.",
            fault.vector, fault.rip
        ),
        Note::Ending(Ending::Refused) => "The processor has no long mode.".to_owned(),
        Note::Ending(Ending::Cut) => "The run did not end.".to_owned(),
    }
}

pub(super) fn amount(ticks: f64) -> String {
    if ticks.fract() == 0.0 { format!("{ticks:.0}") } else { figures::significant(ticks, 3) }
}

/// Names a fault with its error code: `#GP(412)`.
pub fn name(fault: Fault) -> String {
    exception(fault.vector, (fault.error != 0).then_some(fault.error))
}

pub(crate) fn exception(vector: u8, code: Option<u32>) -> String {
    let mnemonic = Exception(vector).mnemonic();
    let name = mnemonic.map_or_else(|| format!("exception {vector}"), |name| format!("#{name}"));
    code.map_or(name.clone(), |code| format!("{name}({code:x})"))
}

pub(crate) fn group(group: Group) -> &'static str {
    match group {
        Group::Crossings => "crossings",
        Group::Traps => "traps",
        Group::Pieces => "pieces of an entry",
        Group::Interrupts => "interrupts",
        Group::Wrong => "set-ups that must be refused",
    }
}

fn whereabouts(results: &Results) -> String {
    let engine =
        results.provenance.as_ref().map_or("Executed elsewhere: the unit of a tick is unknown", executed);
    let maker = results.maker.as_deref().map_or(String::new(), |maker| format!("; the guest found {maker}"));
    format!("{engine}{maker}. One operation, without the loop around it.")
}

pub(super) fn executed(provenance: &Provenance) -> &'static str {
    match provenance {
        Provenance::Interpreter => "Executed by the interpreter: it counts instructions and has no times",
        Provenance::QemuTcg { icount: true } => {
            "Executed by QEMU's translator: it counts instructions and has no times"
        }
        Provenance::QemuTcg { icount: false } => "Executed by QEMU's translator: its times are not latencies",
        Provenance::Kvm => {
            "Executed by the processor, in a guest under KVM; in cycles of the time-stamp counter"
        }
        Provenance::QemuKvm => {
            "Executed by the processor, in QEMU's guest under KVM; in cycles of the time-stamp counter"
        }
        Provenance::KvmEmulated { .. } => "Executed by KVM's emulator: its times are not latencies",
    }
}
