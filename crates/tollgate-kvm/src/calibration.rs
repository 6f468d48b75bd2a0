//! Whether the processor itself executes a guest's ring 0.
//!
//! On some machines KVM runs without virtualization by hardware: ring 3 is executed, but ring 0 is emulated, instruction by
//! instruction. Times there are the emulator's. So a loop runs first, in 64-bit mode in ring 0 as the experiments do: a processor
//! needs one or two cycles for an iteration, an emulator a thousand. KVM's own counters confirm it, if they can be read.

use std::fmt;

/// Ticks of the time-stamp counter per iteration: a processor takes fewer, an emulator more.
const MOST_TICKS: u64 = 100;

/// The result of the loop.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Calibration {
    /// The loop ran. `ticks` of the time-stamp counter for all iterations together, the minimum of several repetitions, and
    /// KVM's counters over all repetitions, if they can be read.
    Ran { ticks: u64, iterations: u32, counted: Option<Counted> },
    /// The loop did not run, so ring 0 counts as emulated here, and no time as a latency. `why` is a clause.
    Failed { why: String },
}

/// KVM's counters while the loop ran (KVM_GET_STATS_FD).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Instructions that the loop executed.
    pub instructions: u64,
    /// Instructions that KVM's emulator executed, in and around the loop: `insn_emulation`.
    pub emulated: u64,
    /// VM exits: `exits`.
    pub exits: u64,
}

impl Calibration {
    /// Returns whether something other than the processor executes ring 0.
    #[must_use]
    pub fn is_emulated(&self) -> bool {
        match self {
            Self::Ran { ticks, iterations, counted } => {
                *ticks > MOST_TICKS * u64::from(*iterations)
                    || counted.is_some_and(|counted| counted.emulated > counted.instructions / 2)
            }
            Self::Failed { .. } => true,
        }
    }
}

impl fmt::Display for Calibration {
    /// Writes a clause: `a loop of two instructions takes 1.0 ticks an iteration in ring 0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ran { ticks, iterations, counted } => {
                let iteration = *ticks as f64 / f64::from(*iterations);
                write!(f, "a loop of two instructions takes {iteration:.1} ticks an iteration in ring 0")?;
                counted.map_or(Ok(()), |Counted { instructions, emulated, exits }| {
                    write!(f, ", and KVM emulated {emulated} of {instructions} instructions ({exits} exits)")
                })
            }
            Self::Failed { why } => write!(f, "no loop could be timed in ring 0: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_figure_tells_an_emulator() {
        let ran = |ticks, emulated: Option<u64>| Calibration::Ran {
            ticks,
            iterations: 1000,
            counted: emulated.map(|emulated| Counted { instructions: 2000, emulated, exits: 7 }),
        };
        assert!(!ran(1300, Some(0)).is_emulated());
        assert!(!ran(1300, None).is_emulated());
        assert!(ran(1300, Some(1900)).is_emulated());
        let why = "a loop of two instructions takes 2800.0 ticks an iteration in ring 0, \
                   and KVM emulated 2000 of 2000 instructions (7 exits)";
        let ran = ran(2_800_000, Some(2000));
        assert_eq!((ran.is_emulated(), ran.to_string().as_str()), (true, why));
        let failed = Calibration::Failed { why: "it halted".to_owned() };
        assert!(failed.is_emulated());
        assert_eq!(failed.to_string(), "no loop could be timed in ring 0: it halted");
    }
}
