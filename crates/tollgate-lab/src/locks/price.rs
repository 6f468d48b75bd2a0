//! What one uncontended acquisition takes together with its release.

use super::list::NONE;
use super::{Kernel, LOCKS, Lock, Work};
use crate::engines::{Chosen, EngineChoice, choose, machine};
use crate::guest::BASE;
use crate::references::References;
use crate::system::{Control, End, Ran};
use crate::{Counts, Engine, EngineNote, Interpreter, LabError, Provenance};

/// Rounds of the shorter run, where instructions are counted and where time is; the longer one has twice as many.
const COUNTED: u32 = 0x100;
const TIMED: u32 = 4000;
/// So many differences of times are taken.
const SAMPLES: usize = 11;

/// What a lock takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    /// The lock.
    pub lock: &'static Lock,
    /// Instructions of an acquisition and its release, the kernel's included, by the interpreter.
    pub instructions: u64,
    /// Their references of memory, by the interpreter.
    pub references: References,
    /// Ticks of an acquisition and its release by the engine's clock: cycles, or instructions where it counts them. A sample each.
    pub ticks: Vec<f64>,
}

/// What all locks take.
#[derive(Debug, Clone, PartialEq)]
pub struct Priced {
    /// The executor whose ticks they are.
    pub provenance: Provenance,
    /// In the order of [`LOCKS`].
    pub prices: Vec<Price>,
    /// Remarks on the choice of the engine.
    pub notes: Vec<EngineNote>,
}

/// Prices every lock.
///
/// # Errors
/// An engine that cannot be used; a guest that does not finish.
pub fn price(choice: EngineChoice) -> Result<Priced, LabError> {
    let Chosen { engine, notes, emulated, .. } = choose(choice)?;
    let mut provenance = Provenance::Interpreter;
    let loop_counts = counts(NONE)?;
    let mut timer = Timer { engine: &*engine, provenance: &mut provenance, loop_ticks: Vec::new() };
    let mut prices = Vec::new();
    timer.loop_ticks = timer.ticks(NONE)?;
    for lock in LOCKS {
        let counts = counts(lock.program)?;
        let each = |of: fn(&Counts) -> u64| of(&counts).saturating_sub(of(&loop_counts)) / u64::from(COUNTED);
        let ticks = timer.ticks(lock.program)?;
        let ticks = ticks.iter().zip(&timer.loop_ticks).map(|(ticks, empty)| ticks - empty).collect();
        let references = References {
            reads: each(|counts| counts.reads),
            writes: each(|counts| counts.writes),
            page_walks: each(|counts| counts.page_walks),
        };
        prices.push(Price { lock, instructions: each(|counts| counts.instructions), references, ticks });
    }
    if let Some(why) = emulated {
        provenance = Provenance::KvmEmulated { why };
    }
    Ok(Priced { provenance, prices, notes })
}

fn work(program: usize, rounds: u32) -> Work {
    Work { program, kernel: Kernel::RIGHT, programs: 1, rounds, alone: true }
}

/// The counts of so many rounds more. What is written at the end has the same length in both runs, or nearly so.
fn counts(program: usize) -> Result<Counts, LabError> {
    let of = |rounds| -> Result<Counts, LabError> {
        let image = work(program, rounds).image()?;
        let output = Interpreter.run(image.bytes(), BASE, image.entry(), machine(None))?;
        let counts = output.counts.filter(|_| output.cut_short.is_none());
        counts.ok_or_else(|| LabError::Unfinished { why: output.cut_short.unwrap_or_default() })
    };
    let (short, long) = (of(COUNTED)?, of(2 * COUNTED)?);
    Ok(Counts {
        instructions: long.instructions - short.instructions,
        reads: long.reads - short.reads,
        writes: long.writes - short.writes,
        page_walks: long.page_walks - short.page_walks,
        page_entries: long.page_entries - short.page_entries,
    })
}

struct Timer<'a> {
    engine: &'a dyn Engine,
    provenance: &'a mut Provenance,
    loop_ticks: Vec<f64>,
}

impl Timer<'_> {
    /// Ticks of a round, in samples.
    fn ticks(&mut self, program: usize) -> Result<Vec<f64>, LabError> {
        let (first, provenance) = self.run(program, COUNTED)?;
        let is_timed =
            matches!(provenance, Provenance::Kvm | Provenance::QemuKvm | Provenance::KvmEmulated { .. });
        *self.provenance = provenance;
        if !is_timed {
            let (second, _) = self.run(program, 2 * COUNTED)?;
            return Ok(vec![(second as f64 - first as f64) / f64::from(COUNTED)]);
        }
        let mut samples = Vec::new();
        for _ in 0..SAMPLES {
            let (short, _) = self.run(program, TIMED)?;
            let (long, _) = self.run(program, 2 * TIMED)?;
            samples.push((long as f64 - short as f64) / f64::from(TIMED));
        }
        Ok(samples)
    }

    /// Ticks of the whole program.
    fn run(&self, program: usize, rounds: u32) -> Result<(u64, Provenance), LabError> {
        let work = work(program, rounds);
        let image = work.image()?;
        let output = self.engine.run(image.bytes(), BASE, image.entry(), machine(None))?;
        let provenance = output.provenance.clone();
        let ran = Ran::of(&work.list()?, &output, Vec::new());
        match ran.programs.first().and_then(|threads| threads.first()) {
            Some(Control { end: End::Exit { ticks, .. }, .. }) => Ok((*ticks, provenance)),
            _ => Err(LabError::Unfinished {
                why: ran.cut_short.unwrap_or_else(|| "a program of a lock ended by a fault".to_owned()),
            }),
        }
    }
}
