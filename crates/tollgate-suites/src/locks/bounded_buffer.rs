//! Producers and consumers around a bounded buffer, with counting semaphores built on a test-and-set: the published
//! workload (Machida and Shinohara, Sony Research Forum 2000). Each batch runs in its own process.
//!
//! Threads record the times while they hold the lock. Outside, a thread that was preempted before it read the clock
//! would make the exchange seem shorter than it was.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{self, Scope};

use super::lock::{Handle, Lock, Reach};
use super::method::Method;
use crate::prelude::*;

#[derive(Clone)]
pub(super) struct Setting {
    pub method: Method,
    /// Number of producers, and of consumers.
    pub pairs: usize,
    pub reach: Reach,
    pub processors: Vec<usize>,
    pub quota: Quota,
}

/// Items of one iteration.
pub(super) const ITEMS: u64 = 1000;
/// Untimed warm-up items, for each thread.
const WARM_UP: u64 = 4;
const SLOTS: usize = 16;
pub(super) const COUNTERS: &[&str] =
    &["context switches", "acquisitions restarted", "items to the least served", "items to the most served"];

impl Experiment for Setting {
    fn run(&mut self, clock: Clock, order: Order) -> Result<Vec<Batch>> {
        if let Reach::Anywhere = self.reach {
            cpu::allow(&self.processors);
        }
        let threads = 2 * self.pairs;
        let _taken = self.quota.take_processes(threads as u64)?;
        let warm_up = WARM_UP * threads as u64;
        let items = order.all() * ITEMS;
        let run = BufferRun::new(self.clone(), clock, warm_up, warm_up + items)?;
        let shares = run.open(self.pairs)?;
        run.batch(&shares).map(|batch| vec![batch])
    }
}

struct BufferRun {
    setting: Setting,
    clock: Clock,
    free: Semaphore,
    filled: Semaphore,
    buffer: Guarded<Buffer>,
    warm_up: u64,
    items: u64,
    open: (Mutex<bool>, Condvar),
    /// True when all items were consumed, or if a thread failed to start.
    over: AtomicBool,
    moments: [AtomicU64; 2],
    switches: [AtomicU64; 2],
    /// Covers the timed part.
    cpu_share: Mutex<Option<CpuShare>>,
    /// True if no other process used the processor.
    whole: AtomicBool,
    refused: Mutex<Option<Refusal>>,
}

struct Guarded<T> {
    lock: Lock,
    inside: UnsafeCell<T>,
}

// SAFETY: only the holder of the lock touches the data. Tests show mutual exclusion, and each run counts the items.
unsafe impl<T: Send> Sync for Guarded<T> {}

/// A counting semaphore: a number, guarded by a test-and-set.
type Semaphore = Guarded<u64>;

struct Buffer {
    slots: [u64; SLOTS],
    produced: u64,
    consumed: u64,
    sum: u128,
}

/// Items that one consumer took after the warm-up, and restarts of a thread's sequences.
#[derive(Debug, Default, Clone, Copy)]
struct Share {
    items: u64,
    aborts: u64,
    consumer: bool,
}

impl BufferRun {
    fn new(setting: Setting, clock: Clock, warm_up: u64, items: u64) -> Result<Self> {
        let lock = || Lock::new(setting.method, setting.reach, 2 * setting.pairs);
        let semaphore = |count| lock().map(|lock| Guarded { lock, inside: UnsafeCell::new(count) });
        let buffer = Buffer { slots: [0; SLOTS], produced: 0, consumed: 0, sum: 0 };
        let buffer = Guarded { lock: lock()?, inside: UnsafeCell::new(buffer) };
        let (free, filled) = (semaphore(SLOTS as u64)?, semaphore(0)?);
        Ok(Self {
            setting,
            clock,
            free,
            filled,
            buffer,
            warm_up,
            items,
            open: Default::default(),
            over: AtomicBool::new(false),
            moments: Default::default(),
            switches: Default::default(),
            cpu_share: Mutex::new(None),
            whole: AtomicBool::new(false),
            refused: Mutex::new(None),
        })
    }

    fn open(&self, pairs: usize) -> Result<Vec<Share>> {
        let shares = thread::scope(|scope| {
            let members = 1..=2 * pairs;
            let threads: Vec<_> = members.map_while(|number| self.spawn_member(scope, number)).collect();
            self.open_barrier();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<Share>>()
        });
        let refused = locked(&self.refused).take();
        match refused {
            Some(refusal) => Err(refusal),
            None if shares.len() < 2 * pairs => Err(fail!("a thread ended early")),
            None => Ok(shares),
        }
    }

    fn open_barrier(&self) {
        let (open, bell) = &self.open;
        *locked(open) = true;
        bell.notify_all();
    }

