//! Two threads that store to every line of a buffer, again and again: the published experiment
//! (S. Takeuchi, "Cache thrashing on a Ryzen 1800X", 2017), with each thread on a processor of its own, memory that
//! was touched before, values that change, and the proof that both ran at the same time and took lines from each
//! other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tollgate_model::Boundary::{CacheLine, MemoryAccess, Tlb};
use tollgate_model::{ParamValue, Params, Unit};

use tollgate_engine::benchmark::{Benchmark, PLAIN, Share, number, params, word};
use tollgate_engine::contended::{Contended, Contender, ContendingLoop, Outcome, Partner, contending_loop};
use tollgate_engine::timed::timed_loop;
use tollgate_engine::{Context, Instance, Refusal, Timed, cpu};

use super::memory::{Amount, Page, Region};
use super::pairing::{self, is_home, related};
use super::topology::Sizes;

timed_loop! {
    /// Stores to 509 lines one after the other, and looks who stored to the last of them before: so a sample of them
    /// is looked at where it happens, and the others are stored to and nothing else. Word 0: the buffer; 1: its size
    /// less one line; 2: where it is; 3: the value; 4: how many lines the other thread had stored to last; 6: what was
    /// stored there must be no less to count.
    sequential:
        first "mov rsi, [r13]", "mov rdi, [r13 + 8]", "mov rcx, [r13 + 16]", "mov r8, [r13 + 24]", "mov r9, [r13 + 32]",
        "mov r11, [r13 + 48]", "xor r14d, r14d";
        "mov edx, 508",
        "3:", "add rcx, 64", "and rcx, rdi", "add r8, 2", "mov [rsi + rcx], r8", "dec edx", "jne 3b",
        "add rcx, 64", "and rcx, rdi", "add r8, 2", "mov rax, r8", "xchg [rsi + rcx], rax",
        "mov rdx, rax", "xor rax, r8", "and eax, 1", "cmp rdx, r11", "cmovb rax, r14", "add r9, rax",
        "mov [r13 + 16], rcx", "mov [r13 + 24], r8", "mov [r13 + 32], r9"
}

timed_loop! {
    /// The same in an order that no prefetcher follows: a linear congruential generator of full period (Knuth, TAOCP
    /// 3.2.1.2). Word 5: its increment in bytes.
    random:
        first "mov rsi, [r13]", "mov rdi, [r13 + 8]", "mov rcx, [r13 + 16]", "mov r8, [r13 + 24]", "mov r9, [r13 + 32]",
        "mov r10, [r13 + 40]", "mov r11, [r13 + 48]", "xor r14d, r14d";
        "mov edx, 508",
        "3:", "lea rcx, [rcx + rcx * 4]", "add rcx, r10", "and rcx, rdi", "add r8, 2", "mov [rsi + rcx], r8",
        "dec edx", "jne 3b",
        "lea rcx, [rcx + rcx * 4]", "add rcx, r10", "and rcx, rdi", "add r8, 2", "mov rax, r8",
        "xchg [rsi + rcx], rax",
        "mov rdx, rax", "xor rax, r8", "and eax, 1", "cmp rdx, r11", "cmovb rax, r14", "add r9, rax",
        "mov [r13 + 16], rcx", "mov [r13 + 24], r8", "mov [r13 + 32], r9"
}

contending_loop! {
    /// The other thread's, 61 lines a turn.
    sequential_contending:
        "mov rsi, [r13]", "mov rdi, [r13 + 8]", "mov rcx, [r13 + 16]", "mov r8, [r13 + 24]",
        "mov edx, 61",
        "3:", "add rcx, 64", "and rcx, rdi", "add r8, 2", "mov [rsi + rcx], r8", "dec edx", "jne 3b",
        "mov [r13 + 16], rcx", "mov [r13 + 24], r8"
}

contending_loop! {
    /// The same in the other order.
    random_contending:
        "mov rsi, [r13]", "mov rdi, [r13 + 8]", "mov rcx, [r13 + 16]", "mov r8, [r13 + 24]", "mov r10, [r13 + 40]",
        "mov edx, 61",
        "3:", "lea rcx, [rcx + rcx * 4]", "add rcx, r10", "and rcx, rdi", "add r8, 2", "mov [rsi + rcx], r8",
        "dec edx", "jne 3b",
        "mov [r13 + 16], rcx", "mov [r13 + 24], r8"
}

