//! The published population (Takeuchi, "Windows Subsystem for Linux and guest/native Ubuntu", 2017): a thousand
//! children that only pause, then as many threads; the time and memory of each.
//!
//! The article computed memory from the change of free memory. Here that is one figure, shown if it is meaningful (see
//! [`free`]), next to the kernel's accounts of each process.

mod free;

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::accounts::{Accounts, Footprint, footprint};
use super::memory::{self, Memory, kinds};
use super::{fixture, ring, switch};
use crate::prelude::*;
use free::Free;

/// The article's number.
const MOST: u64 = 1000;
/// An upper bound for one task's memory, for the limits.
const BYTES_EACH: u64 = 256 << 10;

pub(super) static TIME: Benchmark = Benchmark {
    name: "processes/population",
    operation: "One of a thousand children or threads that are created in sequence and only pause, from the first call until the last one pauses.",
    avoid: "Use one thread for many tasks (epoll, io_uring) instead of one each.",
    source: "pthread_create(3); fork(2)",
    crosses: &[
        ProcessCreation,
        AddressSpaceCopy,
        KernelAllocation,
        KernelCode,
        PageFault,
        ContextSwitch,
        WakeUp,
    ],
    crossed_in: |params, boundary| boundary != AddressSpaceCopy || word(params, "of") == "process",
    timed: |_| Timed::Whole("fork(2), pthread_create(3)"),
    cases: |_| cases(),
    kind: Kind::Instance(|_, params, context| of_one(params, 0, context)),
    ..PLAIN
};

pub(super) static MEMORY: Benchmark = Benchmark {
    name: "processes/population-memory",
    operation: "Memory of one of a thousand pausing children or threads by the kernel's accounts: private dirty pages, page tables and kernel stack; and each of these alone.",
    avoid: "Make stacks smaller where there are thousands of threads: pthread_attr_setstacksize.",
    source: "proc_pid_smaps(5); pthread_attr_setstacksize(3)",
    crosses: &[ProcessMemory],
    timed: |_| Timed::Whole("proc_pid_smaps(5), proc_pid_status(5), proc_meminfo(5)"),
    unit: Unit::Bytes,
    cases: |_| {
        let parts = memory::with(cases(), "part", &Part::WORDS[1..]);
        cases().into_iter().chain(parts).collect()
    },
    kind: Kind::Instance(|_, params, context| {
        footprint("self")?;
        of_one(params, 1 + Part::try_from(params)? as usize, context)
    }),
    ..TIME
};

pub(super) static FREE: Benchmark = Benchmark {
    name: "processes/population-free",
    operation: "Decrease of the machine's free memory for each of a thousand pausing children or threads: the article's figure, where other changes are small.",
    avoid: "Make stacks smaller where there are thousands of threads: pthread_attr_setstacksize.",
    source: "proc_meminfo(5); pthread_attr_setstacksize(3)",
    timed: |_| Timed::Whole("proc_meminfo(5)"),
    cases: |_| cases(),
    kind: Kind::Instance(|_, params, context| {
        Accounts::of_the_machine()?;
        question(params, 0, "free memory of", context, |population| Box::new(Free(population)))
    }),
    ..MEMORY
};

fn cases() -> Vec<Params> {
    each_word("of", Of::WORDS)
}

/// Makes a question that one population answers: its time, its memory, and the parts of that.
fn of_one(params: &Params, which: usize, context: &mut Context) -> Result<Instance> {
    question(params, which, "population of", context, |population| Box::new(population))
}

fn question(
    params: &Params,
    which: usize,
    what: &str,
    context: &mut Context,
    experiment: fn(Population) -> Box<dyn Experiment>,
) -> Result<Instance> {
    let of = Of::try_from(params)?;
    let (number, limit) = number(&context.quota);
    if number == 0 {
        return Err(skip!("the limit allows none: {}", limit.unwrap_or_default()));
    }
    let shared = Shared::once(context, &format!("{what} {of:?}"), |context| {
        let (quota, heartbeat) = (context.quota.clone(), context.heartbeat.clone());
        let population = Population { of, number: number as u32, quota, heartbeat };
        // Runs in its own process: its children share little memory with it, and end with it.
        OwnProcess::start(&context.quota, || Ok(vec![experiment(population)])).map(|own| own.experiment(0))
    })?;
    let note = match limit {
        Some(limit) => format!("{number} at a time instead of {MOST}: limit is {limit}"),
        None => format!("{number} at a time"),
    };
    Ok(shared.question(which).with_ops(number).with_most(1).with_notes([note]))
}

