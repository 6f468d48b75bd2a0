//! Producers and consumers around a bounded buffer, with counting semaphores that are made from a test-and-set: the
//! published workload (Machida and Shinohara, Sony Research Forum 2000), in a process of its own for each batch.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{self, Scope};

use super::lock::{Handle, Lock, Reach};
use super::method::Method;
use tollgate_engine::clock::Clock;
use tollgate_engine::cpu::{self, Attendance};
use tollgate_engine::{Batch, Counters, Experiment, Order, Refusal, limits};

/// What a trade is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    /// The test-and-set that everything is made from.
    pub method: Method,
    /// Producers, and as many consumers.
    pub pairs: usize,
    /// Where they run.
    pub reach: Reach,
}

/// Items of one iteration.
pub(super) const ITEMS: u64 = 1000;
/// Items that are handled before the time begins, so that everybody has found the way; at least so many a thread.
const WARM_UP: u64 = 4;
/// Places in the buffer.
const SLOTS: usize = 16;
/// What a batch tells beside its time, in this order.
pub(super) const TALLIES: &[&str] = &[
    "context switches",
    "takes restarted",
    "items to the least served consumer",
    "items to the most served consumer",
];

impl Experiment for Setting {
    /// One trade, in which so many items are handled.
    fn run(&mut self, clock: Clock, order: Order) -> Result<Vec<Batch>, Refusal> {
        if let Reach::Anywhere = self.reach {
            cpu::allow(&cpu::allowed_in_all());
        }
        let threads = 2 * self.pairs;
        let _taken = limits::take_processes(threads as u64)?;
        let warm_up = WARM_UP * threads as u64;
        let items = (order.iterations + order.extra) * ITEMS;
        let trade = Trade::new(*self, clock, warm_up, warm_up + items)?;
        let shares = trade.open(self.pairs)?;
        trade.batch(&shares).map(|batch| vec![batch])
    }
}

/// The buffer, the semaphores around it, and what was seen of them.
struct Trade {
    setting: Setting,
    clock: Clock,
    /// Places that are free, and items that lie there.
    free: Semaphore,
    filled: Semaphore,
    buffer: Guarded<Buffer>,
    warm_up: u64,
    items: u64,
    /// Everybody is there.
    open: (Mutex<bool>, Condvar),
    /// Everything was consumed, or somebody cannot take part.
    over: AtomicBool,
    moments: [AtomicU64; 2],
    switches: [AtomicU64; 2],
    /// Between the two moments.
    attendance: Mutex<Option<Attendance>>,
    /// Nobody else had the processor meanwhile.
    whole: AtomicBool,
    refused: Mutex<Option<Refusal>>,
}

/// What a lock guards.
struct Guarded<T> {
    lock: Lock,
    inside: UnsafeCell<T>,
}

// SAFETY: what is inside is touched only by whoever has the lock. That a lock lets only one in is what this suite's
// tests show, and what the count of items checks each time.
unsafe impl<T: Send> Sync for Guarded<T> {}

/// A counting semaphore: a number, guarded by a test-and-set.
type Semaphore = Guarded<u64>;

struct Buffer {
    slots: [u64; SLOTS],
    produced: u64,
    consumed: u64,
    /// Of all numbers of items that were taken out.
    sum: u128,
}

/// What one consumer handled after the warm-up, and how often the sequences of a thread were restarted.
#[derive(Debug, Default, Clone, Copy)]
struct Share {
    items: u64,
    aborts: u64,
    consumer: bool,
}

impl Trade {
    fn new(setting: Setting, clock: Clock, warm_up: u64, items: u64) -> Result<Self, Refusal> {
        let lock = || Lock::new(setting.method, setting.reach, 2 * setting.pairs);
        let semaphore = |count| lock().map(|lock| Guarded { lock, inside: UnsafeCell::new(count) });
        let buffer = Buffer { slots: [0; SLOTS], produced: 0, consumed: 0, sum: 0 };
        Ok(Self {
            setting,
            clock,
            free: semaphore(SLOTS as u64)?,
            filled: semaphore(0)?,
            buffer: Guarded { lock: lock()?, inside: UnsafeCell::new(buffer) },
            warm_up,
            items,
            open: Default::default(),
            over: AtomicBool::new(false),
            moments: Default::default(),
            switches: Default::default(),
            attendance: Mutex::new(None),
            whole: AtomicBool::new(false),
            refused: Mutex::new(None),
        })
    }

