//! Arms: a case made ready to run blocks, in the thread or process that it needs.

use std::any::Any;
use std::sync::mpsc;
use std::thread;

use super::clock::Clock;
use super::compat;
use super::cpu;
use super::station::{Block, Order, Refusal, Station};
use super::timed::{Context, EMPTY_LONG, LongLoop, TimedLoop};

/// A case, ready.
pub struct Arm {
    pub(super) station: Box<dyn Station>,
    /// Operations in one iteration of the loop.
    pub(super) ops_per_iteration: u64,
    /// What was found while it was made ready.
    pub(super) notes: Vec<String>,
}

impl Arm {
    /// An arm whose blocks run at `station`.
    pub fn new(station: impl Station + 'static) -> Self {
        Self { station: Box::new(station), ops_per_iteration: 1, notes: Vec::new() }
    }

    /// An arm in a 32-bit process of its own, and how the 32-bit vDSO enters the kernel there.
    ///
    /// # Errors
    /// [`Refusal::Skip`] where the kernel does not run 32-bit programs, [`Refusal::Fail`] for a loop in
    /// 64-bit code.
    pub fn in_compat(
        timed: TimedLoop,
        check: fn(u32) -> Result<(), String>,
    ) -> Result<(Self, compat::Entry), Refusal> {
        let TimedLoop::Compat(code) = timed else {
            return Err(Refusal::Fail("a 64-bit loop cannot run in a 32-bit process".to_owned()));
        };
        let program = compat::Program::start(code(), check)?;
        let entry = program.entry();
        Ok((Self::new(program), entry))
    }

    /// One iteration makes so many operations.
    pub fn with_ops(mut self, ops: u64) -> Self {
        self.ops_per_iteration = ops.max(1);
        self
    }

    /// What was found on the way and belongs beside the price.
    pub fn with_notes<N: Into<String>>(mut self, notes: impl IntoIterator<Item = N>) -> Self {
        self.notes.extend(notes.into_iter().map(Into::into));
        self
    }
}

/// A 64-bit loop with its context: runs in whatever thread it is given to.
pub struct Loop {
    code: LongLoop,
    context: Box<Context>,
    check: Check,
    /// What the context points into.
    _owned: Option<Box<dyn Any + Send>>,
}

/// Looks at what the last crossing of a block returned.
pub type Check = Box<dyn Fn(u64) -> Result<(), String> + Send>;

impl Loop {
    /// `timed` with `words` in its context. `check` sees the result of every block, so that an answer
    /// that nobody gave is not taken for a price.
    ///
    /// # Errors
    /// [`Refusal::Fail`] for a loop in 32-bit code, which cannot be called here.
    ///
    /// # Safety
    /// The loop must be sound to run any number of times with these words: what they point to must
    /// live in `owned`, or for as long as the process.
    pub unsafe fn new(
        timed: TimedLoop,
        words: [u64; 7],
        owned: Option<Box<dyn Any + Send>>,
        check: impl Fn(u64) -> Result<(), String> + Send + 'static,
    ) -> Result<Self, Refusal> {
        let TimedLoop::Long(code) = timed else {
            return Err(Refusal::Fail("a 32-bit loop cannot run in a 64-bit process".to_owned()));
        };
        let context = Box::new(Context { words, result: 0 });
        Ok(Self { code, context, check: Box::new(check), _owned: owned })
    }

    /// What one crossing returns, untimed and unchecked.
    pub fn try_once(&mut self) -> u64 {
        // SAFETY: `Loop::new`'s contract.
        unsafe { (self.code)(1, &mut *self.context) };
        self.context.result
    }

    /// An arm in the bench's main thread.
    pub fn here(self) -> Arm {
        Arm::new(self)
    }

    /// An arm in a thread of its own, which `prepare` changes first: a filter or a flag that the kernel
    /// keeps per thread touches no other arm.
    ///
    /// # Errors
    /// What `prepare` says, or that no thread could be started.
    pub fn in_thread(
        self,
        prepare: impl FnOnce() -> Result<(), Refusal> + Send + 'static,
    ) -> Result<Arm, Refusal> {
        let (orders, inbox) = mpsc::channel::<(Clock, Order)>();
        let (outbox, blocks) = mpsc::channel();
        let (ready, prepared) = mpsc::channel();
        let mut station = self;
        let body = move || {
            let outcome = prepare();
            let usable = outcome.is_ok();
            if ready.send(outcome).is_err() || !usable {
                return;
            }
            for (clock, order) in inbox {
                if outbox.send(station.block(clock, order)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new()
            .spawn(body)
            .map_err(|error| Refusal::of("no thread can be started", &error))?;
        prepared.recv().unwrap_or_else(|_| Err(Refusal::Fail("the arm's thread ended early".to_owned())))?;
        Ok(Arm::new(InThread { orders, blocks }))
    }
}

impl Station for Loop {
    fn block(&mut self, clock: Clock, order: Order) -> Result<Block, Refusal> {
        let context: *mut Context = &mut *self.context;
        let code = self.code;
        // SAFETY: `Loop::new`'s contract; the empty loop only writes the context's result.
        let work = |iterations: u64| clock.time(|| unsafe { code(iterations, context) });
        // SAFETY: as above.
        let empty = || clock.time(|| unsafe { EMPTY_LONG(order.iterations, context) });

        // After a switch of threads the first crossings find cold caches and predictors.
        let warm_up = (order.iterations / 16).max(1);
        // SAFETY: `Loop::new`'s contract.
        unsafe { code(warm_up, context) };
        let before = cpu::switches();
        let emptied = empty();
        let worked = work(order.iterations + order.extra);
        // SAFETY: the context lives as long as the loop; nobody else reads or writes it now.
        let result = unsafe { (*context).result };
        let emptied_again = empty();
        let after = cpu::switches();
        (self.check)(result).map_err(Refusal::Fail)?;
        Ok(Block {
            work: worked.ticks,
            empty: emptied.ticks.min(emptied_again.ticks),
            undisturbed: before == after
                && [emptied, worked, emptied_again].iter().all(|span| span.same_processor),
        })
    }
}

/// The handle of a loop that runs in another thread of this process.
struct InThread {
    orders: mpsc::Sender<(Clock, Order)>,
    blocks: mpsc::Receiver<Result<Block, Refusal>>,
}

impl Station for InThread {
    fn block(&mut self, clock: Clock, order: Order) -> Result<Block, Refusal> {
        let gone = || Refusal::Fail("the arm's thread ended".to_owned());
        self.orders.send((clock, order)).map_err(|_| gone())?;
        self.blocks.recv().map_err(|_| gone())?
    }
}
