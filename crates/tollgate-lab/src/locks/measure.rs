use tollgate_x86::Vendor;

use super::list::NONE;
use super::{Kernel, LOCKS, Lock, Work};
use crate::engines::{Chosen, EngineChoice, choose, machine};
use crate::guest::BASE;
use crate::references::References;
use crate::system::{Cause, Control, End, Fault, Program, Ran};
use crate::{Counts, Engine, EngineNote, Interpreter, LabError, Machine, Provenance};

/// Rounds of the shorter run, if instructions or time are counted; the longer run has twice as many.
const COUNTED: u32 = 0x100;
const TIMED: u32 = 4000;

/// The measurements of one lock.
#[derive(Debug, Clone, PartialEq)]
pub struct LockRow {
    /// The lock or restart.
    pub lock: &'static Lock,
    /// Instructions, including the kernel's, counted by the interpreter.
    pub instructions: u64,
    /// Memory references of these instructions, counted by the interpreter.
    pub references: References,
    /// Ticks of the engine's clock, one sample per machine: cycles, or instructions if it counts them. Otherwise why
    /// the engine did not execute the lock, in a clause.
    pub ticks: Result<Vec<f64>, String>,
}

/// The measurements of locks.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The executor that the ticks come from.
    pub provenance: Provenance,
    /// The vendor string that CPUID shows in the guest.
    pub maker: Option<String>,
    /// Operations in each sample.
    pub operations: u32,
    /// One row per lock, in the requested order.
    pub rows: Vec<LockRow>,
    /// Remarks on the choice of the engine.
    pub notes: Vec<EngineNote>,
}

/// Measures locks and restarts. `interrupted` is asked before each machine; a signal that it returns ends the run.
///
/// # Errors
/// [`LabError`] if the engine cannot be used; [`LabError::Interrupted`] with the signal.
pub fn measure(
    locks: &[&'static Lock],
    choice: EngineChoice,
    vendor: Option<Vendor>,
    interrupted: &dyn Fn() -> Option<i32>,
) -> Result<Results, LabError> {
    let Chosen { engine, notes, emulated, rounds, .. } = choose(choice)?;
    let operations = if rounds > 1 { TIMED } else { COUNTED };
    let mut runs = Runs { engine: &*engine, machine: machine(vendor), interrupted, ran: None };
    let ticks = runs.ticks(operations, rounds)?;
    let counts: Vec<Counts> = (0..=LOCKS.len()).map(|place| runs.counts(place)).collect::<Result<_, _>>()?;
    let row = |&lock: &&'static Lock| LockRow {
        lock,
        instructions: each(&counts, lock, |counts| counts.instructions),
        references: References {
            reads: each(&counts, lock, |counts| counts.reads),
            writes: each(&counts, lock, |counts| counts.writes),
            page_walks: each(&counts, lock, |counts| counts.page_walks),
        },
        ticks: difference(&ticks, lock),
    };
    let rows = locks.iter().map(row).collect();
    let (provenance, maker) = runs.ran.unwrap_or((Provenance::Interpreter, None));
    let provenance = emulated.map_or(provenance, |why| Provenance::KvmEmulated { why });
    Ok(Results { provenance, maker, operations, rows, notes })
}

/// Ticks of one round in each sample for each index in `locks.s`, or why there are none.
type Ticks = Vec<Result<Vec<f64>, String>>;

fn difference(ticks: &Ticks, lock: &Lock) -> Result<Vec<f64>, String> {
    let of = |place: usize| ticks.get(place).cloned().unwrap_or_else(|| Ok(Vec::new()));
    let (whole, baseline) = (of(lock.program)?, of(lock.baseline)?);
    Ok(whole.iter().zip(&baseline).map(|(whole, baseline)| whole - baseline).collect())
}

/// Returns by how much a round's count exceeds that of the lock's baseline. Longer runs also write longer records; these
/// add far less than one per round, and rounding removes them.
fn each(counts: &[Counts], lock: &Lock, count: fn(&Counts) -> u64) -> u64 {
    let of = |place: usize| {
        let all = counts.get(place).map_or(0, count);
        (all + u64::from(COUNTED) / 2) / u64::from(COUNTED)
    };
    of(lock.program).saturating_sub(of(lock.baseline))
}