    /// Lets everybody in, and waits until everything was handled.
    fn open(&self, pairs: usize) -> Result<Vec<Share>, Refusal> {
        let shares = thread::scope(|scope| {
            let members = 1..=2 * pairs;
            let threads: Vec<_> = members.map_while(|number| self.hire(scope, number)).collect();
            self.open_barrier();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<Share>>()
        });
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
        match refused {
            Some(refusal) => Err(refusal),
            None if shares.len() < 2 * pairs => Err(Refusal::Fail("a thread ended early".to_owned())),
            None => Ok(shares),
        }
    }

    fn open_barrier(&self) {
        let (open, bell) = &self.open;
        *open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        bell.notify_all();
    }

    /// Asleep: those that are not there yet need the processor.
    fn wait_for_barrier(&self) {
        let (open, bell) = &self.open;
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open {
            open = bell.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn hire<'scope, 'trade: 'scope>(
        &'trade self,
        scope: &'scope Scope<'scope, 'trade>,
        number: usize,
    ) -> Option<thread::ScopedJoinHandle<'scope, Share>> {
        const STACK: usize = 64 << 10;
        let work = move || match self.take_part(number) {
            Ok(share) => share,
            Err(refusal) => self.refuse(refusal),
        };
        match thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work) {
            Ok(thread) => Some(thread),
            Err(error) => {
                self.refuse(limits::refused(&format!("thread {number}"), &error));
                None
            }
        }
    }

    fn refuse(&self, refusal: Refusal) -> Share {
        self.over.store(true, SeqCst);
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(refusal);
        Share::default()
    }

    /// The odd ones produce, the even ones consume.
    fn take_part(&self, number: usize) -> Result<Share, Refusal> {
        let mut hands = Hands {
            free: self.free.lock.join(number)?,
            filled: self.filled.lock.join(number)?,
            buffer: self.buffer.lock.join(number)?,
        };
        self.wait_for_barrier();
        let consumer = number.is_multiple_of(2);
        let items = if consumer { self.consume(&mut hands) } else { self.produce(&mut hands) };
        Ok(Share { items, aborts: hands.aborts(), consumer })
    }

    fn produce(&self, hands: &mut Hands) -> u64 {
        let mut items = 0;
        while self.down(&self.free, &mut hands.free) {
            let more = self.buffer.with(&mut hands.buffer, |buffer| {
                let more = buffer.produced < self.items;
                if more {
                    buffer.produced += 1;
                    buffer.slots[buffer.produced as usize % SLOTS] = buffer.produced;
                }
                more
            });
            if !more {
                break;
            }
            items += 1;
            up(&self.filled, &mut hands.filled);
        }
        items
    }

    fn consume(&self, hands: &mut Hands) -> u64 {
        let mut items = 0;
        while self.down(&self.filled, &mut hands.filled) {
            let item = self.buffer.with(&mut hands.buffer, |buffer| {
                buffer.consumed += 1;
                let item = std::mem::take(&mut buffer.slots[buffer.consumed as usize % SLOTS]);
                buffer.sum += u128::from(item);
                // In here, where nobody else goes on: who noted it later might have been away meanwhile.
                match item {
                    item if item == self.warm_up => self.begin(),
                    item if item == self.items => self.end(),
                    _ => {}
                }
                item
            });
            up(&self.free, &mut hands.free);
            items += u64::from(item > self.warm_up);
        }
        items
    }

    /// Waits until the number is not zero, and takes one off. False where there is nothing left to do.
    fn down(&self, semaphore: &Semaphore, handle: &mut Handle) -> bool {
        loop {
            let taken = semaphore.with(handle, |count| {
                let any = *count > 0;
                *count -= u64::from(any);
                any
            });
            if taken {
                return true;
            }
            if self.over.load(SeqCst) {
                return false;
            }
            thread::yield_now();
        }
    }

    /// The timed part begins.
    fn begin(&self) {
        *self.attendance.lock().unwrap_or_else(PoisonError::into_inner) = Some(Attendance::begin());
        self.note(0);
    }

    /// It ends.
    fn end(&self) {
        self.note(1);
        let attendance = self.attendance.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.whole.store(attendance.is_some_and(Attendance::was_whole), SeqCst);
        self.over.store(true, SeqCst);
    }

    /// The time and the switches so far.
    fn note(&self, which: usize) {
        self.switches[which].store(cpu::switches_of_process(), SeqCst);
        self.moments[which].store(self.clock.moment(), SeqCst);
    }

    /// What became of it, once everybody has left.
    fn batch(&self, shares: &[Share]) -> Result<Batch, Refusal> {
        // SAFETY: all threads have been waited for.
        let buffer = unsafe { &*self.buffer.inside.get() };
        let (items, sum) = (self.items, u128::from(self.items) * u128::from(self.items + 1) / 2);
        if (buffer.produced, buffer.consumed, buffer.sum) != (items, items, sum) {
            return Err(Refusal::Fail(format!(
                "of {items} items {} were produced and {} consumed, whose numbers add up to {} instead of {sum}: the lock let two in",
                buffer.produced, buffer.consumed, buffer.sum
            )));
        }
        let [from, to] = [0, 1].map(|which: usize| self.moments[which].load(SeqCst));
        let switches = self.switches[1].load(SeqCst).saturating_sub(self.switches[0].load(SeqCst));
        let served = || shares.iter().filter(|share| share.consumer).map(|share| share.items);
        let counters: Counters = [
            switches,
            shares.iter().map(|share| share.aborts).sum(),
            served().min().unwrap_or(0),
            served().max().unwrap_or(0),
        ];
        // On several processors others' time cannot be told from waiting.
        let undisturbed = self.whole.load(SeqCst) || self.setting.reach == Reach::Anywhere;
        Ok(Batch { work: to.saturating_sub(from), empty: 0, undisturbed, counted: None, counters })
    }
}

