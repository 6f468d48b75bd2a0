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
    /// The same, with the untimed parts of a batch that are in proportion to its iterations.
    pub whole: Duration,
    /// Time of the untimed parts that are not: a loop becomes steady, say.
    #[serde(default)]
    pub fixed: Duration,
    /// Time of its preparation.
    pub setup: Duration,
    /// Operations in one iteration.
    pub ops: u64,
    /// Greatest number of iterations in a batch.
    pub most: u64,
    /// Iterations of a sample of instructions; 0 where its batches are timed.
    #[serde(default)]
    pub counted: u64,
    /// The address of its loop's first instruction, in a process that is watched or in the kernel.
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
    /// Its runner counts the events of its batches.
    counts_events: bool,
}

/// The address of a loop's first instruction, in this process or in the 32-bit program; None of whole operations.
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
    /// An instance whose batches `runner` runs.
    pub fn new(runner: impl Runner + 'static) -> Self {
        let ready = Readiness { ops: 1, most: u64::MAX, ..Readiness::default() };
        Self { runner: Box::new(runner), ready, spent_once: Duration::ZERO, counts_events: false }
    }

    /// An instance in a 32-bit process of its own, and how the 32-bit vDSO enters the kernel there.
    ///
    /// # Errors
    /// [`Refusal::Skip`] where the kernel does not run 32-bit programs, [`Refusal::Fail`] for a loop in
    /// 64-bit code.
    pub fn in_compat(timed: Timed, check: fn(u32) -> Result<(), String>) -> Result<(Self, compat::Entry)> {
        let Timed::Loop { code: TimedLoop::Compat(code), .. } = timed else {
            return Err(fail!("only a 32-bit loop can run in a 32-bit process"));
        };
        let program = compat::Program::start(code(), check)?;
        let entry = program.entry();
        Ok((Self::new(program), entry))
    }

    /// One iteration makes so many operations.
    pub fn with_ops(mut self, ops: u64) -> Self {
        self.ready.ops = ops.max(1);
        self
    }

    /// A batch has at most so many iterations.
    pub fn with_most(mut self, iterations: u64) -> Self {
        self.ready.most = iterations.max(1);
        self
    }

    /// Its loop begins at this address, which is the kernel's.
    pub fn looping_at(mut self, address: u64) -> Self {
        self.ready.entry = Some(address);
        self
    }

    /// Instances with the same `fixture` share it: where time is short, a process runs all of them or none.
    pub fn on_fixture(mut self, fixture: impl Into<String>) -> Self {
        self.ready.fixture = Some(fixture.into());
        self
    }

    /// So much of the preparation made what later processes of the run find there, such as a file.
    pub fn spent_once(mut self, time: Duration) -> Self {
        self.spent_once = time;
        self
    }

    /// Adds notes for the row.
    pub fn with_notes<N: Into<String>>(mut self, notes: impl IntoIterator<Item = N>) -> Self {
        self.ready.notes.extend(notes.into_iter().map(Into::into));
        self
    }

    /// One batch, as a round runs it.
    pub fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        self.runner.batch(clock, order)
    }

    /// One batch with its events: those that its runner counted, or those of the whole call.
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

    /// Operations in one iteration, and the greatest number of iterations in a batch.
    pub fn limits(&self) -> (u64, u64) {
        (self.ready.ops, self.ready.most)
    }
}

/// A 64-bit loop with its context, for any thread.
pub struct Loop {
    code: LongLoop,
    context: Box<LoopContext>,
    /// The loop whose time is the overhead.
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
    /// `timed` with `words` in its context. `check` sees the result of every batch, so that an operation that failed
    /// is not measured as one that worked.
    ///
    /// # Errors
    /// [`Refusal::Fail`] for a loop that is not 64-bit code.
    ///
    /// # Safety
    /// The loop must be sound to run any number of times with these words: what they point to must
    /// live in `owned`, or for as long as the process.
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

    /// `timed`, which uses no word of its context. `check` as in [`Loop::new`].
    ///
    /// # Errors
    /// [`Refusal::Fail`] for a loop that is not 64-bit code, or uses its context.
    pub fn without_context(
        timed: Timed,
        check: impl Fn(u64) -> Result<(), String> + Send + 'static,
    ) -> Result<Self> {
        // SAFETY: a loop that uses no context is sound to run any number of times (`timed_loop!`), and another one
        // is dropped before it runs.
        let timed = unsafe { Self::new(timed, [0; 7], None, check) }?;
        if timed.code.uses_context() {
            return Err(fail!("the loop needs a context"));
        }
        Ok(timed)
    }

    /// Less the time of this loop in the place of the empty one's: the calls around a system call, say.
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

    /// With hooks around each batch.
    pub fn with_hooks(mut self, hooks: impl BatchHooks + 'static) -> Self {
        self.hooks = Some(Box::new(hooks));
        self
    }

    /// Each batch begins in the steady state of the loop.
    pub fn settled(mut self, settling: Settling) -> Self {
        self.settling = Some(settling);
        self
    }

    /// The result of one operation, untimed and unchecked.
    pub fn try_once(&mut self) -> u64 {
        // SAFETY: `Loop::new`'s contract.
        unsafe { self.code.run(1, &mut *self.context) };
        self.context.result
    }

    /// An instance in the bench process's main thread.
    pub fn here(self) -> Instance {
        Instance::new(self)
    }

    /// An instance in a thread of its own, which `prepare` changes first: a per-thread filter or flag affects no
    /// other instance. The thread has a table of descriptors of its own: calls of the others would find their files more slowly beside it.
    pub fn in_thread(self, prepare: impl FnOnce() -> Result<()> + Send + 'static) -> Result<Instance> {
        let (orders, inbox) = mpsc::channel::<(Clock, Order)>();
        let (outbox, batches) = mpsc::channel();
        let (ready, prepared) = mpsc::channel();
        let mut runner = self;
        let body = move || {
            // A copy, since the events of a batch are read by the process's descriptor. Where it is refused the loop's own figure is the same.
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

    /// The loop between two empty ones.
    fn time(&mut self, clock: Clock, empty_iterations: u64, iterations: u64) -> Batch {
        let blocking = self.hooks.as_ref().is_some_and(|hooks| hooks.blocks());
        // The empty loop has a context of its own, so the loop's result stays for the check.
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