struct Runs<'a> {
    engine: &'a dyn Engine,
    machine: Machine,
    interrupted: &'a dyn Fn() -> Option<i32>,
    ran: Option<(Provenance, Option<String>)>,
}

fn work(programs: Vec<usize>, rounds: u32) -> Work {
    Work { programs, kernel: Kernel::RIGHT, rounds, alone: true }
}

impl Runs<'_> {
    /// Measures the ticks of a round for each program: the difference between two machines, each of which runs all
    /// programs one after the other.
    fn ticks(&mut self, operations: u32, samples: u32) -> Result<Ticks, LabError> {
        let mut all: Ticks = vec![Ok(Vec::new()); LOCKS.len() + 1];
        for _ in 0..samples {
            let (short, long) = (self.run(operations)?, self.run(2 * operations)?);
            for ((all, short), long) in all.iter_mut().zip(short).zip(long) {
                match (short, long) {
                    (Ok(short), Ok(long)) => {
                        let sample = (long as f64 - short as f64) / f64::from(operations);
                        all.iter_mut().for_each(|samples| samples.push(sample));
                    }
                    (Err(why), _) | (_, Err(why)) => *all = Err(why),
                }
            }
        }
        Ok(all)
    }

    fn run(&mut self, rounds: u32) -> Result<Vec<Result<u64, String>>, LabError> {
        self.go_on()?;
        let work = work((NONE..=LOCKS.len()).collect(), rounds);
        let image = work.image()?;
        let output = self.engine.run(image.bytes(), BASE, image.entry(), self.machine)?;
        let programs: Vec<Program> = work.list()?;
        let ran = Ran::new(&programs, &output, Vec::new());
        let ticks = (0..programs.len()).map(|at| ticks_of(&ran, at)).collect();
        self.ran = Some((ran.provenance, ran.maker));
        Ok(ticks)
    }

    /// Counts `COUNTED` rounds of one program alone: the difference between two runs.
    fn counts(&self, place: usize) -> Result<Counts, LabError> {
        let of = |rounds| -> Result<Counts, LabError> {
            self.go_on()?;
            let image = work(vec![place], rounds).image()?;
            let output = Interpreter.run(image.bytes(), BASE, image.entry(), self.machine)?;
            let counts = output.counts.filter(|_| output.cut_short.is_none());
            counts.ok_or_else(|| LabError::Unfinished { why: output.cut_short.unwrap_or_default() })
        };
        let (short, long) = (of(COUNTED)?, of(2 * COUNTED)?);
        Ok(Counts {
            instructions: long.instructions.saturating_sub(short.instructions),
            reads: long.reads.saturating_sub(short.reads),
            writes: long.writes.saturating_sub(short.writes),
            page_walks: long.page_walks.saturating_sub(short.page_walks),
            page_entries: long.page_entries.saturating_sub(short.page_entries),
        })
    }

    fn go_on(&self) -> Result<(), LabError> {
        (self.interrupted)().map_or(Ok(()), |signal| Err(LabError::Interrupted { signal }))
    }
}

fn ticks_of(ran: &Ran, at: usize) -> Result<u64, String> {
    match ran.programs.get(at).and_then(|controls| controls.first()) {
        Some(Control { end: End::Exit { ticks, .. }, .. }) => Ok(*ticks),
        Some(Control { end: End::Fault(fault), .. }) => Err(died(fault)),
        _ => Err(ran.cut_short.clone().unwrap_or_else(|| "the guest ended".to_owned())),
    }
}

/// Says why a program of a lock died. It faults only if the engine differs from a processor.
fn died(fault: &Fault) -> String {
    match fault.cause {
        Cause::Exception { vector, .. } => {
            let mnemonic = tollgate_x86::walk::Exception(vector).mnemonic();
            let name = mnemonic.map_or_else(|| format!("exception {vector}"), |name| format!("#{name}"));
            format!("{name} ended its program at {:x}", fault.rip)
        }
        Cause::Unknown => format!("an unknown instruction ended its program at {:x}", fault.rip),
    }
}
