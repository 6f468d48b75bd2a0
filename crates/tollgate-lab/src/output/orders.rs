//! The orders in which the programs of locks can run, and the results, as text and as JSON.

use serde::Serialize;
use tollgate_output::figures;
use tollgate_output::table::{Look, Table, heading, paragraph};
use tollgate_schedules::output::draw;
use tollgate_schedules::{Counterexample, Harm};

use crate::locks::{Bounds, OwnEntry, Point, Proof, Subject};

/// The results of trying the orders in which the programs of locks, mutants and entries can run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Proofs"))]
pub struct Orders {
    /// One for each lock, mutant or entry and each number of programs.
    proofs: Vec<ProofRecord>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Proof"))]
struct ProofRecord {
    /// The name of the lock, or of the SYSCALL entry.
    name: String,
    /// The group that it belongs to.
    #[serde(skip)]
    group: &'static str,
    /// A sentence about it; for a mutant, what is wrong with it.
    about: String,
    /// Whether it is a mutant, which must let a violation through.
    mutant: bool,
    /// The number of programs that run; for an entry, of threads.
    programs: usize,
    /// How often each program takes the lock, or makes a call.
    rounds: u32,
    /// The most preemptions in an order; null for any number.
    most_preemptions: Option<u8>,
    /// `holds`, `violated` or `not-decided`.
    verdict: &'static str,
    /// Whether the verdict is the expected one: `violated` for a mutant, `holds` for all others.
    as_expected: bool,
    /// States that were seen. If preemptions are bounded, a state counts once for each number of them that is left.
    states: usize,
    /// States in which the running program was preempted.
    preemption_points: usize,
    /// Instructions before which the running program was preempted.
    instructions: usize,
    /// Those of `instructions` in the page of the test-and-set.
    instructions_of_page: usize,
    /// States in which the handler of page faults sent a program back.
    restarts: usize,
    /// Whether all states were seen.
    complete: bool,
    /// A schedule that ends in a violation, as in [`schedules`](#schedules); or null.
    #[serde(rename = "counterexample")]
    violation: Option<Counterexample>,
    /// For an entry of the user's own: what interruptions find and lose before each instruction. Empty for other entries, and for an
    /// entry that loses something even without interruptions.
    points: Vec<PointRecord>,
    #[serde(skip)]
    lost: Option<&'static str>,
}

/// An instruction of an entry, and interruptions before it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "InterruptionPoint"))]
struct PointRecord {
    /// The instruction's address.
    address: u64,
    /// Its offset from `syscall_entry`, in bytes; null in ring 3.
    offset: Option<i64>,
    /// The instruction in Intel syntax.
    instruction: String,
    /// Whether RSP is still, or again, the caller's.
    on_caller_stack: bool,
    /// Whether GS has the base of ring 3.
    has_user_gs: bool,
    /// Losses from an interrupt before this instruction, one sentence each; null if no interrupt can come.
    interrupt: Option<Vec<String>>,
    /// Losses from an NMI before this instruction, one sentence each; null if no NMI can come.
    nmi: Option<Vec<String>>,
    /// Losses from a #MC before this instruction, one sentence each; null if no #MC can come.
    machine_check: Option<Vec<String>>,
    /// The three as words.
    #[serde(skip)]
    words: [String; 3],
}

impl Orders {
    /// Makes the document of proofs of locks, mutants and entries.
    pub fn of(proofs: &[(Subject, Proof)]) -> Self {
        Self { proofs: proofs.iter().map(|(subject, proof)| ProofRecord::new(*subject, proof)).collect() }
    }

    /// Makes the document of proofs of the user's own entries.
    pub fn own(proofs: &[(OwnEntry, Proof)]) -> Self {
        let records = proofs.iter().map(|(entry, proof)| {
            ProofRecord::named(entry.name.clone(), "entries of your own", entry.about.clone(), false, proof)
        });
        Self { proofs: records.collect() }
    }

    /// Returns the names of the subjects with an unexpected verdict: locks and entries must hold, and mutants must not.
    pub fn surprises(&self) -> Vec<&str> {
        self.proofs.iter().filter(|proof| !proof.as_expected).map(|proof| proof.name.as_str()).collect()
    }

