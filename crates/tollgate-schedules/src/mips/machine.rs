//! The machine: processes that run `tst()`, preempted between any two instructions.
//!
//! Between two instructions a processor executes the next one, or is interrupted and continues with the same or any waiting
//! process. After an interrupt in a delay slot, the process continues at the branch. Memory is sequentially consistent.
//!
//! A load or store can also miss in the TLB. If the return from the refill sets k1 as every other return does, a refill has
//! the effect of an interrupt just before the instruction, and is not a step of its own. If it does not set k1, it is a
//! step. Another process may run while the page is brought in; then the instruction is executed with the old k1. While
//! interrupts are disabled, the page is assumed to be present.

use crate::search::{self, Harm};

use super::kernel::{Answer, Kernel};
use super::processor::{Exception, execute};
use super::program::Program;
use super::state::{CALLER_NEXT, NOWHERE, Phase, Process, State};
use super::{memory::Word, register::Register};

#[derive(Clone, Copy)]
pub(super) struct Machine<'a, const N: usize> {
    pub(super) program: &'a Program,
    pub(super) kernel: Kernel,
    pub(super) checks: &'a [Harm],
    /// Number of words in the lock, each taken by a `tst()` of its own.
    pub(super) locks: u8,
    pub(super) rounds: u8,
    pub(super) processors: u8,
    /// Whether the kernel preempts a process in `tst()`. If not, an interrupt returns to it.
    pub(super) preempted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) processor: u8,
    pub(super) process: u8,
    pub(super) kind: MoveKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MoveKind {
    Execute,
    /// The timer interrupts it, and the kernel continues with this process.
    Interrupt(u8),
    /// Its load or store misses in the TLB, and the kernel continues with this process while it waits for the page.
    Refill(u8),
    /// It executes an instruction that enters the kernel, which continues with this process. With preemption this is not a
    /// separate step.
    Yield(u8),
    Dispatch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Called,
    Ran,
    Returned(u32),
    Excepted(Exception, Answer),
    WasCritical,
    Released(u8),
}

impl<const N: usize> Machine<'_, N> {
    pub(super) fn step(&self, state: &mut State<N>, who: usize) -> Event {
        let process = &mut state.processes[who];
        match process.phase {
            Phase::Outside => {
                process.enter(self.kernel.k1());
                Event::Called
            }
            Phase::Inside | Phase::Slot => self.instruction(state, who),
            Phase::Critical => {
                process.phase = Phase::Releasing;
                Event::WasCritical
            }
            // A finished process has no processor and takes no step.
            Phase::Releasing | Phase::Done | Phase::Killed => release(state, who),
        }
    }

    fn instruction(&self, state: &mut State<N>, who: usize) -> Event {
        if let Err(exception) = execute(self.program, state, who) {
            return Event::Excepted(exception, self.kernel.serve(state, who, exception));
        }
        let process = &mut state.processes[who];
        if process.pc != CALLER_NEXT {
            return Event::Ran;
        }
        let result = process.get(Register::V0);
        if result == 0 {
            process.held += 1;
        }
        let all = result == 0 && process.held >= self.locks;
        process.leave(if all { Phase::Critical } else { Phase::Outside });
        Event::Returned(result)
    }

    pub(super) fn running(state: &State<N>, processor: u8) -> Option<usize> {
        (0..N).find(|&who| state.processes[who].processor == processor)
    }

    pub(super) fn after(&self, state: &State<N>, step: Move) -> State<N> {
        let mut after = *state;
        let who = usize::from(step.process);
        match step.kind {
            MoveKind::Execute => {
                self.step(&mut after, who);
            }
            MoveKind::Interrupt(to) | MoveKind::Refill(to) | MoveKind::Yield(to) => {
                if matches!(step.kind, MoveKind::Yield(_)) {
                    self.step(&mut after, who);
                }
                self.kernel.suspend(&mut after.processes[who], matches!(step.kind, MoveKind::Refill(_)));
                after.processes[who].processor = NOWHERE;
                after.processes[usize::from(to)].processor = step.processor;
            }
            MoveKind::Dispatch => after.processes[who].processor = step.processor,
        }
        after
    }

    fn moves_on(&self, state: &State<N>, processor: u8, mut each: impl FnMut(Move)) {
        let waiting = || (0..N as u8).filter(|&who| state.processes[usize::from(who)].waits());
        let Some(who) = Self::running(state, processor) else {
            waiting().for_each(|process| each(Move { processor, process, kind: MoveKind::Dispatch }));
            return;
        };
        let running = &state.processes[who];
        let process = who as u8;
        each(Move { processor, process, kind: MoveKind::Execute });
        if !running.interrupts {
            return;
        }
        // An interrupt that continues with the same process changes something only in `tst()`.
        let same = running.inside().then_some(process);
        let keeps = !self.preempted && running.inside();
        if keeps && self.enters_the_kernel(state, who) {
            waiting().for_each(|to| each(Move { processor, process, kind: MoveKind::Yield(to) }));
        }
        let refills = !self.kernel.refill_sets_k1 && self.reaches_memory(running);
        for to in same.into_iter().chain(waiting().filter(|_| !keeps)) {
            each(Move { processor, process, kind: MoveKind::Interrupt(to) });
            if refills {
                each(Move { processor, process, kind: MoveKind::Refill(to) });
            }
        }
    }

    /// Returns whether its next instruction enters the kernel without killing it.
    fn enters_the_kernel(&self, state: &State<N>, who: usize) -> bool {
        let mut after = *state;
        matches!(self.step(&mut after, who), Event::Excepted(..)) && after.processes[who].alive()
    }

    fn reaches_memory(&self, process: &Process) -> bool {
        let instruction = self.program.instruction(usize::from(process.pc));
        process.inside() && instruction.is_some_and(|instruction| instruction.reaches_memory())
    }

    fn lost(&self, state: &State<N>) -> bool {
        let words = 0..usize::from(self.locks);
        !state.processes.iter().any(Process::inside) && words.into_iter().any(|word| state.is_lost(word))
    }
}

