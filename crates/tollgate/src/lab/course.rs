//! Running the guest, and what each experiment came to.

use std::time::Duration;

use tollgate_lab::guest::{
    BASE, Ending, Expected, Experiment, Fault, Feature, Image, Outcome, Outcomes, Parameters, Round, Serial,
};
use tollgate_lab::{
    Accelerator, Budget, Engine, Interpreter, Kvm, LabError, Machine, Output, Provenance, Qemu,
};
use tollgate_probes::bench::interrupt;
use tollgate_x86::Vendor;

use super::references::{References, references};
use super::words;
use crate::args::{Maker, On};
use crate::failure::{Failure, go_on};

/// Bytes of the guest's machine.
const MEMORY: usize = 16 << 20;
/// More instructions than all experiments together have.
const INSTRUCTIONS: u64 = 50_000_000;
/// As many machines, one after the other, give an interval of 95 %.
const MACHINES: usize = 6;
/// Rounds on each of them that count, where time is time.
const WARM: u32 = 10;
/// How often each operation is made.
const OPERATIONS: u32 = 100;
/// The same where each takes a thousand times as long and no figure is shown.
const FEW: u32 = 10;
/// The longest that one machine may take. All of them together take no longer than [`ALL_TOGETHER`].
const PATIENCE: Duration = Duration::from_secs(4);
/// Where experiments end their machines, no new one is begun after so much time.
const ALL_TOGETHER: Duration = Duration::from_secs(4);

/// What a run of the guest came to.
pub struct Course {
    /// What executed it; none where that was elsewhere.
    pub provenance: Option<Provenance>,
    /// Whose processor the guest found, as CPUID says; none where it did not come so far.
    pub maker: Option<String>,
    /// How many machines did each, one after the other, in as many rounds each.
    pub machines: usize,
    /// One for each experiment that was asked for, in their order.
    pub rows: Vec<Row>,
    /// What else is worth saying of the run, in sentences.
    pub remarks: Vec<String>,
}

/// What one experiment came to.
pub struct Row {
    /// Which.
    pub experiment: &'static Experiment,
    /// What it came to.
    pub came: Came,
    /// How often one operation refers to memory, where the interpreter executed it.
    pub references: Option<References>,
}