    /// Formats the table as text, and `with_steps` the counterexamples after it.
    pub fn page(&self, with_steps: bool, width: usize) -> String {
        let mut text = self.table(width);
        text.push('\n');
        for sentence in self.sentences(with_steps) {
            text.push_str(&paragraph(&sentence, width, ""));
        }
        for proof in self.proofs.iter().filter(|_| with_steps) {
            if proof.violation.is_some() || proof.is_own() {
                text.push('\n');
                text.push_str(&heading(&proof.name, width));
                let wrong = if proof.is_own() { "" } else { "Wrong: " };
                let about = format!("{wrong}{}.", proof.about.trim_end_matches('.'));
                text.push_str(&paragraph(&about, width, ""));
            }
            if !proof.points.is_empty() {
                text.push('\n');
                text.push_str(&points(&proof.points).render(width));
            }
            if let Some(violation) = &proof.violation {
                text.push('\n');
                text.push_str(&draw(violation, 1, width));
            }
        }
        text
    }

    fn table(&self, width: usize) -> String {
        let columns = [self.first_head(), "programs", "preemptions", "points", "states", "verdict"];
        let mut table = Table::new(&columns).with_words(&["verdict"]);
        let mut headed = None;
        for proof in &self.proofs {
            if headed.replace(proof.group) != Some(proof.group) {
                table.heading(proof.group);
            }
            let cells = [
                format!("  {}", proof.name),
                proof.programs.to_string(),
                proof.most_preemptions.map_or("any".to_owned(), |most| format!("up to {most}")),
                proof.preemption_points.to_string(),
                proof.states.to_string(),
                proof.told().to_owned(),
            ];
            let look = if proof.as_expected { Look::Plain } else { Look::Flagged };
            table.row(look, &cells, &proof.remarks());
        }
        table.render(width)
    }

    fn first_head(&self) -> &'static str {
        if self.proofs.iter().all(ProofRecord::is_entry) { "entry" } else { "lock" }
    }

    fn sentences(&self, with_steps: bool) -> Vec<String> {
        const LOCKS: &str = "At a point, the timer takes the processor from the running program, before its next instruction. For a lock \
             that holds, every point is tried, with no more preemptions than the column says; the search of a mutant ends at a \
             violation. The interpreter executes them, and each program acquires the lock once.";
        const ENTRIES: &str = "At a point, the timer takes the processor from the running thread, before its next instruction, in ring 3 or in \
             ring 0. For an entry that holds, every point is tried; the search of a wrong one ends at a violation. The interpreter executes \
             them, and each thread makes one call: back in ring 3 it must have its own stack, registers, flags, segments and base of GS.";
        const OWN: &str = "NMI and #MC come before every instruction: after their handler, registers, flags and GS must be as they were. \
             The result of SYSCALL and the registers that it uses itself, rax, rcx and r11, may change.";
        let of = |is_entry: bool| self.proofs.iter().any(|proof| proof.is_entry() == is_entry);
        let said = [(false, LOCKS), (true, ENTRIES)].into_iter().filter(|(is_entry, _)| of(*is_entry));
        let mut sentences: Vec<String> = said.map(|(_, said)| said.to_owned()).collect();
        let restarted =
            self.proofs.iter().filter(|proof| !proof.mutant && proof.restarts > 0 && proof.complete);
        sentences.extend(restarted.take(1).map(|proof| {
            format!(
                "{}: preempted before each of {} instructions, {} of the page among them; the handler restarts it at {} points.",
                proof.name, proof.instructions, proof.instructions_of_page, proof.restarts
            )
        }));
        if self.proofs.iter().any(ProofRecord::is_own) {
            sentences.push(OWN.to_owned());
        }
        if !with_steps && self.proofs.iter().any(|proof| proof.violation.is_some()) {
            sentences
                .push("The name of a mutant shows its counterexample: tollgate lab NAME --prove".to_owned());
        }
        sentences
    }
}

impl ProofRecord {
    fn new(subject: Subject, proof: &Proof) -> Self {
        let (name, about) = (subject.name().to_owned(), subject.about().to_owned());
        Self::named(name, subject.group(), about, subject.is_mutant(), proof)
    }