/// Lines in a turn of the timed loop: a prime, so that it is not the same one that is looked at each time.
const LINES: u64 = 509;
const LINE: u64 = 64;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "memory/thrash",
    operation: "One line of a buffer stored to, in turn with all others, while a thread on another processor stores to the lines of the same buffer, or of one of its own.",
    crosses: &[CacheLine, MemoryAccess, Tlb],
    timed: |params| Timed::Together { code: loops(params).0, instruction: "mov", times: 1 },
    unit: Unit::NanosecondsPerLine,
    share: Some(Share { what: "lines looked at came from the other processor", one_of: LINES }),
    cases: || cases(&[("sequential", Page::Huge), ("random", Page::Huge), ("random", Page::Small)]),
    more: || cases(&[("sequential", Page::Small)]),
    instance: |_, params| instance(params),
    ..PLAIN
};

/// Both loops of a case.
fn loops(params: &Params) -> (tollgate_engine::timed::LongLoop, ContendingLoop) {
    match word(params, "order") {
        "sequential" => (sequential, sequential_contending),
        _ => (random, random_contending),
    }
}

fn cases(kinds: &[(&str, Page)]) -> Vec<Params> {
    let mut cases = Vec::new();
    for pair in pairing::words() {
        for (order, page) in kinds {
            for kib in sizes(Sizes::here()) {
                for shared in [false, true] {
                    cases.push(params(&[
                        ("kib", kib.into()),
                        ("shared", ParamValue::Flag(shared)),
                        ("pair", pair.clone()),
                        ("order", (*order).into()),
                        ("page", page.word().into()),
                    ]));
                }
            }
        }
    }
    cases
}

/// A quarter of each level, so that it fits in beside whatever else there is, and twice the last one; in KiB. All are
/// powers of two: the quarters no larger, the last no smaller than said.
fn sizes(caches: Sizes) -> Vec<u64> {
    let quarter = |bytes: u64| 1 << (bytes / 4).max(4 << 10).ilog2();
    let twice = caches.last.saturating_mul(2).checked_next_power_of_two().unwrap_or(1 << 63);
    let mut sizes = vec![quarter(caches.l1), quarter(caches.l2), quarter(caches.last), twice];
    sizes.dedup();
    sizes.iter().map(|bytes| bytes >> 10).collect()
}

fn instance(params: &Params) -> Result<Instance, Refusal> {
    let pair = related(word(params, "pair"))?;
    let bytes = number(params, "kib") << 10;
    let page = Page::from_word(word(params, "page"));
    let shared = params.get("shared") == Some(&ParamValue::Flag(true));
    let amount = Amount::of(bytes, Sizes::here());
    let buffers = buffers(page, amount, pair.to)?;
    let (own, theirs, notes) = {
        let both = lock(&buffers.regions);
        if let Some(why) = buffers.no_more.clone().filter(|_| bytes > both[0].length()) {
            return Err(why);
        }
        // The timed thread is on the same memory in either case: where that lies makes more of a difference.
        let (own, theirs) = (&both[0], if shared { &both[0] } else { &both[1] });
        let notes = own.notes().to_vec();
        (own.address(), theirs.address(), notes)
    };
    let (code, contended) = loops(params);
    let contender = Storing {
        _buffers: buffers,
        mine: Place::new(own, bytes, 0),
        yours: Place::new(theirs, bytes, 1),
        since: 0,
        shared,
        fits: bytes <= Sizes::here().last,
    };
    let partner = Partner { cpu: pair.to, code: contended, side: Box::default() };
    // SAFETY: both loops store to the first `bytes` of buffers that are at least so long and that the contender keeps.
    let mut runner = unsafe { Contended::new(code, vec![partner], contender) };
    if !is_home(pair.from) {
        runner = runner.on(pair.from);
    }
    let instance =
        Instance::new(runner).with_ops(LINES).on_fixture(format!("thrash {amount:?} {}", page.word()));
    Ok(instance.with_notes([format!("processors {} and {}", pair.from, pair.to)]).with_notes(notes))
}

