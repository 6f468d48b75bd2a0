use iced_x86::{Decoder, DecoderOptions, Instruction};

use super::traced::{Order, Stop, TracedProcess};
use crate::locks::code::Extent;
use crate::prelude::*;

/// Returns the address of each instruction in a range, and of the one after its last.
pub(super) fn of(range: (usize, usize)) -> Vec<usize> {
    let mut points = within(range);
    points.push(range.1);
    points
}

pub(super) fn within(range: (usize, usize)) -> Vec<usize> {
    decode(range).iter().map(|instruction| instruction.ip() as usize).collect()
}

/// Returns the restartable sequence of `take`: its instructions up to the commit.
pub(super) fn of_sequence(extent: &Extent) -> Vec<usize> {
    let [_, start, length, _] = descriptor(extent);
    within((start, start + length))
}

/// Returns the entries of the contended paths: jump targets, and the abort handler.
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

/// The fields of struct rseq_cs: version and flags, `start_ip`, `post_commit_offset` and `abort_ip`.
fn descriptor(extent: &Extent) -> [usize; 4] {
    assert_eq!(extent.data.1 - extent.data.0, size_of::<[usize; 4]>());
    // SAFETY: the descriptor lies between the two labels of the lock's data, aligned to its length.
    unsafe { *(extent.data.0 as *const [usize; 4]) }
}

fn decode((begin, end): (usize, usize)) -> Vec<Instruction> {
    // SAFETY: the range lies between two labels in this program's own code.
    let bytes = unsafe { std::slice::from_raw_parts(begin as *const u8, end - begin) };
    // UD1 comes before abort handlers.
    Decoder::with_ip(64, bytes, begin as u64, DecoderOptions::NO_INVALID_CHECK).into_iter().collect()
}

/// Returns every executed instruction of `take` and of `release`, including the C library's, from the first to the one
/// after the last. The lock is free before and after.
pub(super) fn executed(process: &mut TracedProcess, extent: &Extent) -> Result<[Vec<usize>; 2]> {
    Ok([stepped(process, Order::Take, extent.take)?, stepped(process, Order::Release, extent.release)?])
}

fn stepped(process: &mut TracedProcess, order: Order, (begin, end): (usize, usize)) -> Result<Vec<usize>> {
    const MOST: usize = 10_000;
    process.tell(order)?;
    let first = process.run_to(Some(begin))?;
    let mut points = vec![begin];
    for _ in 0..MOST {
        if first != Stop::Point || points.last() == Some(&end) {
            break;
        }
        let next = process.step()?;
        // A loop executes an instruction several times; a process stops the first time.
        if !points.contains(&next) {
            points.push(next);
        }
    }
    match (points.last() == Some(&end)).then(|| process.run_to(None)).transpose()? {
        Some(Stop::Rest(0)) => Ok(points),
        other => Err(fail!("{order:?} stopped at {first:?}, then at {other:?}")),
    }
}