    fn named(name: String, group: &'static str, about: String, mutant: bool, proof: &Proof) -> Self {
        let Bounds { programs, rounds, preemptions } = proof.bounds;
        let verdict = match (proof.holds(), proof.is_complete || proof.violation.is_some()) {
            (true, _) => "holds",
            (false, true) => "violated",
            (false, false) => "not-decided",
        };
        Self {
            name,
            group,
            about,
            mutant,
            programs,
            rounds,
            most_preemptions: preemptions,
            verdict,
            as_expected: verdict == if mutant { "violated" } else { "holds" },
            states: proof.states,
            preemption_points: proof.preemptions,
            instructions: proof.instructions,
            instructions_of_page: proof.in_primitive,
            restarts: proof.restarts,
            complete: proof.is_complete,
            violation: proof.violation.clone(),
            points: proof.points.iter().map(PointRecord::new).collect(),
            lost: proof.lost,
        }
    }

    fn is_own(&self) -> bool {
        self.group.ends_with("own")
    }

    fn is_entry(&self) -> bool {
        self.group.starts_with("entries")
    }

    fn told(&self) -> &'static str {
        match self.violation.as_ref().map(|violation| violation.harm) {
            None if self.verdict == "violated" => "an NMI or #MC loses",
            Some(_) if self.is_entry() => self.lost.unwrap_or("violated"),
            Some(Some(Harm::Exclusion)) => "two hold the lock",
            Some(Some(Harm::Crash)) => "a program is ended",
            Some(Some(Harm::Stuck)) => "a program is stuck",
            Some(_) => "an addition is lost",
            None if self.complete => "holds",
            None => "not decided",
        }
    }

    fn remarks(&self) -> Vec<String> {
        let about = self.mutant.then(|| self.about.to_owned());
        let steps = self
            .violation
            .as_ref()
            .map(|violation| format!("after {}", figures::count(violation.steps.len(), "step", "steps")));
        about.into_iter().chain(steps).collect()
    }
}

impl PointRecord {
    fn new(point: &Point) -> Self {
        let [interrupt, nmi, machine_check] = point.outcomes.clone().map(|outcome| {
            outcome.map(|losses| losses.into_iter().map(|(_, sentence)| sentence).collect::<Vec<_>>())
        });
        let words = [0, 1, 2].map(|at| match point.outcomes[at].as_deref() {
            None => "off".to_owned(),
            Some([]) => "holds".to_owned(),
            Some(losses) => losses.iter().map(|loss| loss.0).collect::<Vec<_>>().join(", "),
        });
        Self {
            address: point.address,
            offset: point.offset,
            instruction: point.instruction.clone(),
            on_caller_stack: point.on_caller_stack,
            has_user_gs: point.has_user_gs,
            interrupt,
            nmi,
            machine_check,
            words,
        }
    }

    fn outcomes(&self) -> [(&'static str, &Option<Vec<String>>); 3] {
        [("interrupt", &self.interrupt), ("NMI", &self.nmi), ("#MC", &self.machine_check)]
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<(&String, Vec<&str>)> = Vec::new();
        for (name, losses) in self.outcomes() {
            for loss in losses.iter().flatten() {
                match remarks.iter_mut().find(|(said, _)| *said == loss) {
                    Some((_, names)) => names.push(name),
                    None => remarks.push((loss, vec![name])),
                }
            }
        }
        remarks.iter().map(|(loss, names)| format!("{}: {loss}", names.join(", "))).collect()
    }
}

/// Tabulates what interruptions find before each instruction, and what they lose. Each remark is shown only once.
fn points(points: &[PointRecord]) -> Table {
    let mut table = Table::new(&["at", "next instruction", "stack", "GS", "interrupt", "NMI", "#MC"])
        .with_words(&["next instruction", "stack", "GS", "interrupt", "NMI", "#MC"]);
    let mut said = Vec::new();
    for point in points {
        let at = point.offset.map_or("ring 3".to_owned(), |offset| match offset {
            0.. => format!("+{offset:x}h"),
            _ => format!("{:x}h", point.address),
        });
        let whose = |is_callers: bool| if is_callers { "caller's" } else { "kernel's" }.to_owned();
        let [interrupt, nmi, machine_check] = point.words.clone();
        let cells = [
            at,
            point.instruction.clone(),
            whose(point.on_caller_stack),
            whose(point.has_user_gs),
            interrupt,
            nmi,
            machine_check,
        ];
        let remarks = point.remarks();
        let look = if remarks.is_empty() { Look::Plain } else { Look::Flagged };
        let new: Vec<String> = remarks.into_iter().filter(|remark| !said.contains(remark)).collect();
        table.row(look, &cells, &new);
        said.extend(new);
    }
    table
}
