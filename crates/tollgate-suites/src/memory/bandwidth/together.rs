//! Several threads that pass through memory at the same time, each through its own.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use tollgate_engine::parallel::{self, Operation, Seat, TaskKind, Work};

use super::loops::{By, Op, code};
use super::pass::{PAGE, Set, number};
use crate::memory::region::Page;
use crate::prelude::*;

static STREAMS: Operation = Operation { prepare: stream, switches: false };

pub fn instance(
    (op, by): (Op, By),
    bytes: u64,
    page: Page,
    threads: usize,
    context: &mut Context,
) -> Result<Instance> {
    // All cases share the memory of the largest.
    let wanted = bytes.saturating_mul(2).saturating_mul(threads as u64);
    let key = format!("bandwidth of {threads} threads {page:?} {bytes}");
    let take = |context: &mut Context| context.quota.take_memory(wanted).map(Rc::new);
    context.shared_while(&key, |_: &Rc<Taken>| true, take)?;
    let words = [op as u64, by as u64, bytes, u64::from(page == Page::Huge)];
    parallel::instance(
        context,
        TaskKind::Threads,
        parallel::Case { tasks: threads, operation: &STREAMS, words },
    )
}

/// A thread's two regions, which it touched first.
struct Parts {
    read: Mapping,
    written: Mapping,
    /// Bytes, and whether in huge pages.
    kind: (u64, bool),
}

std::thread_local! {
    static PARTS: RefCell<Vec<Rc<RefCell<Parts>>>> = const { RefCell::new(Vec::new()) };
}

impl Parts {
    fn here(bytes: u64, is_huge: bool) -> io::Result<Rc<RefCell<Self>>> {
        let kind = (bytes, is_huge);
        PARTS.with_borrow_mut(|known| {
            if let Some(parts) = known.iter().find(|parts| parts.borrow().kind == kind) {
                return Ok(Rc::clone(parts));
            }
            let mut parts = Self { read: mapped(kind)?, written: mapped(kind)?, kind };
            number(words(&mut parts.read));
            words(&mut parts.written).fill(1);
            let parts = Rc::new(RefCell::new(parts));
            known.push(Rc::clone(&parts));
            Ok(parts)
        })
    }
}

fn mapped((bytes, is_huge): (u64, bool)) -> io::Result<Mapping> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let mapping = Mapping::aligned(bytes as usize, access, flags, -1)?;
    let advice = if is_huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
    match mapping.advise(advice) {
        Err(error) if is_huge => Err(error),
        // A kernel without huge pages refuses this advice.
        _ => Ok(mapping),
    }
}

fn words(mapping: &mut Mapping) -> &mut [u64] {
    // SAFETY: the mapping has this length, is aligned, and the borrow is exclusive; its pages are zero at first.
    unsafe { std::slice::from_raw_parts_mut(mapping.address().cast(), mapping.length() / 8) }
}

struct Stream {
    code: LongLoop,
    context: Box<LoopContext>,
    set: Set,
    parts: Rc<RefCell<Parts>>,
    passes: u64,
}

fn stream(seat: Seat) -> io::Result<Box<dyn Work>> {
    let [op, by, bytes, is_huge] = seat.words;
    let unknown = || io::Error::from_raw_os_error(libc::EINVAL);
    let op = Op::ALL.get(op as usize).copied().ok_or_else(unknown)?;
    let by = By::ALL.get(by as usize).copied().ok_or_else(unknown)?;
    let (code, ..) = code(op, by).filter(|_| by.is_here().is_ok()).ok_or_else(unknown)?;
    let parts = Parts::here(bytes, is_huge != 0)?;
    let (read, written) = {
        let parts = parts.borrow();
        (parts.read.address() as u64, parts.written.address() as u64)
    };
    let start = if matches!(op, Op::Read | Op::Copy) { read } else { written };
    let set = Set { op, start, to: written, bytes };
    Ok(Box::new(Stream { code, context: Box::default(), set, parts, passes: 0 }))
}

impl Work for Stream {
    fn make(&mut self, times: u64) -> Result<(), i32> {
        /// Passes per check of the written words: more frequent checks would take part of the time.
        const LOOKS: u64 = 64;
        let offset = self.context.words[2];
        self.passes += 1;
        self.context.words = self.set.words(offset, self.passes);
        self.context.words[1] = PAGE;
        // SAFETY: the loop stays within the regions, which live as long as this, and the processor has its registers.
        unsafe { self.code.run(times.max(1), &mut *self.context) };
        if self.set.op != Op::Read && !self.passes.is_multiple_of(LOOKS) {
            return Ok(());
        }
        let mut parts = self.parts.borrow_mut();
        let moved = self.set.moved(offset, times.max(1) * PAGE, self.passes);
        self.set.check(words(&mut parts.written), moved, self.context.result).map_err(|_| libc::EILSEQ)
    }
}
