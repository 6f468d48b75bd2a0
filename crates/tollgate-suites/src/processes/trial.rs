//! A trial before the measurement: whether the kernel counts switches here.

use crate::prelude::*;

/// Runs batches until one has the expected number of switches, which may be the twentieth on a busy machine.
pub(super) fn tried(
    hand_overs: u64,
    heartbeat: &Heartbeat,
    mut batch: impl FnMut() -> Result<Batch>,
) -> Result<()> {
    const TRIALS: usize = 64;
    let mut counts = Vec::new();
    for _ in 0..TRIALS {
        heartbeat.beat();
        let batch = batch()?;
        if batch.counted == Some(hand_overs) {
            return Ok(());
        }
        counts.push(batch.counted.unwrap_or(0));
    }
    let (least, most) = (counts.iter().min().copied(), counts.iter().max().copied());
    Err(match (least, most) {
        (_, Some(0) | None) => {
            skip!("the kernel counts no switches here (getrusage, ru_nvcsw and ru_nivcsw)")
        }
        (least, Some(most)) => skip!(
            "{hand_overs} handovers gave {} to {most} switches in {TRIALS} trials: other processes ran, or the kernel counts otherwise",
            least.unwrap_or(0)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(counts: &[u64]) -> Result<()> {
        let mut counts = counts.iter().cycle();
        tried(8, &Heartbeat::default(), || {
            let counted = counts.next().copied();
            Ok(Batch { counted, ..Batch::new(1, 0, counted == Some(8)) })
        })
    }

    #[test]
    fn one_good_batch_is_enough_and_a_refusal_names_the_counts() {
        assert_eq!(counting(&[9, 7, 8]), Ok(()));
        let Err(Refusal::Skip(why)) = counting(&[9, 7]) else { panic!("must be skipped") };
        assert!(why.contains("7 to 9"), "{why}");
        let Err(Refusal::Skip(why)) = counting(&[0]) else { panic!("must be skipped") };
        assert!(why.contains("counts no switches"), "{why}");
    }

    #[test]
    fn a_failure_is_returned_at_once() {
        let wrong = || fail!("gone");
        assert_eq!(tried(8, &Heartbeat::default(), || Err(wrong())), Err(wrong()));
    }
}
