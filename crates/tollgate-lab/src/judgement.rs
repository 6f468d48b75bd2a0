//! Judges the outcome of an experiment by its own counts, by the manuals, and by the known defects of the engines.

use tollgate_x86::Vendor;

use crate::Provenance;
use crate::guest::{Expected, Experiment, Fault, Feature, Outcome, Round};

/// The vector of the wrong gates.
const GATE: u32 = 0x82;

/// The result of an experiment.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// Rounds of all machines, in order, with the same number from each. Every round executed its operations.
    Done(Vec<Round>),
    /// A fault; `is_right` if the vendor's manual requires it.
    Refused { fault: Fault, is_right: bool },
    /// The processor lacks these features.
    Lacks(Vec<&'static str>),
    /// The engine is known to differ from a processor here.
    Defect(Defect),
    /// The engine could not execute it.
    NotHere(Obstacle),
    /// It ended without doing its operation.
    Wrong(Mistake),
}

/// A known defect of QEMU's translator (target/i386/tcg).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// `lock mov` is executed as a `mov`; #UD is due.
    LockedMove,
    /// SYSCALL from compatibility mode enters on Intel processors too; #UD is due.
    CompatSyscall,
    /// SYSENTER from compatibility mode enters on AMD processors too; #UD is due.
    CompatSysenter,
    /// A gate's error code is its vector times 16 plus 2; times 8 plus 2 is due.
    ErrorCode,
    /// A return to a non-canonical address is executed; #GP before it is due.
    NonCanonicalReturn,
}

/// Why an engine did not execute an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// The time limit of all experiments was reached.
    NoTime,
    /// The guest ended before it.
    Ended,
    /// The engine stopped the guest, for this reason (a clause).
    CutShort(String),
    /// KVM's emulator raises this fault instead.
    Emulator(Fault),
}

/// How an experiment that ended failed to do its operation.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// It was done, but the manual says that the processor refuses it.
    NotRefused,
    /// In the two batches of a round, the handlers counted other numbers of operations than were executed.
    Count { counted: [u64; 2], executed: [u64; 2] },
    /// The last operation left this value, which is not the expected one.
    Value(u64),
}

pub(crate) fn judge(
    experiment: &Experiment,
    provenance: Option<&Provenance>,
    vendor: Vendor,
    outcome: &Outcome,
    stopped: impl Fn() -> Obstacle,
) -> Status {
    let is_tcg = matches!(provenance, Some(Provenance::QemuTcg { .. }));
    let is_emulated = matches!(provenance, Some(Provenance::KvmEmulated { .. }));
    if let Some(defect) = is_tcg.then(|| defect_of_qemu(experiment, vendor, outcome)).flatten() {
        return Status::Defect(defect);
    }
    let expected = experiment.expected(vendor);
    match outcome {
        Outcome::Done(_) if expected != Expected::Done => Status::Wrong(Mistake::NotRefused),
        Outcome::Done(rounds) => match rounds.iter().find_map(|round| mistake_of(experiment, *round)) {
            Some(mistake) => Status::Wrong(mistake),
            // The first of several rounds ran on cold caches.
            None if rounds.len() > 1 => Status::Done(rounds[1..].to_vec()),
            None => Status::Done(rounds.clone()),
        },
        Outcome::Lacks(features) => {
            let is_lacking = |feature: &Feature| features & feature.bit() != 0;
            Status::Lacks(Feature::ALL.into_iter().filter(is_lacking).map(Feature::name).collect())
        }
        Outcome::Fault { fault, .. } if is_emulated && expected != expected_of(*fault) => {
            Status::NotHere(Obstacle::Emulator(*fault))
        }
        Outcome::Fault { fault, .. } => {
            Status::Refused { fault: *fault, is_right: expected == expected_of(*fault) }
        }
        Outcome::Stopped(_) => Status::NotHere(stopped()),
    }
}

