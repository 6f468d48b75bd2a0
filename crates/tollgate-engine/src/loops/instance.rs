//! Instances: cases that are ready to run batches, in the thread or process that they need.

use std::{any::Any, sync::mpsc, thread, time::Duration};

use serde::{Deserialize, Serialize};

use crate::loops::events::{self, Counting, Of};
use crate::loops::runner::{Batch, BatchHooks, Order, Runner};
use crate::loops::settling::Settling;
use crate::loops::timed::{LongLoop, LoopContext, Timed, TimedLoop};
use crate::refusal::{OrRefused, Refusal, Result};
use crate::{loops::compat, machine::clock::Clock, machine::cpu};

/// The calibration of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// Time of one iteration of its loop.
    pub cost: Duration,
    /// Time of one iteration with the untimed parts of a batch that are proportional to its iterations.
    pub whole: Duration,
    /// Time of the other untimed parts, such as reaching a loop's steady state.
    #[serde(default)]
    pub fixed: Duration,
    /// Time of its preparation.
    pub setup: Duration,
    /// Operations in one iteration.
    pub ops: u64,
    /// The most iterations in a batch.
    pub most: u64,
    /// Iterations of a sample of instructions; 0 if its batches are timed.
    #[serde(default)]
    pub counted: u64,
    /// The address of its loop's first instruction, in a watched process or in the kernel.
    #[serde(default)]
    pub entry: Option<u64>,
    /// The experiment that it is a part of.
    pub experiment: Option<String>,
    /// The fixture that it shares with other instances.
    pub fixture: Option<String>,
    /// Sentences about it.
    pub notes: Vec<String>,
}

/// A case that is ready to run.
pub struct Instance {
    pub(crate) runner: Box<dyn Runner>,
    pub(crate) ready: Readiness,
    /// The part of the preparation that later processes of the run need not repeat.
    pub(crate) spent_once: Duration,
    /// Whether its runner counts the events of its batches.
    counts_events: bool,
}

/// Returns the address of a loop's first instruction, in this process or in the 32-bit program. `None` for whole operations.
pub fn loop_address(timed: &Timed) -> Option<u64> {
    match timed {
        Timed::Loop { code: TimedLoop::Long(code), .. } | Timed::Together { code, .. } => {
            Some(code.address() as u64)
        }
        Timed::Loop { code: TimedLoop::Compat(_), .. } => Some(compat::loop_address()),
        Timed::Whole(_) => None,
    }
}

impl Instance {
    /// Makes an instance whose batches `runner` runs.
    pub fn new(runner: impl Runner + 'static) -> Self {
        let ready = Readiness { ops: 1, most: u64::MAX, ..Readiness::default() };
        Self { runner: Box::new(runner), ready, spent_once: Duration::ZERO, counts_events: false }
    }

    /// Makes an instance in a 32-bit process of its own, and returns how the 32-bit vDSO enters the kernel there.
    ///
    /// # Errors
    /// [`Refusal::Skip`] if the kernel does not run 32-bit programs, [`Refusal::Fail`] for a loop in 64-bit code.
    pub fn in_compat(timed: Timed, check: fn(u32) -> Result<(), String>) -> Result<(Self, compat::Entry)> {
        let Timed::Loop { code: TimedLoop::Compat(code), .. } = timed else {
            return Err(fail!("only a 32-bit loop can run in a 32-bit process"));
        };
        let program = compat::Program::start(code(), check)?;
        let entry = program.entry();
        Ok((Self::new(program), entry))
    }

    /// Sets the number of operations in one iteration.
    pub fn with_ops(mut self, ops: u64) -> Self {
        self.ready.ops = ops.max(1);
        self
    }

    /// Limits the iterations of a batch.
    pub fn with_most(mut self, iterations: u64) -> Self {
        self.ready.most = iterations.max(1);
        self
    }

    /// Sets the address where its loop begins, in the kernel.
    pub fn looping_at(mut self, address: u64) -> Self {
        self.ready.entry = Some(address);
        self
    }

    /// Names a fixture that instances share. If time is short, a process runs all of them or none.
    pub fn on_fixture(mut self, fixture: impl Into<String>) -> Self {
        self.ready.fixture = Some(fixture.into());
        self
    }

    /// Sets the part of the preparation whose results, such as a file, later processes of the run find.
    pub fn spent_once(mut self, time: Duration) -> Self {
        self.spent_once = time;
        self
    }