/// Returns the number of tasks within the limits, next to the suite's other instances, and the limit. Below the planned
/// number it is halved in steps: available memory changes constantly, and the number should not.
fn number(quota: &Quota) -> (u64, Option<String>) {
    let kinds: Vec<Memory> = kinds().iter().flat_map(Memory::from_params).collect();
    let memories: Vec<Memory> = fixture::memories(&kinds).collect();
    let processes =
        memories.iter().map(|_| fixture::PROCESSES).chain(ring::children()).chain(switch::partners());
    let bytes = memories.iter().map(|memory| memory.bytes() as u64);
    let reserved = Reserved { processes: processes.collect(), bytes: bytes.collect() };
    let (fitting, limit) = quota.how_many(MOST, BYTES_EACH, &reserved);
    let mut number = MOST;
    while number > fitting {
        number /= 2;
    }
    (number, limit)
}

words! {
    enum Of("of") { Processes = "process", Threads = "thread" }
}

words! {
    /// The parts of a population's memory, in the order of their batches.
    enum Part("part") { All = "", DirtyPages = "dirty-pages", PageTables = "page-tables", KernelStack = "kernel-stack" }
}

struct Population {
    of: Of,
    number: u32,
    quota: Quota,
    heartbeat: Heartbeat,
}

struct Findings {
    time: Batch,
    memory: Footprint,
}

impl Experiment for Population {
    fn run(&mut self, clock: Clock, _: Order) -> Result<Vec<Batch>> {
        let before = Accounts::of_the_machine();
        let mut during = Err(skip!("no memory figures were read"));
        let mut look = || during = Accounts::of_the_machine();
        let findings = match self.of {
            Of::Processes => processes(self, clock, &mut look)?,
            Of::Threads => threads(self, clock, &mut look)?,
        };
        // Without /proc the two instances have been skipped already.
        let (before, during) = (before.unwrap_or_default(), during.unwrap_or_default());
        let stacks = during.kernel_stacks.saturating_sub(before.kernel_stacks);
        let Footprint { dirty, tables } = findings.memory;
        let all = findings.memory.total().saturating_add(stacks);
        let amounts = [all, dirty, tables, stacks].map(|bytes| amount(0, bytes));
        Ok(std::iter::once(findings.time).chain(amounts).collect())
    }
}

fn amount(before: i64, after: i64) -> Batch {
    let bytes = |amount: i64| u64::try_from(amount).unwrap_or(0);
    Batch::new(bytes(after), bytes(before), true)
}

/// Makes children, which die with this process.
fn processes(population: &Population, clock: Clock, look: &mut dyn FnMut()) -> Result<Findings> {
    let mut children = Children::none(population)?;
    let cpu_share = CpuShare::begin();
    let mut outcome = Ok(());
    let span = clock.time(|| outcome = children.make_all());
    outcome?;
    let undisturbed = span.same_processor && cpu_share.was_full_with(&children.pids);
    look();
    let each = children.pids.iter().map(|pid| footprint(pid).unwrap_or_default());
    let memory = each.fold(Footprint::default(), |sum, one| Footprint {
        dirty: sum.dirty.saturating_add(one.dirty),
        tables: sum.tables.saturating_add(one.tables),
    });
    let time = Batch::new(span.ticks, 0, undisturbed);
    Ok(Findings { time, memory })
}

/// Children of this process, ended on drop. They wait at a pipe without data: when this process ends and the pipe
/// closes, they exit, even if signals are forbidden.
struct Children<'a> {
    population: &'a Population,
    pids: Vec<libc::pid_t>,
    waiting: SharedWaiting,
    pipe: Option<(PipeReader, PipeWriter)>,
}

impl<'a> Children<'a> {
    fn none(population: &'a Population) -> Result<Self> {
        let refused = |error: io::Error| Refusal::new("no memory to share with children", &error);
        let pipe = Some(io::pipe().map_err(refused)?);
        let waiting = SharedWaiting::new().map_err(refused)?;
        Ok(Self { population, pids: Vec::with_capacity(population.number as usize), waiting, pipe })
    }