    /// Sleeps, since threads that have not started need the processor.
    fn wait_for_barrier(&self) {
        let (open, bell) = &self.open;
        let mut open = locked(open);
        while !*open {
            open = bell.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn spawn_member<'scope, 'run: 'scope>(
        &'run self,
        scope: &'scope Scope<'scope, 'run>,
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
                self.refuse(self.setting.quota.refused(&format!("thread {number}"), &error));
                None
            }
        }
    }

    fn refuse(&self, refusal: Refusal) -> Share {
        self.over.store(true, SeqCst);
        locked(&self.refused).get_or_insert(refusal);
        Share::default()
    }

    /// Members with odd numbers produce, those with even numbers consume.
    fn take_part(&self, number: usize) -> Result<Share> {
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
                // Recorded under the lock, so that no preemption delays it.
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

    /// Waits until the count is not zero, and decrements it. Returns false when the run is over.
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

    fn begin(&self) {
        *locked(&self.cpu_share) = Some(CpuShare::begin());
        self.note(0);
    }

    fn end(&self) {
        self.note(1);
        let cpu_share = locked(&self.cpu_share).take();
        self.whole.store(cpu_share.is_some_and(CpuShare::was_full), SeqCst);
        self.over.store(true, SeqCst);
    }

    fn note(&self, which: usize) {
        self.switches[which].store(cpu::switches_of_process(), SeqCst);
        self.moments[which].store(self.clock.moment(), SeqCst);
    }

    fn batch(&self, shares: &[Share]) -> Result<Batch> {
        // SAFETY: all threads have been joined.
        let buffer = unsafe { &*self.buffer.inside.get() };
        let (items, sum) = (self.items, u128::from(self.items) * u128::from(self.items + 1) / 2);
        if (buffer.produced, buffer.consumed, buffer.sum) != (items, items, sum) {
            return Err(fail!(
                "mutual exclusion violated: of {items} items {} were produced and {} consumed, and their numbers add up to {} instead of {sum}",
                buffer.produced,
                buffer.consumed,
                buffer.sum
            ));
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
        // On several processors other processes' time cannot be distinguished from waiting.
        let undisturbed = self.whole.load(SeqCst) || self.setting.reach == Reach::Anywhere;
        Ok(Batch { counters, ..Batch::new(to.saturating_sub(from), 0, undisturbed) })
    }
}

impl<T> Guarded<T> {
    /// Runs `work` under the lock. While the lock is held, waiting threads call sched_yield(2).
    fn with<R>(&self, handle: &mut Handle, work: impl FnOnce(&mut T) -> R) -> R {
        while !handle.take() {
            thread::yield_now();
        }
        // SAFETY: the lock is held by this handle.
        let result = work(unsafe { &mut *self.inside.get() });
        handle.release();
        result
    }
}

fn up(semaphore: &Semaphore, handle: &mut Handle) {
    semaphore.with(handle, |count| *count += 1);
}

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
    use crate::{
        processes::raw::tests::in_a_process_of_its_own, testing::limited_to, testing::pinned, testing::ready,
    };

    fn setting(method: Method, pairs: usize, reach: Reach) -> Setting {
        Setting { method, pairs, reach, processors: cpu::allowed(), quota: Quota::default() }
    }

    fn run(method: Method, pairs: usize, reach: Reach) -> Result<Batch> {
        let order = Order::new(1);
        Ok(setting(method, pairs, reach).run(Clock::Kernel, order)?[0])
    }

    #[test]
    fn every_item_arrives_once_with_every_lock() {
        in_a_process_of_its_own(|| {
            let home = pinned();
            for method in Method::LOCKS {
                let Some(batch) = ready(method, run(method, 3, Reach::On(home))) else { continue };
                let [switches, _, least, most] = batch.counters;
                assert!(batch.work > 0 && switches > 0, "{method:?}: {batch:?}");
                assert!(least <= most && 3 * most >= ITEMS && 3 * least <= ITEMS, "{method:?}: {batch:?}");
            }
        });
    }

    #[test]
    fn a_lost_item_is_detected() {
        in_a_process_of_its_own(|| {
            let setting = setting(Method::Xchg, 1, Reach::On(pinned()));
            let run = BufferRun::new(setting, Clock::Kernel, 8, 100).expect("a run");
            let shares = run.open(1).expect("two threads");
            assert!(run.batch(&shares).is_ok());
            // SAFETY: both threads have ended.
            unsafe { (*run.buffer.inside.get()).sum -= 1 };
            let Err(Refusal::Fail(why)) = run.batch(&shares) else { panic!("a lost item must be detected") };
            assert!(why.contains("mutual exclusion violated"), "{why}");
        });
    }

    #[test]
    fn a_thread_limit_is_a_skip_and_no_thread_stays() {
        in_a_process_of_its_own(|| {
            let home = pinned();
            if !limited_to(3) {
                return;
            }
            match run(Method::Xchg, 16, Reach::On(home)) {
                Err(Refusal::Skip(why)) => assert!(why.contains("RLIMIT_NPROC"), "{why}"),
                other => panic!("{other:?}"),
            }
        });
    }
}