impl<T> Guarded<T> {
    /// Does something inside. Who finds the lock taken gives the processor away.
    fn with<R>(&self, handle: &mut Handle, work: impl FnOnce(&mut T) -> R) -> R {
        while !handle.take() {
            thread::yield_now();
        }
        // SAFETY: whoever has the lock is alone inside, and its handle is this lock's.
        let result = work(unsafe { &mut *self.inside.get() });
        handle.release();
        result
    }
}

/// Adds one.
fn up(semaphore: &Semaphore, handle: &mut Handle) {
    semaphore.with(handle, |count| *count += 1);
}

/// One thread's hold on the three locks.
struct Hands {
    free: Handle,
    filled: Handle,
    buffer: Handle,
}

impl Hands {
    fn aborts(&self) -> u64 {
        self.free.aborts() + self.filled.aborts() + self.buffer.aborts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::raw::tests::in_a_process_of_its_own;

    fn home() -> usize {
        let home = *cpu::allowed().last().expect("a processor");
        cpu::pin(home).expect("an allowed processor");
        home
    }

    fn run(method: Method, pairs: usize, reach: Reach) -> Result<Batch, Refusal> {
        let batches =
            Setting { method, pairs, reach }.run(Clock::Kernel, Order { iterations: 1, extra: 0 })?;
        Ok(batches[0])
    }

    #[test]
    fn every_item_arrives_once_whatever_the_lock() {
        in_a_process_of_its_own(|| {
            let home = home();
            for method in Method::LOCKS {
                match run(method, 3, Reach::On(home)) {
                    Ok(batch) => {
                        let [switches, _, least, most] = batch.counters;
                        assert!(batch.work > 0 && switches > 0, "{method:?}: {batch:?}");
                        assert!(
                            least <= most && 3 * most >= ITEMS && 3 * least <= ITEMS,
                            "{method:?}: {batch:?}"
                        );
                    }
                    Err(Refusal::Skip(why)) => println!("skipped: {method:?}: {why}"),
                    Err(Refusal::Fail(why)) => panic!("{method:?}: {why}"),
                }
            }
        });
    }

    #[test]
    fn an_item_that_was_lost_is_missed() {
        in_a_process_of_its_own(|| {
            let setting = Setting { method: Method::Xchg, pairs: 1, reach: Reach::On(home()) };
            let trade = Trade::new(setting, Clock::Kernel, 8, 100).expect("a trade");
            let shares = trade.open(1).expect("two threads");
            assert!(trade.batch(&shares).is_ok());
            // SAFETY: both threads have ended.
            unsafe { (*trade.buffer.inside.get()).sum -= 1 };
            let Err(Refusal::Fail(why)) = trade.batch(&shares) else { panic!("nobody missed it") };
            assert!(why.contains("the lock let two in"), "{why}");
        });
    }

    #[test]
    fn where_no_more_threads_may_be_it_is_skipped_and_nobody_stays() {
        in_a_process_of_its_own(|| {
            let home = home();
            let limit = libc::rlimit { rlim_cur: 3, rlim_max: 3 };
            // SAFETY: the limit is this process's own and it is about to end; root is exempt from it.
            let limited =
                unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &limit) == 0 && libc::setuid(65534) == 0 };
            if !limited {
                return println!("skipped: this user cannot be limited");
            }
            match run(Method::Xchg, 16, Reach::On(home)) {
                Err(Refusal::Skip(why)) => assert!(why.contains("RLIMIT_NPROC"), "{why}"),
                other => panic!("{other:?}"),
            }
        });
    }
}