    /// Adds notes for the row.
    pub fn with_notes<N: Into<String>>(mut self, notes: impl IntoIterator<Item = N>) -> Self {
        self.ready.notes.extend(notes.into_iter().map(Into::into));
        self
    }

    /// Runs one batch, as a round does.
    pub fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        self.runner.batch(clock, order)
    }

    /// Runs one batch and counts its events: those of its runner, or those of the whole call.
    pub(crate) fn counted_batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        if self.counts_events {
            return self.runner.batch(clock, order);
        }
        let runner = &mut self.runner;
        let mut counted_itself = false;
        let mut batches = events::around(|| {
            let batch = runner.batch(clock, order)?;
            counted_itself = !batch.tally.is_empty();
            Ok(vec![batch])
        })?;
        self.counts_events = counted_itself;
        batches.pop().ok_or_else(|| fail!("no batch"))
    }

    /// Returns the operations in one iteration, and the most iterations in a batch.
    pub fn limits(&self) -> (u64, u64) {
        (self.ready.ops, self.ready.most)
    }
}

/// A 64-bit loop with its context, for any thread.
pub struct Loop {
    code: LongLoop,
    context: Box<LoopContext>,
    overhead: LongLoop,
    check: Check,
    hooks: Option<Box<dyn BatchHooks>>,
    settling: Option<Settling>,
    /// Owns what the context points to.
    _owned: Option<Box<dyn Any + Send>>,
}

/// Checks the result of a batch's last operation.
pub type Check = Box<dyn Fn(u64) -> Result<(), String> + Send>;

impl Loop {
    /// Makes a loop with `words` in its context. `check` sees each batch's result, so that a failed operation is not measured.
    ///
    /// # Errors
    /// [`Refusal::Fail`] for a loop that is not 64-bit code.
    ///
    /// # Safety
    /// The loop must be sound to run any number of times with these words, whose targets live in `owned` or forever.
    pub unsafe fn new(
        timed: Timed,
        words: [u64; 7],
        owned: Option<Box<dyn Any + Send>>,
        check: impl Fn(u64) -> Result<(), String> + Send + 'static,
    ) -> Result<Self> {
        let (Timed::Loop { code: TimedLoop::Long(code), .. } | Timed::Together { code, .. }) = timed else {
            return Err(fail!("only a 64-bit loop can be called in a 64-bit process"));
        };
        let context = Box::new(LoopContext { words, result: 0 });
        let overhead = code.empty();
        Ok(Self {
            code,
            context,
            overhead,
            check: Box::new(check),
            hooks: None,
            settling: None,
            _owned: owned,
        })
    }

    /// Makes a loop that uses no word of its context. `check` is that of [`Loop::new`].
    ///
    /// # Errors
    /// [`Refusal::Fail`] for a loop that is not 64-bit code, or uses its context.
    pub fn without_context(
        timed: Timed,
        check: impl Fn(u64) -> Result<(), String> + Send + 'static,
    ) -> Result<Self> {
        // SAFETY: a loop without a context is sound to run (`timed_loop!`); another one is dropped before it runs.
        let timed = unsafe { Self::new(timed, [0; 7], None, check) }?;
        if timed.code.uses_context() {
            return Err(fail!("the loop needs a context"));
        }
        Ok(timed)
    }

    /// Subtracts the time of this loop instead of the empty one's: the calls around a system call, for example.
    ///
    /// # Errors
    /// [`Refusal::Fail`] for a loop that uses its context.
    pub fn less(mut self, overhead: LongLoop) -> Result<Self> {
        if overhead.uses_context() {
            return Err(fail!("a loop that is subtracted has no context"));
        }
        self.overhead = overhead;
        Ok(self)
    }

    /// Adds hooks around each batch.
    pub fn with_hooks(mut self, hooks: impl BatchHooks + 'static) -> Self {
        self.hooks = Some(Box::new(hooks));
        self
    }

    /// Begins each batch in the steady state of the loop.
    pub fn settled(mut self, settling: Settling) -> Self {
        self.settling = Some(settling);
        self
    }

    /// Returns the result of one operation, untimed and unchecked.
    pub fn try_once(&mut self) -> u64 {
        // SAFETY: `Loop::new`'s contract.
        unsafe { self.code.run(1, &mut *self.context) };
        self.context.result
    }

    /// Makes an instance in the bench process's main thread.
    pub fn here(self) -> Instance {
        Instance::new(self)
    }