/// The buffers of one kind of page.
struct Both {
    regions: Mutex<[Region; 2]>,
    /// Why they are no larger, where they should be.
    no_more: Option<Refusal>,
}

type Buffers = Arc<Both>;

type Known = BTreeMap<(Page, Amount), Result<Buffers, Refusal>>;

static BUFFERS: Mutex<Known> = Mutex::new(BTreeMap::new());

/// The two buffers of such pages and so large in this process; smaller cases use their beginning. To all of the first
/// the other processor has stored once: of what does not fit into a cache it would not come by each line in a run.
fn buffers(page: Page, amount: Amount, other: usize) -> Result<Buffers, Refusal> {
    let make = || {
        let caches = Sizes::here();
        let largest = amount.bytes(sizes(caches).last().copied().unwrap_or(4) << 10, caches);
        let ((shared, no_more), (own, _)) =
            (Region::at_most(largest, page)?, Region::at_most(largest, page)?);
        let regions = [touched_by(shared, other)?, own];
        Ok(Arc::new(Both { regions: Mutex::new(regions), no_more }))
    };
    lock(&BUFFERS).entry((page, amount)).or_insert_with(make).clone()
}

/// The region, with a store of a thread on `other` to each line.
fn touched_by(mut region: Region, other: usize) -> Result<Region, Refusal> {
    let touch = move || {
        let there = cpu::pin(other);
        for (line, words) in region.words_mut().chunks_exact_mut((LINE / 8) as usize).enumerate() {
            words[0] = (line as u64) << 1 | 1;
        }
        there.map(|()| region)
    };
    let thread = std::thread::Builder::new().spawn(touch);
    let thread = thread.map_err(|error| Refusal::of("no thread can be started", &error))?;
    let touched = thread.join().map_err(|_| Refusal::Fail("the other thread ended early".to_owned()))?;
    touched.map_err(|error| Refusal::of(&format!("no thread can be put on processor {other}"), &error))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a thread is on its way through its buffer.
struct Place {
    buffer: u64,
    bytes: u64,
    offset: u64,
    /// The last bit of what it stores.
    who: u64,
}

/// A meeting's stores have this number above what tells them apart.
const MEETING: u32 = 40;

/// Of the latest meeting in this process.
static MEETINGS: AtomicU64 = AtomicU64::new(0);

impl Place {
    /// The first thread begins at the beginning, the second half a round ahead.
    fn new(buffer: u64, bytes: u64, who: u64) -> Self {
        let mut place = Self { buffer, bytes, offset: 0, who };
        if who == 1 {
            for _ in 0..place.lines() / 2 {
                place.offset = place.after(place.offset);
            }
        }
        place
    }

    fn lines(&self) -> u64 {
        self.bytes / LINE
    }

    /// The odd multiple of a line nearest to the golden section: any odd one gives the full period.
    fn increment(&self) -> u64 {
        ((self.lines() as f64 * 0.618) as u64 | 1) * LINE
    }

    /// Where the random order goes from `offset`.
    fn after(&self, offset: u64) -> u64 {
        offset.wrapping_mul(5).wrapping_add(self.increment()) & (self.bytes - LINE)
    }

    /// Puts it into a context or side: what is stored begins with `first`, and what was stored before `since` does not
    /// count.
    fn write(&self, words: &mut [u64], first: u64, since: u64) {
        let (last, taken) = (self.bytes - LINE, 0);
        let own = [self.buffer, last, self.offset, first | self.who, taken, self.increment(), since];
        words[..own.len()].copy_from_slice(&own);
    }

    fn read(&mut self, words: &[u64]) {
        self.offset = words[2];
    }
}

struct Storing {
    _buffers: Buffers,
    mine: Place,
    yours: Place,
    /// What the other thread stored before does not count.
    since: u64,
    shared: bool,
    /// The buffer fits into the last level.
    fits: bool,
}

impl Contender for Storing {
    fn before(&mut self, context: &mut Context, partners: &mut [Partner], _iterations: u64) {
        let first = (MEETINGS.fetch_add(1, Relaxed) + 1) << MEETING;
        // Where the buffer is shared, whoever stored to a line last is whom it comes from. Where it is not, other cases
        // have shared the memory before.
        self.since = if self.shared { 0 } else { first };
        self.mine.write(&mut context.words, first, self.since);
        partners.iter_mut().for_each(|partner| self.yours.write(&mut partner.side.words, first, 0));
    }

    /// What fits into a cache is to be there.
    fn warm_up(&self) -> u64 {
        if self.fits { 2 * self.mine.lines() / LINES + 1 } else { 16 }
    }

    fn begin(&mut self, context: &mut Context) {
        context.words[4] = 0;
    }

    fn after(&mut self, context: &Context, partners: &[Partner]) -> Result<Outcome, Refusal> {
        self.mine.read(&context.words);
        partners.iter().for_each(|partner| self.yours.read(&partner.side.words));
        let taken = context.words[4];
        match taken > 0 && !self.shared {
            true => {
                Err(Refusal::Fail(format!("{taken} lines of a buffer of its own came from another thread")))
            }
            false => Ok(Outcome::Sound(Some(taken))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_engine::Order;
    use tollgate_engine::clock::Clock;

    #[test]
    fn either_order_comes_by_every_line() {
        for bytes in [256, 4 << 10, 1 << 20] {
            let place = Place::new(0, bytes, 0);
            let mut seen = vec![false; place.lines() as usize];
            let mut offset = 0;
            for _ in 0..place.lines() {
                offset = place.after(offset);
                assert!(
                    !std::mem::replace(&mut seen[(offset / LINE) as usize], true),
                    "{bytes}: {offset} twice"
                );
            }
        }
    }

    #[test]
    fn sizes_are_quarters_of_the_levels_and_twice_the_last() {
        let caches = Sizes { l1: 48 << 10, l2: 1280 << 10, last: 48 << 20 };
        assert_eq!(sizes(caches), [8, 256, 8192, 131_072]);
        assert_eq!(sizes(Sizes { l1: 32 << 10, l2: 2 << 20, last: 2 << 20 }), [8, 512, 4096]);
    }

    #[test]
    fn lines_are_taken_from_each_other_where_the_buffer_is_one_and_never_where_there_are_two() {
        let all = cpu::allowed();
        let Some(&home) = all.last().filter(|_| all.len() > 1) else {
            return eprintln!("skipped: one processor only");
        };
        let Ok((clock @ Clock::Tsc { .. }, _)) = Clock::tsc() else {
            return eprintln!("skipped: no time stamp counter");
        };
        cpu::pin(home).expect("an allowed processor");
        for order in ["sequential", "random"] {
            for shared in [false, true] {
                let word = related(pairing::words()[0].to_string().as_str()).expect("a pair").relation.word();
                let case = params(&[
                    ("kib", sizes(Sizes::here())[0].into()),
                    ("shared", ParamValue::Flag(shared)),
                    ("pair", word.into()),
                    ("order", order.into()),
                    ("page", "4k".into()),
                ]);
                let mut instance = match instance(&case) {
                    Ok(instance) => instance,
                    Err(why) => return eprintln!("skipped: {why:?}"),
                };
                let batches = (0..40)
                    .map(|_| instance.batch(clock, Order { iterations: 40, extra: 0 }).expect("a batch"));
                let kept: Vec<u64> =
                    batches.filter(|batch| batch.undisturbed).filter_map(|batch| batch.counted).collect();
                let taken: u64 = kept.iter().sum();
                let looked_at = kept.len() as u64 * 40;
                if kept.is_empty() {
                    eprintln!("skipped: other work had a processor all the time");
                } else if shared {
                    assert!(taken > looked_at / 10, "{order}: {taken} of {looked_at}");
                } else {
                    assert_eq!(taken, 0, "{order}");
                }
            }
        }
        cpu::allow(&all);
    }

    #[test]
    fn a_side_is_large_enough_for_what_a_place_writes() {
        let mut side = tollgate_engine::contended::Side::default();
        Place::new(64, 4096, 1).write(&mut side.words, 7 << MEETING, 0);
        assert_eq!((side.words[0], side.words[1], side.words[3]), (64, 4096 - 64, 7 << MEETING | 1));
    }
}