fn release<const N: usize>(state: &mut State<N>, who: usize) -> Event {
    let word = state.processes[who].held.saturating_sub(1);
    state.store(who, Word::Lock(word), 0);
    let process = &mut state.processes[who];
    process.held = word;
    if word == 0 {
        process.left = process.left.saturating_sub(1);
        process.leave(if process.left == 0 { Phase::Done } else { Phase::Outside });
    }
    Event::Released(word)
}

impl<const N: usize> search::Machine for Machine<'_, N> {
    type State = State<N>;
    type Move = Move;

    fn start(&self) -> State<N> {
        let place = |who: usize| if who < usize::from(self.processors) { who as u8 } else { NOWHERE };
        State {
            processes: std::array::from_fn(|who| Process::new(self.rounds, place(who))),
            locks: Default::default(),
        }
    }

    fn moves(&self, state: &State<N>, mut each: impl FnMut(Move, State<N>)) {
        for processor in 0..self.processors {
            self.moves_on(state, processor, |step| each(step, self.after(state, step)));
        }
    }

    /// Returns the worst harm in a state, among those checked. If a process was killed, the lock that it held is not a
    /// separate harm.
    fn harm(&self, state: &State<N>) -> Option<Harm> {
        let words = 0..usize::from(self.locks);
        let killed = || state.processes.iter().any(|process| process.phase == Phase::Killed);
        if self.checks.contains(&Harm::Exclusion) && words.clone().any(|word| state.holders(word).count() > 1)
        {
            Some(Harm::Exclusion)
        } else if self.checks.contains(&Harm::Crash) && killed() {
            Some(Harm::Crash)
        } else if self.checks.contains(&Harm::LostLock) && !killed() && self.lost(state) {
            Some(Harm::LostLock)
        } else {
            None
        }
    }

    /// Killed processes count as finished, since that is another harm. If the check does not ask whether all finish, every
    /// state counts as finished.
    fn finished(&self, state: &State<N>) -> bool {
        !self.checks.contains(&Harm::Stuck) || !state.processes.iter().any(Process::alive)
    }
}
