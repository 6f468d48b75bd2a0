//! The published experiment as published: a kernel module emulates an invalid instruction, in a program or in ring 0.

use tollgate_model::traced::Ended;
use tollgate_os::process;

use super::emulator::{self, Emulator, MOST_ITERATIONS, RingZero};
use super::imul::TEN;
use super::opcode::{Alone, Opcode, check_pairs, twenty_seven};
use crate::prelude::*;

/// Makes the instance of `by=module-ring3`: the program's own loop, while the module watches this process.
pub(super) fn in_ring_3(timed: Timed, opcode: &Opcode) -> Result<Instance> {
    let emulator = Emulator::open()?;
    let alone = opcode.alone;
    check_pairs(opcode, |base, exponent| emulated(&emulator, alone, base, exponent))?;
    unknown_opcode_kills(&emulator)?;
    // SAFETY: the loop needs no context; its instructions trap, as the trial showed, and the watching module steps over them.
    let timed_loop = unsafe { Loop::new(timed, [0; 7], None, twenty_seven) }?;
    Ok(timed_loop.with_hooks(Watched(emulator)).here().with_ops(TEN).with_most(MOST_ITERATIONS))
}

/// Makes the instance of `by=module-ring0`: the module's own loop.
pub(super) fn in_ring_0(opcode: &Opcode) -> Result<Instance> {
    let emulator = Emulator::open()?;
    let number = opcode.number;
    let of_order = |error: std::io::Error| Refusal::new("the module", &error);
    check_pairs(opcode, |base, exponent| {
        let (result, emulated) = emulator.one(number, base, exponent).map_err(of_order)?;
        Ok((result.into(), emulated))
    })?;
    unknown_opcode_kills(&emulator)?;
    let runner = InRingZero { emulator, opcode: number };
    let entry = runner.run(1, 1)?.entry;
    Ok(Instance::new(runner).looping_at(entry).with_ops(TEN).with_most(MOST_ITERATIONS))
}

/// Returns the result of one instruction in this process, and how often the module emulated it.
fn emulated(emulator: &Emulator, alone: Alone, base: u32, exponent: u32) -> Result<(u64, u64)> {
    emulator.watch().or_refused("the module")?;
    // SAFETY: the instruction changes at most the two registers; if it traps, the module steps over it.
    let result = unsafe { alone(base.into(), exponent.into()) };
    Ok((result, emulator.unwatch().or_refused("the module")?))
}

/// Checks that the module leaves other opcodes to the kernel: a watched child executes one, and dies of it.
fn unknown_opcode_kills(emulator: &Emulator) -> Result<()> {
    let device = emulator.descriptor();
    let child = process::fork(|| {
        let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the limit is valid for reading. Neither call allocates.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &no_core) };
        if emulator::watch(device).is_err() {
            return 1;
        }
        tollgate_arch::code! {
            /// `ud1 eax, ecx`: the registers are exchanged.
            fn exchanged() { ".byte 0x0f, 0xb9, 0xc1", "ret" }
        }
        // SAFETY: ends this process, which the check expects.
        unsafe { exchanged() };
        2
    });
    let ended = child.and_then(|mut child| child.wait()).or_refused("fork(2)")?;
    // The child shared this process's device, so its death did not close it.
    let emulated = emulator.unwatch().or_refused("the module")?;
    match (ended, emulated) {
        (Ended::Signal(libc::SIGILL), 0) => Ok(()),
        (Ended::Exit(1), _) => Err(fail!("the module does not watch a child")),
        (ended, emulated) => {
            Err(fail!("an unknown opcode did not kill its process: {ended:?}, {emulated} emulated"))
        }
    }
}

/// The module watches this process during each batch.
struct Watched(Emulator);

impl BatchHooks for Watched {
    fn before(&mut self, _: &mut LoopContext, _: u64) -> Result<()> {
        self.0.watch().or_refused("the module")
    }

    fn after(&mut self, _: &LoopContext) -> Result<Option<u64>> {
        self.0.unwatch().map(Some).or_refused("the module")
    }
}

struct InRingZero {
    emulator: Emulator,
    opcode: u32,
}

impl Runner for InRingZero {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        if clock == Clock::Kernel {
            return Err(skip!("the module reads the time stamp counter, which is not the clock here"));
        }
        let warm_up = (order.iterations / 16).max(1);
        self.run(warm_up, warm_up)?;
        let done = self.run(order.all(), order.iterations)?;
        twenty_seven(done.result.into()).map_err(Refusal::Fail)?;
        // The module's task is neither switched out nor moved, because preemption is off.
        let batch = Batch::new(done.work, done.empty_before.min(done.empty_after), true);
        Ok(Batch { counted: Some(done.emulated), ..batch })
    }
}

impl InRingZero {
    fn run(&self, iterations: u64, empty_iterations: u64) -> Result<RingZero> {
        let batch = RingZero { opcode: self.opcode, iterations, empty_iterations, ..RingZero::default() };
        self.emulator.batch(batch).or_refused("the module")
    }
}