    /// Creates them, and waits until the last one pauses.
    fn make_all(&mut self) -> Result<()> {
        // SAFETY: getpid(2) has no preconditions.
        let parent = unsafe { libc::getpid() };
        while self.pids.len() < self.population.number as usize {
            // A raw call, because the time to make all of them is measured.
            // SAFETY: the child calls only async-signal-safe functions.
            match unsafe { libc::fork() } {
                -1 => {
                    let call = format!("fork, after {} of them,", self.pids.len());
                    return Err(self.population.quota.refused(&call, &io::Error::last_os_error()));
                }
                0 => self.pause(parent),
                child => self.pids.push(child),
            }
            if self.pids.len().is_multiple_of(64) {
                self.population.heartbeat.beat();
            }
        }
        self.waiting.get().wait_for(self.population, Of::Processes)
    }

    fn pause(&self, parent: libc::pid_t) -> ! {
        tollgate_os::process::die_with_parent(parent);
        let (nothing, open) =
            self.pipe.as_ref().map_or((-1, -1), |(out, into)| (out.as_raw_fd(), into.as_raw_fd()));
        let mut byte = 0_u8;
        // SAFETY: system calls on this child's own descriptors and memory; the last one ends it without destructors.
        unsafe {
            libc::close(open);
            self.waiting.get().report(self.population.number, Of::Processes);
            libc::read(nothing, (&raw mut byte).cast(), 1);
            libc::_exit(0)
        }
    }
}

impl Drop for Children<'_> {
    fn drop(&mut self) {
        for &child in &self.pids {
            // SAFETY: `child` is our child and has not been waited for, so the number is still its own.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        self.pipe = None;
        for (at, &child) in self.pids.iter().enumerate() {
            // SAFETY: as above.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            if at.is_multiple_of(64) {
                self.population.heartbeat.beat();
            }
        }
    }
}

/// The counter of tasks that have started, and the futex on which they wait.
#[derive(Debug, Default)]
struct Waiting {
    count: AtomicU32,
    gate: AtomicU32,
}

impl Waiting {
    /// Counts one more of `number` tasks that pauses; the last one wakes the waiter.
    fn report(&self, number: u32, scope: Of) {
        if self.count.fetch_add(1, Relaxed) + 1 == number {
            self.gate.store(1, Relaxed);
            futex(&self.gate, libc::FUTEX_WAKE, scope, 1, None);
        }
    }

    fn wait_for(&self, population: &Population, scope: Of) -> Result<()> {
        /// After this many waits without a report a task counts as killed, or futex waits as forbidden.
        const PATIENCE: usize = 40;
        const A_WHILE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        let (mut seen, mut idle) = (0, 0);
        while self.gate.load(Relaxed) == 0 {
            futex(&self.gate, libc::FUTEX_WAIT, scope, 0, Some(&A_WHILE));
            let now = self.count.load(Relaxed);
            idle = if now == seen { idle + 1 } else { 0 };
            seen = now;
            population.heartbeat.beat();
            if idle > PATIENCE {
                return Err(fail!("only {seen} of {} tasks started", population.number));
            }
        }
        Ok(())
    }
}

fn futex(word: &AtomicU32, operation: libc::c_int, scope: Of, value: u32, time: Option<&libc::timespec>) {
    let scope = match scope {
        Of::Processes => 0,
        Of::Threads => libc::FUTEX_PRIVATE_FLAG,
    };
    let time: *const libc::timespec = time.map_or(std::ptr::null(), |time| time);
    // SAFETY: the word is live; the time is null or a live timespec.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation | scope, value, time) };
}

struct SharedWaiting(Mapping);

impl SharedWaiting {
    fn new() -> io::Result<Self> {
        Mapping::anonymous(size_of::<Waiting>(), libc::MAP_SHARED).map(Self)
    }

    fn get(&self) -> &Waiting {
        // SAFETY: the mapping is zero-filled, a valid `Waiting`, aligned to a page, and lives as long as this.
        unsafe { &*self.0.address().cast() }
    }
}

fn threads(population: &Population, clock: Clock, look: &mut dyn FnMut()) -> Result<Findings> {
    let before = footprint("self");
    let mut threads = Threads::none(population);
    let cpu_share = CpuShare::begin();
    let mut outcome = Ok(());
    let span = clock.time(|| outcome = threads.make_all());
    let undisturbed = span.same_processor && cpu_share.was_full();
    outcome?;
    look();
    let after = footprint("self");
    drop(threads);
    let time = Batch::new(span.ticks, 0, undisturbed);
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let memory = Footprint { dirty: after.dirty - before.dirty, tables: after.tables - before.tables };
    Ok(Findings { time, memory })
}

