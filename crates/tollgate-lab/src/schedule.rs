//! Runs experiments on machine after machine, and collects their results.
//!
//! Each batch starts on a newly set up machine, so a fault, or a table that is wrong on purpose, costs one experiment.
//! The loop cancels out because one batch does the operation once per iteration and the other twice.

use tollgate_x86::Vendor;

use crate::engines::{Chosen, EngineChoice, EngineNote, choose, machine};
use crate::guest::{BASE, Complaint, Ending, Experiment, Image, Outcomes, Parameters, Serial};
use crate::host::Budget;
use crate::judgement::{Obstacle, Status, judge};
use crate::references::{References, references};
use crate::{Engine, LabError, Machine, Output, Provenance};

/// The number of machines that a 95 % CI needs.
const MACHINES: usize = 6;
const OPERATIONS: u32 = 100;
/// Operations of each round in an emulator: each takes a thousand times as long, and no figure is shown.
const FEW: u32 = 10;

/// The results of a run of the guest.
#[derive(Debug, Clone)]
pub struct Results {
    /// Executor; `None` if the guest ran elsewhere.
    pub provenance: Option<Provenance>,
    /// The vendor string that CPUID shows in the guest; `None` if the guest ended before reporting it.
    pub maker: Option<String>,
    /// Number of machines that executed each experiment, one after the other, in the same number of rounds.
    pub machines: usize,
    /// One row per requested experiment, in order.
    pub rows: Vec<EntryRow>,
    /// Remarks on the whole run.
    pub notes: Vec<Note>,
}

/// The result of one experiment.
#[derive(Debug, Clone)]
pub struct EntryRow {
    /// The experiment.
    pub experiment: &'static Experiment,
    /// How it ended.
    pub status: Status,
    /// Memory references of one operation, if the interpreter executed it.
    pub references: Option<References>,
}

/// A remark on a run.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A remark on the choice of the engine.
    Engine(EngineNote),
    /// A line of the serial port, numbered from 1, could not be read.
    Line { number: usize, complaint: Complaint },
    /// The run did not end as it should. Never [`Ending::Complete`].
    Ending(Ending),
}

/// Runs experiments, on as many machines, one after the other, as an interval needs.
///
/// `interrupted` is asked before each machine; a signal that it returns ends the run.
///
/// # Errors
/// [`LabError::Unavailable`] if the engine cannot be used, [`LabError::Interrupted`] with the signal.
pub fn run(
    experiments: &[&'static Experiment],
    choice: EngineChoice,
    vendor: Option<Vendor>,
    interrupted: &dyn Fn() -> Option<i32>,
) -> Result<Results, LabError> {
    let Chosen { engine, notes, emulated, rounds, limit } = choose(choice)?;
    let schedule = Schedule {
        experiments,
        engine: engine.as_ref(),
        machine: machine(vendor),
        emulated: emulated.as_deref(),
        rounds,
        budget: Budget::new(limit),
        interrupted,
    };
    let mut results = schedule.once()?;
    if emulated.is_none() {
        for _ in 1..MACHINES {
            let more = schedule.once()?;
            // A machine that ran out of time has not done all of them, so it does not count.
            if schedule.budget.left().is_zero() {
                break;
            }
            results.join(more);
        }
    }
    if results.provenance == Some(Provenance::Interpreter) {
        for row in results.rows.iter_mut().filter(|row| matches!(row.status, Status::Done(_))) {
            row.references = references(row.experiment, machine(vendor));
        }
    }
    results.notes.extend(notes.into_iter().map(Note::Engine));
    Ok(results)
}

/// Runs the guest once with `parameters`, and returns what it wrote to its serial port.
///
/// # Errors
/// [`LabError::Unavailable`] if the engine cannot be used, [`LabError::Unfinished`] if the guest did not end.
pub fn serial(
    parameters: &Parameters,
    choice: EngineChoice,
    vendor: Option<Vendor>,
) -> Result<Vec<u8>, LabError> {
    let Chosen { engine, .. } = choose(choice)?;
    let output = execute(engine.as_ref(), parameters, machine(vendor))?;
    match output.cut_short {
        None => Ok(output.serial),
        Some(why) => Err(LabError::Unfinished { why }),
    }
}

fn execute(engine: &dyn Engine, parameters: &Parameters, machine: Machine) -> Result<Output, LabError> {
    let image = Image::new(parameters);
    engine.run(image.bytes(), BASE, image.entry(), machine)
}

struct Schedule<'a> {
    experiments: &'a [&'static Experiment],
    engine: &'a dyn Engine,
    machine: Machine,
    emulated: Option<&'a str>,
    rounds: u32,
    budget: Budget,
    interrupted: &'a dyn Fn() -> Option<i32>,
}

impl Schedule<'_> {
    /// Runs all on one machine. If an experiment ends the machine, another machine runs those after it.
    fn once(&self) -> Result<Results, LabError> {
        let mut results = Results::default();
        let mut rest: Vec<&'static Experiment> = self.experiments.to_vec();
        while !rest.is_empty() {
            if let Some(signal) = (self.interrupted)() {
                return Err(LabError::Interrupted { signal });
            }
            let Some(machine) = self.budget.limit(self.machine) else {
                results.rows.extend(rest.drain(..).map(|experiment| EntryRow {
                    experiment,
                    status: Status::NotHere(Obstacle::NoTime),
                    references: None,
                }));
                break;
            };
            let parameters = Parameters {
                operations: if self.emulated.is_some() { FEW } else { OPERATIONS },
                rounds: self.rounds,
                chosen: rest.iter().copied().collect(),
                ..Parameters::default()
            };
            let output = execute(self.engine, &parameters, machine)?;
            let outcomes = Outcomes::of(&Serial::read(&output.serial).records);
            results.provenance = Some(match self.emulated {
                Some(why) => Provenance::KvmEmulated { why: why.to_owned() },
                None => output.provenance,
            });
            let known = results.take(&rest, &outcomes, output.cut_short.as_deref());
            // At least the experiment that ended the run has its row now.
            rest.drain(..known.max(1).min(rest.len()));
        }
        Ok(results)
    }
}

