//! The steady state of a loop: before a batch it runs untimed until a stretch takes as long as the one before.
//!
//! A walk through memory that was just written, or that follows another walk, finds lines in the caches that its own use would
//! not keep there. It reaches its own state when it has replaced what the caches held.

use crate::loops::heartbeat::Heartbeat;
use crate::machine::clock::Clock;

/// How a loop is brought to the state of its own use, before each batch.
#[derive(Debug, Clone)]
pub struct Settling {
    stretch: u64,
    heartbeat: Heartbeat,
}

/// Stretches in the iterations after which the caches hold only the loop's data.
const PARTS: u64 = 4;
/// The most stretches: on a busy machine two of them may never agree.
const MOST: u64 = 2 * PARTS;
/// Two stretches agree if neither is this many per cent longer.
const AGREE: u64 = 10;

impl Settling {
    /// Makes a settling for a loop that fills the caches in this many iterations: a pass through its memory, or the part that fits.
    pub fn after(iterations: u64, heartbeat: Heartbeat) -> Self {
        /// Shorter stretches are mostly timer overhead.
        const SHORTEST: u64 = 64;
        let stretch = iterations.div_ceil(PARTS);
        // A pass through a small set is repeated.
        Self { stretch: if iterations < SHORTEST { iterations.max(1) * PARTS } else { stretch }, heartbeat }
    }

    pub(crate) fn settle(&self, clock: Clock, mut run: impl FnMut(u64)) {
        self.settle_by(|iterations| clock.time(|| run(iterations)).ticks);
    }

    /// Like [`Self::settle`]; `stretch` returns the time that it took.
    fn settle_by(&self, mut stretch: impl FnMut(u64) -> u64) {
        let mut latest = 0;
        for done in 1..=MOST {
            self.heartbeat.beat();
            let took = stretch(self.stretch);
            if done > PARTS && agree(latest, took) {
                return;
            }
            latest = took;
        }
    }
}

fn agree(one: u64, other: u64) -> bool {
    let (less, more) = (one.min(other), one.max(other));
    (more - less).saturating_mul(100) <= less.saturating_mul(AGREE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of stretches of a walk of 4,000 iterations that take these times, the last one repeatedly.
    fn stretches(times: &[u64]) -> usize {
        let mut taken = 0;
        Settling::after(4_000, Heartbeat::default()).settle_by(|iterations| {
            assert_eq!(iterations, 1_000);
            taken += 1;
            times[(taken - 1).min(times.len() - 1)]
        });
        taken
    }

    #[test]
    fn a_loop_runs_through_all_of_its_memory_and_then_until_a_stretch_repeats() {
        assert_eq!(stretches(&[100]), 5, "it was in its state by then");
        assert_eq!(stretches(&[100, 100, 100, 100, 10]), 6, "it becomes cached");
        assert_eq!(stretches(&[10, 10, 10, 10, 40, 80, 85]), 7, "what was written in order leaves the cache");
        assert_eq!(stretches(&[1, 2, 4, 8, 16, 32, 64, 128, 256]), MOST as usize, "it never repeats");
    }
}
