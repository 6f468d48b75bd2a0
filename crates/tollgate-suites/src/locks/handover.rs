use std::sync::{Arc, mpsc};
use std::{sync::atomic::AtomicU32, thread::JoinHandle};

use super::lock::{Handle, Lock, Reach};
use super::method::Method;
use crate::prelude::*;

timed_loop! {
    /// Waits for its turn, acquires the lock, passes the turn to the other thread, and releases the lock. Words: 0: the
    /// lock's words; 1: the member; 2: the address of the turn; 3: this thread's number, and above it the other's; 4:
    /// acquire; 5: release; 6: nonzero if a waiter calls sched_yield(2). The turn is passed by a release and read by an acquire.
    alternate:
        "mov r14, [r13 + 16]", "mov rbx, [r13 + 24]",
        "3:", "cmp [r14], ebx", "je 4f",
        "cmp qword ptr [r13 + 48], 0", "jne 6f", "pause", "jmp 3b",
        "6:", "mov eax, 24", "syscall", "jmp 3b",
        "4:", "mov rdi, [r13]", "mov rsi, [r13 + 8]", "call [r13 + 32]",
        "test eax, eax", "je 5f",
        "cmp qword ptr [r13 + 48], 0", "jne 7f", "pause", "jmp 4b",
        "7:", "mov eax, 24", "syscall", "jmp 4b",
        "5:", "shr rbx, 32", "mov [r14], ebx",
        "mov rdi, [r13]", "mov rsi, [r13 + 8]", "call [r13 + 40]";
    aarch64
        "ldr x21, [x20, #16]", "ldr x22, [x20, #24]", "ldr x23, [x20, #48]", "mov x8, 124",
        "3:", "ldar w9, [x21]", "cmp w9, w22", "b.eq 4f",
        "cbnz x23, 6f", "isb", "b 3b",
        "6:", "svc 0", "b 3b",
        "4:", "ldr x0, [x20]", "ldr x1, [x20, #8]", "ldr x9, [x20, #32]", "blr x9",
        "cbz w0, 5f",
        "cbnz x23, 7f", "isb", "b 4b",
        "7:", "mov x8, 124", "svc 0", "b 4b",
        "5:", "lsr x22, x22, 32", "stlr w22, [x21]",
        "ldr x0, [x20]", "ldr x1, [x20, #8]", "ldr x9, [x20, #40]", "blr x9"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "locks/handover",
    operation: "One handover of a lock to a waiting thread, on the same processor or on another: half a round trip.",
    avoid: "Hold locks briefly, so that the next thread need not sleep; spin a little before sleeping.",
    source: "futex(7); pthread_mutex_lock(3p)",
    crosses: &[
        LockContention,
        CacheLine,
        ContextSwitch,
        KernelEntry,
        SystemCall,
        KernelCode,
        UserCopy,
        Atomic,
    ],
    crossed_in: |params, boundary| match (boundary, Cpus::try_from(params)) {
        (LockContention, _) => true,
        (CacheLine, cpus) => cpus == Ok(Cpus::Two),
        // A waiter on the same processor calls sched_yield(2).
        (KernelEntry | SystemCall | KernelCode | ContextSwitch, Ok(Cpus::One)) => true,
        _ => Method::from_params(params).is_ok_and(|by| by.crosses(boundary)),
    },
    timed: |_| Timed::Together { code: alternate, instruction: "call/blr", times: 2 },
    counters: &["acquisitions restarted"],
    cases: |_| {
        let case = |by: Method, cpus: &str| params(&[("by", by.name().into()), ("cpus", cpus.into())]);
        let of = |cpus: &'static str| Method::LOCKS.into_iter().map(move |by| case(by, cpus));
        Cpus::WORDS.iter().copied().flat_map(of).collect()
    },
    baseline: Baseline::Case(|case| Some(Method::by_system_call(case))),
    kind: Kind::Instance(|_, params, context| instance(params, context)),
    // Its threads share the descriptors of their process.
    company: Company::Own,
    ..PLAIN
};

const HAND_OVERS: u64 = 2;

words! {
    enum Cpus("cpus") { One = "one", Two = "two" }
}

fn instance(params: &Params, context: &mut Context) -> Result<Instance> {
    let method = Method::from_params(params)?;
    let home = context.home()?;
    let other = match Cpus::try_from(params)? {
        Cpus::One => home,
        Cpus::Two => context.other_processor()?,
    };
    let reach = if other == home { Reach::On(home) } else { Reach::Anywhere };
    if let (Reach::Anywhere, Some(why)) = (reach, method.bound_to_its_processor()) {
        return Err(Refusal::Skip(why.to_owned()));
    }
    let lock = Lock::new(method, reach, 2)?;
    let mut mine = lock.join(1)?;
    mine.try_out()?;
    let turn = Arc::new(Turn(AtomicU32::new(1)));
    let yields = other == home;
    let partner = Partner::start(lock, other, Arc::clone(&turn), yields, &context.quota)?;
    let side = Side::new(mine, method, turn, [1, 2], yields);
    Ok(Instance::new(Pair { side, partner, alone: yields }).with_ops(HAND_OVERS))
}

/// The number of the thread that runs next, on its own pair of cache lines.
#[repr(align(128))]
struct Turn(AtomicU32);

struct Side {
    context: Box<LoopContext>,
    handle: Handle,
    _turn: Arc<Turn>,
}