fn defect_of_qemu(experiment: &Experiment, vendor: Vendor, outcome: &Outcome) -> Option<Defect> {
    let is_done = matches!(outcome, Outcome::Done(_));
    let expected = experiment.expected(vendor);
    let fault = if let Outcome::Fault { fault, .. } = outcome { Some(*fault) } else { None };
    match experiment.name {
        "ud-lock-mov" | "ud-lock-mov-ring0" if is_done => Some(Defect::LockedMove),
        "compat-syscall" if is_done && vendor == Vendor::Intel => Some(Defect::CompatSyscall),
        "compat-sysenter" if vendor == Vendor::Amd && !matches!(outcome, Outcome::Lacks(_)) => {
            (fault.map_or(Expected::Done, expected_of) != expected).then_some(Defect::CompatSysenter)
        }
        // QEMU's `do_interrupt64` before its correction: entries of 16 bytes also scale the error code.
        "wrong-gate-dpl" | "wrong-gate-absent" | "wrong-idt-limit" => {
            fault.filter(|fault| fault.error == GATE * 16 + 2).map(|_| Defect::ErrorCode)
        }
        "wrong-return" | "wrong-iret" => {
            let is_late = |fault: &Fault| fault.ring() == 3 && expected != expected_of(*fault);
            fault.filter(is_late).map(|_| Defect::NonCanonicalReturn)
        }
        _ => None,
    }
}

fn expected_of(fault: Fault) -> Expected {
    Expected::Fault { vector: fault.vector, error: fault.error, ring: fault.ring() }
}

fn mistake_of(experiment: &Experiment, round: Round) -> Option<Mistake> {
    if experiment.counted && !round.is_counted() {
        return Some(Mistake::Count {
            counted: [round.count_one, round.count_two],
            executed: [u64::from(round.iterations), 2 * u64::from(round.iterations)],
        });
    }
    let is_due = experiment.value.is_none_or(|value| value == round.value);
    (!is_due).then_some(Mistake::Value(round.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Round =
        Round { iterations: 10, ticks_one: 100, ticks_two: 200, count_one: 10, count_two: 20, value: 0 };

    fn status(name: &str, provenance: &Provenance, outcome: &Outcome) -> Status {
        let experiment = Experiment::by_name(name).expect(name);
        judge(experiment, Some(provenance), Vendor::Intel, outcome, || Obstacle::Ended)
    }

    fn fault(vector: u8, error: u32, cs: u16) -> Outcome {
        Outcome::Fault { rounds: Vec::new(), fault: Fault { vector, error, cs, rip: 0 }, count: 0 }
    }

    #[test]
    fn the_first_of_several_rounds_does_not_count() {
        let done = |rounds: usize| status("int", &Provenance::Kvm, &Outcome::Done(vec![ROUND; rounds]));
        assert_eq!(done(1), Status::Done(vec![ROUND]));
        assert_eq!(done(3), Status::Done(vec![ROUND; 2]));
    }

    #[test]
    fn a_count_that_is_wrong_is_a_mistake() {
        let round = Round { count_two: 19, ..ROUND };
        let found = status("int", &Provenance::Kvm, &Outcome::Done(vec![ROUND, round]));
        let mistake = Mistake::Count { counted: [10, 19], executed: [10, 20] };
        assert_eq!(found, Status::Wrong(mistake));
    }

    #[test]
    fn a_fault_of_the_emulator_is_no_refusal() {
        let emulated = Provenance::KvmEmulated { why: String::new() };
        let outcome = fault(6, 0, 0);
        assert!(matches!(status("int", &emulated, &outcome), Status::NotHere(Obstacle::Emulator(_))));
        assert!(matches!(status("int", &Provenance::Kvm, &outcome), Status::Refused { is_right: false, .. }));
    }

    #[test]
    fn a_defect_is_looked_for_in_the_translator_alone() {
        let done = Outcome::Done(vec![ROUND]);
        let tcg = Provenance::QemuTcg { icount: true };
        assert_eq!(status("compat-syscall", &tcg, &done), Status::Defect(Defect::CompatSyscall));
        assert_eq!(
            status("compat-syscall", &Provenance::Interpreter, &done),
            Status::Wrong(Mistake::NotRefused)
        );
    }

    #[test]
    fn what_was_stopped_says_why() {
        let stopped = status("int", &Provenance::Kvm, &Outcome::Stopped(Vec::new()));
        assert_eq!(stopped, Status::NotHere(Obstacle::Ended));
    }
}