struct Threads<'a> {
    population: &'a Population,
    handles: Vec<libc::pthread_t>,
    shared: Box<ThreadData>,
}

struct ThreadData {
    number: u32,
    waiting: Waiting,
    /// Set when they may exit.
    exit: AtomicU32,
}

impl<'a> Threads<'a> {
    fn none(population: &'a Population) -> Self {
        let number = population.number;
        let shared = Box::new(ThreadData { number, waiting: Waiting::default(), exit: AtomicU32::new(0) });
        Self { population, handles: Vec::with_capacity(number as usize), shared }
    }

    fn make_all(&mut self) -> Result<()> {
        while self.handles.len() < self.population.number as usize {
            let mut handle: libc::pthread_t = 0;
            let shared: *const ThreadData = &*self.shared;
            // SAFETY: `handle` is valid for writing; `shared` outlives the threads, which are joined before its drop.
            let error = unsafe {
                libc::pthread_create(&mut handle, std::ptr::null(), pause, shared.cast_mut().cast())
            };
            if error != 0 {
                let error = io::Error::from_raw_os_error(error);
                let made = self.handles.len();
                // EAGAIN: the limit of processes, or of memory for stacks (pthread_create(3)).
                return Err(skip!(
                    "pthread_create is refused after {made} of them: {}",
                    tollgate_model::text::said_by("pthread_create", &error)
                ));
            }
            self.handles.push(handle);
            if self.handles.len().is_multiple_of(64) {
                self.population.heartbeat.beat();
            }
        }
        self.shared.waiting.wait_for(self.population, Of::Threads)
    }
}

extern "C" fn pause(shared: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: the pointee lives until this thread is joined.
    let shared = unsafe { &*shared.cast::<ThreadData>() };
    shared.waiting.report(shared.number, Of::Threads);
    while shared.exit.load(Relaxed) == 0 {
        futex(&shared.exit, libc::FUTEX_WAIT, Of::Threads, 0, None);
    }
    std::ptr::null_mut()
}

impl Drop for Threads<'_> {
    fn drop(&mut self) {
        self.shared.exit.store(1, Relaxed);
        futex(&self.shared.exit, libc::FUTEX_WAKE, Of::Threads, i32::MAX as u32, None);
        for &handle in &self.handles {
            // SAFETY: the handle's thread has not been joined.
            unsafe { libc::pthread_join(handle, std::ptr::null_mut()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn population(of: Of, number: u32) -> Population {
        Population { of, number, quota: Quota::default(), heartbeat: Heartbeat::default() }
    }

    fn run(of: Of) -> Vec<Batch> {
        let own = OwnProcess::start(&Quota::default(), || Ok(vec![Box::new(population(of, 40))]));
        let own = own.expect("a process");
        let order = Order::new(1);
        own.experiment(0).run(Clock::Kernel, order).expect("40 of them")
    }

    #[test]
    fn a_process_takes_more_memory_than_a_thread_and_both_take_kernel_stacks() {
        let [of_processes, of_threads] = [Of::Processes, Of::Threads].map(|of| {
            let batches = run(of);
            assert_eq!(batches.len(), 1 + Part::ALL.len());
            let bytes = |batch: &Batch| batch.work as i64 - batch.empty as i64;
            // An amount that shrank counts as 0.
            let parts: i64 = batches[2..].iter().map(bytes).sum();
            assert!(parts >= bytes(&batches[1]), "{parts} bytes of parts, {} of all", bytes(&batches[1]));
            assert!(batches[0].work > 0);
            batches[1].work as i64 - batches[1].empty as i64
        });
        if footprint("self").is_err() {
            println!("skipped: no /proc here");
            return;
        }
        // A kernel stack is at least 8 KiB; the machine's counts vary with other processes.
        assert!(of_threads > 40 * (8 << 10) / 2, "{of_threads} bytes for 40 threads");
        assert!(
            of_processes > of_threads,
            "{of_processes} bytes for 40 processes, {of_threads} for 40 threads"
        );
    }

    #[test]
    fn dropped_children_have_ended() {
        let five = population(Of::Processes, 5);
        let mut children = Children::none(&five).expect("a pipe");
        children.make_all().expect("5 children that pause");
        let pids = children.pids.clone();
        drop(children);
        for pid in pids {
            assert!(tollgate_os::process::is_gone(pid));
        }
    }
}