    /// Makes an instance in a thread of its own, which `prepare` changes first: a per-thread filter or flag affects no other
    /// instance. The thread has its own descriptor table: sharing one would slow file look-ups in other threads.
    pub fn in_thread(self, prepare: impl FnOnce() -> Result<()> + Send + 'static) -> Result<Instance> {
        let (orders, inbox) = mpsc::channel::<(Clock, Order)>();
        let (outbox, batches) = mpsc::channel();
        let (ready, prepared) = mpsc::channel();
        let mut runner = self;
        let body = move || {
            // A copy, since the batch's events are read through the process's descriptor. If it fails, the loop's figure is valid.
            let _ = tollgate_os::descriptors::copied_table();
            let outcome = prepare();
            let usable = outcome.is_ok();
            if ready.send(outcome).is_err() || !usable {
                return;
            }
            for (clock, order) in inbox {
                if outbox.send(runner.batch(clock, order)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().spawn(body).or_refused("no thread can be started")?;
        prepared.recv().unwrap_or_else(|_| Err(fail!("the instance's thread ended early")))?;
        Ok(Instance::new(InThread { orders, batches }))
    }

    fn before(&mut self, iterations: u64) -> Result<()> {
        let context = &mut self.context;
        self.hooks.as_mut().map_or(Ok(()), |hooks| hooks.before(context, iterations))
    }

    fn after(&mut self) -> Result<Option<u64>> {
        let context = &self.context;
        self.hooks.as_mut().map_or(Ok(None), |hooks| hooks.after(context))
    }

    /// After a thread switch the first operations find cold caches and predictors.
    fn warm_up(&mut self, clock: Clock, order: Order) -> Result<()> {
        let iterations = (order.iterations / 16).max(1);
        if let Some(settling) = &self.settling {
            if let Some(hooks) = &mut self.hooks {
                hooks.unsettled(&mut self.context)?;
            }
            let (code, context): (LongLoop, *mut LoopContext) = (self.code, &mut *self.context);
            // SAFETY: `Loop::new`'s contract; the context lives as long as the loop.
            settling.settle(clock, |iterations| unsafe { code.run(iterations, context) });
            return Ok(());
        }
        self.before(iterations)?;
        // SAFETY: `Loop::new`'s contract.
        unsafe { self.code.run(iterations, &mut *self.context) };
        self.after().map(drop)
    }

    fn time(&mut self, clock: Clock, empty_iterations: u64, iterations: u64) -> Batch {
        let blocking = self.hooks.as_ref().is_some_and(|hooks| hooks.blocks());
        // The empty loop has its own context, so that the loop's result stays for the check.
        let mut nothing = LoopContext::default();
        let context: *mut LoopContext = &mut *self.context;
        let code = self.code;
        let overhead = self.overhead;
        // SAFETY: it uses no context, and such a loop is sound to run any number of times (`timed_loop!`).
        let mut empty = || clock.time(|| unsafe { overhead.run(empty_iterations, &mut nothing) });

        let mut counting = Counting::begin(if blocking { Of::Process } else { Of::Thread });
        let emptied = counting.empty(&mut empty);
        let cpu_share = blocking.then(cpu::CpuShare::begin);
        // SAFETY: `Loop::new`'s contract; the context lives as long as the loop.
        let worked = counting.work(|| clock.time(|| unsafe { code.run(iterations, context) }));
        let attended = cpu_share.map(cpu::CpuShare::was_full);
        let emptied_again = empty();
        let tally = counting.end();
        let unswitched = attended.unwrap_or_else(|| tally.switches() == 0);
        Batch { tally, ..Batch::between([emptied, worked, emptied_again], unswitched) }
    }
}

impl Runner for Loop {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        self.warm_up(clock, order)?;

        let iterations = order.all();
        self.before(iterations)?;
        let batch = self.time(clock, order.iterations, iterations);
        let counted = self.after()?;
        (self.check)(self.context.result).map_err(Refusal::Fail)?;
        Ok(Batch { counted, ..batch })
    }
}

struct InThread {
    orders: mpsc::Sender<(Clock, Order)>,
    batches: mpsc::Receiver<Result<Batch>>,
}

impl Runner for InThread {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        let gone = || fail!("the instance's thread ended");
        self.orders.send((clock, order)).map_err(|_| gone())?;
        self.batches.recv().map_err(|_| gone())?
    }
}
