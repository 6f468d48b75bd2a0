//! The instructions of a lock at which a process can be stopped.

use iced_x86::{Decoder, DecoderOptions, Instruction};

use super::party::{Order, Party, Stop};
use crate::locks::code::Extent;
use tollgate_engine::Refusal;

/// Each instruction in a range of addresses, and the one after its last: the address of each.
pub(super) fn of(range: (usize, usize)) -> Vec<usize> {
    let mut points = within(range);
    points.push(range.1);
    points
}

/// Each instruction in a range of addresses.
pub(super) fn within(range: (usize, usize)) -> Vec<usize> {
    decode(range).iter().map(|instruction| instruction.ip() as usize).collect()
}

/// The restartable sequence of a take: its instructions from the first to the one that commits.
pub(super) fn of_sequence(extent: &Extent) -> Vec<usize> {
    let [_, start, length, _] = descriptor(extent);
    within((start, start + length))
}

/// Those of the instructions aside to which a take comes first: where it jumps to, and where it is restarted.
pub(super) fn entries(extent: &Extent) -> Vec<usize> {
    let (begin, end) = extent.aside[0];
    let jumps = decode(extent.take).into_iter().map(|instruction| instruction.near_branch_target() as usize);
    let mut entries: Vec<usize> = jumps.filter(|target| (begin..end).contains(target)).collect();
    if extent.data.0 != extent.data.1 {
        let [.., restart] = descriptor(extent);
        entries.push(restart);
    }
    entries
}

/// Of a restartable sequence (struct rseq_cs): version and flags, `start_ip`, `post_commit_offset` and `abort_ip`.
fn descriptor(extent: &Extent) -> [usize; 4] {
    assert_eq!(extent.data.1 - extent.data.0, size_of::<[usize; 4]>());
    // SAFETY: the descriptor lies there, between the two labels of the lock's data, and is aligned to its length.
    unsafe { *(extent.data.0 as *const [usize; 4]) }
}

fn decode((begin, end): (usize, usize)) -> Vec<Instruction> {
    // SAFETY: the range lies in this program's own code, between two labels of it.
    let bytes = unsafe { std::slice::from_raw_parts(begin as *const u8, end - begin) };
    // UD1 stands before abort handlers.
    Decoder::with_ip(64, bytes, begin as u64, DecoderOptions::NO_INVALID_CHECK).into_iter().collect()
}

/// Every instruction of a take and a release that the processor executes, each from its first to the one after its last, also
/// in the C library: it is stopped after each. Nobody has the lock before and after.
///
/// # Errors
/// What the party says, or that one of them does not come to its end.
pub(super) fn executed(party: &mut Party, extent: &Extent) -> Result<[Vec<usize>; 2], Refusal> {
    Ok([stepped(party, Order::Take, extent.take)?, stepped(party, Order::Release, extent.release)?])
}

fn stepped(party: &mut Party, order: Order, (begin, end): (usize, usize)) -> Result<Vec<usize>, Refusal> {
    /// Far more than any has.
    const MOST: usize = 10_000;
    party.tell(order)?;
    let first = party.run_to(Some(begin))?;
    let mut points = vec![begin];
    for _ in 0..MOST {
        if first != Stop::Point || points.last() == Some(&end) {
            break;
        }
        let next = party.step()?;
        // A loop executes an instruction several times; a process is stopped at the first.
        if !points.contains(&next) {
            points.push(next);
        }
    }
    match (points.last() == Some(&end)).then(|| party.run_to(None)).transpose()? {
        Some(Stop::Rest(0)) => Ok(points),
        other => Err(Refusal::Fail(format!("{order:?} stopped at {first:?}, then at {other:?}"))),
    }
}