/// What an experiment can come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Came {
    /// Its rounds, machine after machine with the same number of them; each did what it was to do.
    Done(Vec<Round>),
    /// A fault, and whether it is the one that the maker's manual says.
    Refused {
        /// The fault.
        fault: Fault,
        /// Whether it was to be.
        is_right: bool,
    },
    /// The processor lacks these.
    Lacks(Vec<&'static str>),
    /// What executes the guest is known to do something else there than a processor.
    Defect(&'static str),
    /// What executes the guest could not go on there.
    NotHere(String),
    /// It came to an end and did not do what it was to do.
    Wrong(String),
}

/// An engine with the words for it.
struct Chosen {
    engine: Box<dyn Engine>,
    remarks: Vec<String>,
    /// Why its ring 0 is known to be emulated, where it is.
    emulated: Option<String>,
    /// Rounds on each machine. Where time is time the first one is cold, and is left out.
    rounds: u32,
}

/// Runs experiments: on as many machines, one after the other, as an interval needs.
///
/// # Errors
/// An engine that was asked for and is not there.
pub fn run(chosen: &[&'static Experiment], on: On, vendor: Option<Maker>) -> Result<Course, Failure> {
    interrupt::install();
    let Chosen { engine, remarks, emulated, rounds } = choose(on)?;
    go_on()?;
    let budget = Budget::new(ALL_TOGETHER);
    let mut course = once(chosen, engine.as_ref(), vendor, emulated.as_deref(), rounds, &budget)?;
    if emulated.is_none() {
        for _ in 1..MACHINES {
            course.join(once(chosen, engine.as_ref(), vendor, None, rounds, &budget)?);
        }
    }
    if course.provenance == Some(Provenance::Interpreter) {
        for row in &mut course.rows {
            go_on()?;
            let is_done = matches!(row.came, Came::Done(_));
            row.references = if is_done { references(row.experiment, machine(vendor)) } else { None };
        }
    }
    course.remarks.extend(remarks);
    Ok(course)
}

/// On one machine, and where one experiment ends it, on another with those behind it.
fn once(
    chosen: &[&'static Experiment],
    engine: &dyn Engine,
    vendor: Option<Maker>,
    emulated: Option<&str>,
    rounds: u32,
    budget: &Budget,
) -> Result<Course, Failure> {
    let mut course =
        Course { provenance: None, maker: None, machines: 1, rows: Vec::new(), remarks: Vec::new() };
    let mut rest: Vec<&'static Experiment> = chosen.to_vec();
    while !rest.is_empty() {
        go_on()?;
        let parameters = Parameters {
            operations: if emulated.is_some() { FEW } else { OPERATIONS },
            rounds,
            chosen: rest.iter().copied().collect(),
            ..Parameters::default()
        };
        let Some(machine) = budget.of(machine(vendor)) else {
            course.rows.extend(rest.drain(..).map(|experiment| Row {
                experiment,
                came: Came::NotHere("the time for all of them was over".to_owned()),
                references: None,
            }));
            break;
        };
        let output = execute(engine, &parameters, machine)?;
        // What a machine said that was interrupted is not what it would have said.
        go_on()?;
        let outcomes = Outcomes::of(&Serial::read(&output.serial).records);
        course.provenance = Some(match emulated {
            Some(why) => Provenance::KvmEmulated { why: why.to_owned() },
            None => output.provenance,
        });
        let told = course.take(&rest, &outcomes, output.cut_short.as_deref());
        // At least the one that ended the run has its row now.
        rest.drain(..told.max(1).min(rest.len()));
    }
    Ok(course)
}

/// What the guest says to other parameters than experiments.
///
/// # Errors
/// An engine that is not there, or that does not come to the end.
pub fn say(parameters: &Parameters, on: On, vendor: Option<Maker>) -> Result<Vec<u8>, Failure> {
    let Chosen { engine, .. } = choose(on)?;
    let output = execute(engine.as_ref(), parameters, machine(vendor))?;
    match output.cut_short {
        None => Ok(output.serial),
        Some(why) => Err(Failure::input(format!("the guest did not come to its end: {why}"))),
    }
}

/// The guest's machine.
pub fn machine(vendor: Option<Maker>) -> Machine {
    let vendor = vendor.map(|maker| match maker {
        Maker::Intel => Vendor::Intel,
        Maker::Amd => Vendor::Amd,
    });
    Machine { memory: MEMORY, vendor, patience: PATIENCE, instructions: INSTRUCTIONS }
}

fn execute(engine: &dyn Engine, parameters: &Parameters, machine: Machine) -> Result<Output, Failure> {
    let image = Image::new(parameters);
    engine.run(image.bytes(), BASE, image.entry(), machine).map_err(|error| refused(&error))
}

/// Why a guest was not run, in a sentence.
pub fn refused(error: &LabError) -> Failure {
    Failure::input(error.to_string())
}

fn choose(on: On) -> Result<Chosen, Failure> {
    match on {
        On::Interpreter => Ok(interpreter(Vec::new())),
        On::Qemu => {
            let qemu = Qemu::find().map_err(|error| refused(&error))?;
            let engine = Box::new(qemu.with(Accelerator::Tcg { icount: true }));
            Ok(Chosen { engine, remarks: Vec::new(), emulated: None, rounds: 1 })
        }
        On::QemuKvm => {
            let qemu = Qemu::find().map_err(|error| refused(&error))?;
            // The same KVM: what it executes it executes for QEMU as well.
            let Chosen { remarks, emulated, rounds, .. } = kvm().map_err(|error| refused(&error))?;
            Ok(Chosen { engine: Box::new(qemu.with(Accelerator::Kvm)), remarks, emulated, rounds })
        }
        On::Kvm => kvm().map_err(|error| refused(&error)),
        On::Auto => Ok(match kvm() {
            Ok(chosen) if chosen.emulated.is_none() => chosen,
            Ok(chosen) => interpreter(chosen.remarks),
            Err(error) => interpreter(vec![format!("{error}; without it no time can be told.")]),
        }),
        On::Hardware => Err(Failure::input(
            "--on hardware: a machine of its own is not started from here; write an image with --image, start it there, \
             and show what it said with --read",
        )),
    }
}

fn interpreter(remarks: Vec<String>) -> Chosen {
    Chosen { engine: Box::new(Interpreter), remarks, emulated: None, rounds: 1 }
}

fn kvm() -> Result<Chosen, LabError> {
    let kvm = Kvm::open()?;
    let (emulated, remarks) = match kvm.calibrate().provenance() {
        Provenance::KvmEmulated { why } => {
            let told = format!("KVM emulates ring 0 here, so that no time of it is a price: {why}.");
            (Some(why), vec![told])
        }
        _ => (None, Vec::new()),
    };
    let rounds = if emulated.is_some() { 1 } else { WARM + 1 };
    Ok(Chosen { engine: Box::new(kvm), remarks, emulated, rounds })
}

impl Course {
    /// What a guest said that was run elsewhere.
    pub fn elsewhere(outcomes: &Outcomes, complaints: Vec<String>) -> Self {
        let all: Vec<&'static Experiment> =
            outcomes.experiments.iter().filter_map(|(number, _)| Experiment::numbered(*number)).collect();
        let mut course =
            Self { provenance: None, maker: None, machines: 1, rows: Vec::new(), remarks: complaints };
        course.take(&all, outcomes, None);
        course.remarks.extend(ending(outcomes.ending));
        course
    }

    /// Adds what another machine said to the same experiments. What was not done on one of them was not done.
    fn join(&mut self, other: Self) {
        self.machines += 1;
        for (row, another) in self.rows.iter_mut().zip(other.rows) {
            match (&mut row.came, another.came) {
                (Came::Done(rounds), Came::Done(more)) => rounds.extend(more),
                (Came::Done(_), other) => row.came = other,
                _ => {}
            }
        }
    }

    /// Takes the outcomes of these experiments; how many of them have one.
    fn take(&mut self, these: &[&'static Experiment], outcomes: &Outcomes, cut: Option<&str>) -> usize {
        let maker = outcomes.maker.map(|maker| maker.name());
        let vendor = match maker.as_deref() {
            Some("AuthenticAMD" | "HygonGenuine") => Vendor::Amd,
            _ => Vendor::Intel,
        };
        self.maker = maker.or(self.maker.take());
        let why = || cut.map_or_else(|| "the guest ended".to_owned(), str::to_owned);
        let mut told = 0;
        for &experiment in these {
            let came = match outcomes.of_number(experiment.number) {
                Some(outcome) => self.judge(experiment, vendor, outcome, why),
                // Nothing of it, and of those behind it: the next machine begins with it, unless it is this one's first.
                None if told == 0 => Came::NotHere(why()),
                None => break,
            };
            self.rows.push(Row { experiment, came, references: None });
            told += 1;
        }
        told
    }

    fn judge(
        &self,
        experiment: &Experiment,
        vendor: Vendor,
        outcome: &Outcome,
        why: impl Fn() -> String,
    ) -> Came {
        let is_tcg = matches!(self.provenance, Some(Provenance::QemuTcg { .. }));
        let is_emulated = matches!(self.provenance, Some(Provenance::KvmEmulated { .. }));
        if let Some(defect) = is_tcg.then(|| defect_of_qemu(experiment, vendor, outcome)).flatten() {
            return Came::Defect(defect);
        }
        let expected = experiment.expected(vendor);
        match outcome {
            Outcome::Done(_) if expected != Expected::Done => {
                Came::Wrong("it was done, and the manual says that it is refused".to_owned())
            }
            Outcome::Done(rounds) => match rounds.iter().find_map(|round| fault_of(experiment, *round)) {
                Some(wrong) => Came::Wrong(wrong),
                // The first of several ran on cold caches.
                None if rounds.len() > 1 => Came::Done(rounds[1..].to_vec()),
                None => Came::Done(rounds.clone()),
            },
            Outcome::Lacks(features) => {
                let is_lacking = |feature: &Feature| features & feature.bit() != 0;
                Came::Lacks(Feature::ALL.into_iter().filter(is_lacking).map(Feature::name).collect())
            }
            Outcome::Fault { fault, .. } => match expected == of(*fault) {
                false if is_emulated => {
                    Came::NotHere(format!("KVM's emulator makes {} of it", words::name(*fault)))
                }
                is_right => Came::Refused { fault: *fault, is_right },
            },
            Outcome::Stopped(_) => Came::NotHere(why()),
        }
    }
}

/// What QEMU's translator (target/i386/tcg) is known to do otherwise than the processors that it plays.
fn defect_of_qemu(experiment: &Experiment, vendor: Vendor, outcome: &Outcome) -> Option<&'static str> {
    let is_done = matches!(outcome, Outcome::Done(_));
    match experiment.name {
        "ud-lock-mov" | "ud-lock-mov-ring0" if is_done => {
            Some("QEMU's translator executes lock mov as a mov: #UD is due")
        }
        "compat-syscall" if is_done && vendor == Vendor::Intel => {
            Some("QEMU's translator has SYSCALL in compatibility mode on Intel's processors too: #UD is due")
        }
        "compat-sysenter" if vendor == Vendor::Amd && !matches!(outcome, Outcome::Lacks(_)) => {
            let found = match outcome {
                Outcome::Fault { fault, .. } => of(*fault),
                _ => Expected::Done,
            };
            (found != experiment.expected(vendor))
                .then_some("QEMU's translator enters by SYSENTER in compatibility mode on AMD's processors too: #UD is due")
        }
        "wrong-gate-dpl" | "wrong-gate-absent" => match outcome {
            // `do_interrupt64` before it was corrected: entries of 16 bytes are counted in the error code as well.
            Outcome::Fault { fault, .. } if fault.error == GATE * 16 + 2 => Some(
                "QEMU's translator gives the vector times 16 plus 2 as the error code: times 8 plus 2 is due",
            ),
            _ => None,
        },
        "wrong-return" | "wrong-iret" => match outcome {
            Outcome::Fault { fault, .. }
                if fault.ring() == 3 && experiment.expected(vendor) != of(*fault) =>
            {
                Some("QEMU's translator returns to an address that is not canonical: #GP is due before that")
            }
            _ => None,
        },
        _ => None,
    }
}

/// The vector that the wrong gates are under.
const GATE: u32 = 0x82;

/// A fault, as it is expected.
fn of(fault: Fault) -> Expected {
    Expected::Fault { vector: fault.vector, error: fault.error, ring: fault.ring() }
}

/// What a round did not do that it was to do.
fn fault_of(experiment: &Experiment, round: Round) -> Option<String> {
    if experiment.counted && !round.is_counted() {
        return Some(format!(
            "{} and {} of {} and {} operations arrived",
            round.count_one,
            round.count_two,
            round.turns,
            2 * u64::from(round.turns)
        ));
    }
    let is_it = experiment.value.is_none_or(|value| value == round.value);
    (!is_it).then(|| format!("the last operation left {:x}", round.value))
}

/// What an ending says, where it is no good one.
fn ending(ending: Ending) -> Option<String> {
    match ending {
        Ending::Complete => None,
        Ending::Lost { written, read } => {
            Some(format!("The guest wrote {written} records, and {read} of them are there."))
        }
        Ending::Broken(fault) => Some(format!(
            "A fault outside any experiment ended the run: vector {:x} at {:x}.",
            fault.vector, fault.rip
        )),
        Ending::Refused => Some("The processor has no long mode.".to_owned()),
        Ending::Cut => Some("The run did not come to its end.".to_owned()),
    }
}