impl Default for Results {
    fn default() -> Self {
        Self { provenance: None, maker: None, machines: 1, rows: Vec::new(), notes: Vec::new() }
    }
}

impl Results {
    /// Reads the records of a guest that ran elsewhere.
    pub fn of_serial(serial: &Serial) -> Self {
        let outcomes = Outcomes::of(&serial.records);
        let all: Vec<&'static Experiment> =
            outcomes.experiments.iter().filter_map(|(number, _)| Experiment::numbered(*number)).collect();
        let mut results = Self::default();
        results.take(&all, &outcomes, None);
        for (number, complaint) in &serial.complaints {
            results.notes.push(Note::Line { number: *number, complaint: complaint.clone() });
        }
        if outcomes.ending != Ending::Complete {
            results.notes.push(Note::Ending(outcomes.ending));
        }
        results
    }

    /// Adds another machine's results for the same experiments. An experiment is done only if every machine did it.
    fn join(&mut self, other: Self) {
        self.machines += 1;
        for (row, another) in self.rows.iter_mut().zip(other.rows) {
            match (&mut row.status, another.status) {
                (Status::Done(rounds), Status::Done(more)) => rounds.extend(more),
                (Status::Done(_), other) => row.status = other,
                _ => {}
            }
        }
    }

    fn take(&mut self, these: &[&'static Experiment], outcomes: &Outcomes, cut: Option<&str>) -> usize {
        let maker = outcomes.maker.map(|maker| maker.name());
        let vendor = match maker.as_deref() {
            Some("AuthenticAMD" | "HygonGenuine") => Vendor::Amd,
            _ => Vendor::Intel,
        };
        self.maker = maker.or(self.maker.take());
        let stopped = || cut.map_or(Obstacle::Ended, |why| Obstacle::CutShort(why.to_owned()));
        let mut known = 0;
        for &experiment in these {
            let status = match outcomes.of_number(experiment.number) {
                Some(outcome) => judge(experiment, self.provenance.as_ref(), vendor, outcome, stopped),
                // Neither this experiment nor those after it have an outcome: the next machine begins with it, unless
                // this one did.
                None if known == 0 => Status::NotHere(stopped()),
                None => break,
            };
            self.rows.push(EntryRow { experiment, status, references: None });
            known += 1;
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen() -> Vec<&'static Experiment> {
        ["syscall", "int", "wrong-return"].map(|name| Experiment::by_name(name).expect(name)).to_vec()
    }

    #[cfg(target_arch = "x86_64")] // The guest is code of x86-64.
    #[test]
    fn every_machine_adds_its_rounds() {
        let results = run(&chosen(), EngineChoice::Interpreter, None, &|| None).expect("it is always there");
        assert!((1..=MACHINES).contains(&results.machines) && results.rows.len() == 3);
        for row in &results.rows[..2] {
            let Status::Done(rounds) = &row.status else { unreachable!("{row:?}") };
            assert_eq!(rounds.len(), results.machines);
            assert!(row.references.is_some());
        }
        assert!(matches!(results.rows[2].status, Status::Refused { is_right: true, .. }));
        assert_eq!(results.notes, []);
    }

    #[test]
    fn a_signal_ends_the_run() {
        let error = run(&chosen(), EngineChoice::Interpreter, None, &|| Some(15)).expect_err("it is stopped");
        assert!(matches!(error, LabError::Interrupted { signal: 15 }), "{error}");
    }

    #[cfg(target_arch = "x86_64")] // The guest is code of x86-64.
    #[test]
    fn a_machine_that_did_not_do_it_counts() {
        let results = || run(&chosen(), EngineChoice::Interpreter, None, &|| None).expect("it is there");
        let (mut one, mut other) = (results(), results());
        let machines = one.machines;
        let rounds_of_both = one.machines + other.machines;
        other.rows[1].status = Status::NotHere(Obstacle::NoTime);
        one.join(other);
        assert_eq!(one.machines, machines + 1);
        assert_eq!(one.rows[1].status, Status::NotHere(Obstacle::NoTime));
        assert!(matches!(&one.rows[0].status, Status::Done(rounds) if rounds.len() == rounds_of_both));
    }

    #[cfg(target_arch = "x86_64")] // The guest is code of x86-64.
    #[test]
    fn a_serial_port_that_was_cut_says_so() {
        let parameters = Parameters {
            operations: OPERATIONS,
            rounds: 1,
            chosen: chosen().into_iter().collect(),
            ..Parameters::default()
        };
        let text = serial(&parameters, EngineChoice::Interpreter, None).expect("it ends");
        let whole = Results::of_serial(&Serial::read(&text));
        assert_eq!((whole.rows.len(), whole.notes.len()), (3, 0));
        let lines: Vec<&str> = std::str::from_utf8(&text).expect("text").lines().collect();
        let cut = lines[..lines.len() - 1].join("\n") + "\ntg1 end 1 *0\n";
        let notes = Results::of_serial(&Serial::read(cut.as_bytes())).notes;
        assert!(matches!(notes[..], [Note::Line { .. }, Note::Ending(Ending::Cut)]), "{notes:?}");
    }
}