impl Side {
    fn new(
        mut handle: Handle,
        method: Method,
        turn: Arc<Turn>,
        [own, other]: [u64; 2],
        yields: bool,
    ) -> Self {
        let code = method.code();
        let [words, member, ..] = handle.context();
        let turns = turn.0.as_ptr() as u64;
        let numbers = other << 32 | own;
        let words = [
            words,
            member,
            turns,
            numbers,
            code.take as usize as u64,
            code.release as usize as u64,
            yields.into(),
        ];
        Self { context: Box::new(LoopContext { words, result: 0 }), handle, _turn: turn }
    }

    fn run(&mut self, times: u64) {
        // SAFETY: the words point into data that this side owns, and fit this loop.
        unsafe { alternate.run(times, &mut *self.context) }
    }
}

/// The other thread. It ends when its channel of orders closes.
struct Partner {
    orders: Option<mpsc::Sender<u64>>,
    reports: mpsc::Receiver<Report>,
    thread: Option<JoinHandle<()>>,
    _taken: Taken,
}

struct Report {
    switched: bool,
    aborts: u64,
}

impl Partner {
    fn start(lock: Lock, cpu: usize, turn: Arc<Turn>, yields: bool, quota: &Quota) -> Result<Self> {
        let taken = quota.take_processes(1)?;
        let (orders, inbox) = mpsc::channel::<u64>();
        let (outbox, reports) = mpsc::channel();
        let (ready, prepared) = mpsc::channel();
        let body = move || {
            let joined =
                cpu::pin(cpu).or_refused("another processor cannot be used").and_then(|()| lock.join(2));
            let mut side = match joined {
                Ok(handle) => Side::new(handle, lock.method(), turn, [2, 1], yields),
                Err(refusal) => return drop(ready.send(Err(refusal))),
            };
            if ready.send(Ok(())).is_err() {
                return;
            }
            for times in inbox {
                let (switches, aborts) = (cpu::switches(), side.handle.aborts());
                side.run(times);
                let report =
                    Report { switched: cpu::switches() != switches, aborts: side.handle.aborts() - aborts };
                if outbox.send(report).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("tollgate-handover".to_owned())
            .spawn(body)
            .map_err(|error| quota.refused("a second thread", &error))?;
        prepared.recv().unwrap_or_else(|_| Err(gone()))?;
        Ok(Self { orders: Some(orders), reports, thread: Some(thread), _taken: taken })
    }

    fn begin(&self, times: u64) -> Result<()> {
        let orders = self.orders.as_ref().ok_or_else(gone)?;
        orders.send(times).map_err(|_| gone())
    }

    fn report(&self) -> Result<Report> {
        self.reports.recv().map_err(|_| gone())
    }
}

fn gone() -> Refusal {
    fail!("the second thread ended early")
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Pair {
    side: Side,
    partner: Partner,
    /// True if both share one processor, where a waiter is always switched out.
    alone: bool,
}

impl Runner for Pair {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        let times = order.all();
        // The warm-up wakes the partner and warms both threads' caches.
        let warm_up = (times / 16).max(2);
        let mut nothing = LoopContext::default();
        let aborts = self.side.handle.aborts();
        self.partner.begin(warm_up + times)?;
        self.side.run(warm_up);
        let (cpu_share, switches) = (CpuShare::begin(), cpu::switches());
        let worked = clock.time(|| self.side.run(times));
        let whole = cpu_share.was_full();
        let switched = cpu::switches() != switches;
        let report = self.partner.report()?;
        let emptied = clock.time(|| run_empty(order.iterations, &mut nothing));
        let mut counters = Counters::default();
        counters[0] = self.side.handle.aborts() - aborts + report.aborts;
        let undisturbed = if self.alone { whole } else { !switched && !report.switched };
        Ok(Batch {
            counters,
            ..Batch::new(worked.ticks, emptied.ticks, undisturbed && worked.same_processor)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{processes::raw::tests::in_a_process_of_its_own, testing::ready};

    #[test]
    fn the_lock_alternates_and_is_free_at_the_end() {
        in_a_process_of_its_own(|| {
            let all = cpu::allowed();
            let mut context = Context::here();
            cpu::pin(*all.last().expect("a processor")).expect("an allowed processor");
            for case in (BENCHMARK.cases)(&Topology::default()) {
                let Some(mut instance) = ready(&case, instance(&case, &mut context)) else { continue };
                let batch = instance.batch(Clock::Kernel, Order::new(50)).expect("a batch");
                assert!(batch.work > 0, "{case:?}");
            }
        });
    }

    #[test]
    fn the_threads_alternate() {
        in_a_process_of_its_own(|| {
            let home = *cpu::allowed().last().expect("a processor");
            cpu::pin(home).expect("an allowed processor");
            let lock = Lock::new(Method::Cmpxchg, Reach::On(home), 2).expect("a lock");
            let turn = Arc::new(Turn(AtomicU32::new(2)));
            let quota = Quota::default();
            let partner = Partner::start(lock.clone(), home, Arc::clone(&turn), true, &quota);
            let partner = partner.expect("a thread");
            // The partner has the first turn; it then waits for a second one from this side.
            partner.begin(2).expect("there");
            while turn.0.load(std::sync::atomic::Ordering::SeqCst) != 1 {
                std::thread::yield_now();
            }
            let mut mine =
                Side::new(lock.join(1).expect("a member"), Method::Cmpxchg, Arc::clone(&turn), [1, 2], true);
            mine.run(1);
            let report = partner.report().expect("the partner's report");
            assert_eq!(report.aborts, 0);
            assert_eq!(turn.0.load(std::sync::atomic::Ordering::SeqCst), 1);
            assert!(mine.handle.take(), "the lock is free");
        });
    }
}
