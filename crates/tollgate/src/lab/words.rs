//! A run of the guest, for eyes.

use tollgate_lab::Provenance;
use tollgate_lab::guest::{Fault, Group, Round};
use tollgate_model::stats;
use tollgate_x86::walk::Exception;

use super::course::{Came, Course, Row};
use crate::figures;
use crate::table::{Look, Table, paragraph};

/// The table, and what is to be said of it.
pub fn page(course: &Course, width: usize) -> String {
    let unit = unit(course.provenance.as_ref());
    let has_references = course.rows.iter().any(|row| row.references.is_some());
    let columns = ["experiment", unit.unwrap_or("came to"), "reads", "writes"];
    let mut table = match has_references {
        true => Table::new(&columns).with_dispensable(2),
        false => Table::new(&columns[..2]),
    };
    let mut headed: Option<Group> = None;
    for Row { experiment, came, references } in &course.rows {
        if headed.replace(experiment.group) != Some(experiment.group) {
            table.heading(group(experiment.group));
        }
        let (look, figure, remark) = told(came, unit.is_some());
        let [reads, writes] = references.map_or([String::new(), String::new()], |references| {
            [references.reads, references.writes].map(|number| number.to_string())
        });
        let remarks: Vec<String> =
            [experiment.operation.to_owned(), remark].into_iter().filter(|text| !text.is_empty()).collect();
        table.row(look, &[format!("  {}", experiment.name), figure, reads, writes], &remarks);
    }
    let mut text = table.render(width);
    text.push('\n');
    text.push_str(&paragraph(&whereabouts(course), width, ""));
    for remark in &course.remarks {
        text.push_str(&paragraph(remark, width, ""));
    }
    text
}

/// In what the guest's clock counts, for one operation; none where its figures say nothing.
pub fn unit(provenance: Option<&Provenance>) -> Option<&'static str> {
    match provenance {
        Some(Provenance::Interpreter | Provenance::QemuTcg { icount: true }) => Some("instructions"),
        Some(Provenance::Kvm | Provenance::QemuKvm) => Some("cycles"),
        Some(Provenance::KvmEmulated { .. } | Provenance::QemuTcg { icount: false }) => None,
        None => Some("ticks"),
    }
}

/// The ticks of one operation: of all rounds the median. None where a disturbed round was the shorter one.
pub fn per_operation(rounds: &[Round]) -> Option<f64> {
    stats::median(&rounds.iter().filter_map(sample).collect::<Vec<_>>())
}

/// The ticks of one operation in a round; none where the round was disturbed.
pub fn sample(round: &Round) -> Option<f64> {
    Some(round.ticks()? as f64 / f64::from(round.turns.max(1)))
}

fn told(came: &Came, has_figures: bool) -> (Look, String, String) {
    match came {
        Came::Done(rounds) if has_figures => match per_operation(rounds) {
            Some(ticks) => (Look::Plain, amount(ticks), String::new()),
            None => (Look::Flagged, "?".to_owned(), "every round was disturbed".to_owned()),
        },
        Came::Done(_) => (Look::Plain, "done".to_owned(), String::new()),
        Came::Refused { fault, is_right: true } => {
            (Look::Plain, name(*fault), "refused, as the manual says".to_owned())
        }
        Came::Refused { fault, is_right: false } => {
            (Look::Flagged, name(*fault), "refused, and not as the manual says".to_owned())
        }
        Came::Lacks(features) => {
            (Look::Faint, "lacking".to_owned(), format!("this processor has no {}", features.join(", ")))
        }
        Came::Defect(what) => (Look::Faint, "a defect".to_owned(), (*what).to_owned()),
        Came::NotHere(why) => (Look::Faint, "not here".to_owned(), why.clone()),
        Came::Wrong(what) => (Look::Flagged, "wrong".to_owned(), what.clone()),
    }
}

/// A whole number as one.
fn amount(ticks: f64) -> String {
    match ticks.fract() == 0.0 {
        true => format!("{ticks:.0}"),
        false => figures::significant(ticks, 3),
    }
}

/// `#GP(412)`
pub fn name(fault: Fault) -> String {
    exception(fault.vector, (fault.error != 0).then_some(fault.error))
}

/// An exception by its vector, with the error code that it has.
pub fn exception(vector: u8, code: Option<u32>) -> String {
    let mnemonic = Exception(vector).mnemonic();
    let name = mnemonic.map_or_else(|| format!("exception {vector}"), |name| format!("#{name}"));
    code.map_or(name.clone(), |code| format!("{name}({code:x})"))
}

/// What a group is called.
pub fn group(group: Group) -> &'static str {
    match group {
        Group::Crossings => "crossings",
        Group::Traps => "traps",
        Group::Pieces => "pieces of an entry",
        Group::Interrupts => "interrupts",
        Group::Wrong => "set-ups that are to be refused",
    }
}

fn whereabouts(course: &Course) -> String {
    let engine = match &course.provenance {
        Some(Provenance::Interpreter) => {
            "Executed by the interpreter: instructions are counted, and no time can be told"
        }
        Some(Provenance::QemuTcg { icount: true }) => {
            "Executed by QEMU's translator: instructions are counted, and no time can be told"
        }
        Some(Provenance::QemuTcg { icount: false }) => {
            "Executed by QEMU's translator: its times are no prices"
        }
        Some(Provenance::Kvm) => {
            "Executed by the processor, in a guest under KVM; in cycles of the time-stamp counter"
        }
        Some(Provenance::QemuKvm) => {
            "Executed by the processor, in QEMU's guest under KVM; in cycles of the time-stamp counter"
        }
        Some(Provenance::KvmEmulated { .. }) => "Executed by KVM's emulator: its times are no prices",
        None => "Executed elsewhere: what a tick is, its place would have to say",
    };
    let maker = course.maker.as_deref().map_or(String::new(), |maker| format!("; the guest found {maker}"));
    format!("{engine}{maker}. One operation, without the loop around it.")
}
