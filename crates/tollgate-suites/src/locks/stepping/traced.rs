//! A traced process that acquires and releases a lock on request, and can be stopped at any instruction.
//!
//! Source: ptrace(2). A breakpoint is INT3 (Intel SDM volume 2, INT3), written into this process's own copy of the
//! code: another process with the same code at the same address does not stop. PTRACE_SINGLESTEP cannot step through a
//! restartable sequence, since every step is an interruption, and each interruption sends the thread to its abort
//! handler. A breakpoint interrupts it once.

use std::io;

use crate::locks::lock::{Handle, Lock};
use crate::prelude::*;
use tollgate_arch::registers::Registers;
use tollgate_model::{text::plainly, traced::Ended};
use tollgate_os::process::{self, Child, Status};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Order {
    /// Runs `take`; answers the word's old value.
    Take = 1,
    /// Releases the lock; answers 0.
    Release = 2,
    /// Answers the number of restarts of its sequences.
    Aborts = 3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// It has carried out its order, with this answer.
    Rest(u64),
    /// It is at the requested instruction.
    Point,
    /// It is at a call of sched_yield(2) and waits for the other process.
    Waits,
}

/// The process. It runs only during [`TracedProcess::run_to`] and [`TracedProcess::step`], and is killed on drop.
pub(super) struct TracedProcess {
    child: Child,
    /// True if it has stopped at the entry of a system call, so that the next stop is at its exit.
    in_call: bool,
}

const BREAKPOINT: u8 = 0xcc;
/// Seconds after which an alarm kills the process. A test needs less than two.
const LIMIT: u32 = 120;
const NOT_TRACED: i32 = 3;
const NOT_JOINED: i32 = 4;

impl TracedProcess {
    /// Forks member `number` of a lock on the calling thread's processor, and stops it.
    pub fn new(lock: &Lock, number: usize) -> Result<Self> {
        // The child uses only inherited data, its one thread and the allocator, which is safe across fork.
        let child = process::fork_bound(|| serve(lock, number));
        let child = child.or_refused("fork(2) is refused")?;
        let mut process = Self { child, in_call: false };
        match process.wait()? {
            libc::SIGTRAP => {
                let options = libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACESYSGOOD;
                process.request(libc::PTRACE_SETOPTIONS, 0, options as usize)?;
                Ok(process)
            }
            signal => Err(fail!("it stopped by signal {signal} before it began")),
        }
    }

    /// Gives an order to a process at rest. It begins when it is run.
    pub fn tell(&mut self, order: Order) -> Result<()> {
        let mut registers = self.registers()?;
        registers.set_result(order as i64);
        self.set(&registers)
    }

    /// Runs the process until it rests, waits or reaches the instruction at `point`.
    pub fn run_to(&mut self, point: Option<usize>) -> Result<Stop> {
        let replaced = point.map(|point| self.replace(point, BREAKPOINT)).transpose()?;
        let stop = self.run(point);
        if let (Some(point), Some(replaced)) = (point, replaced) {
            self.replace(point, replaced)?;
        }
        stop
    }

    fn run(&mut self, point: Option<usize>) -> Result<Stop> {
        const CALL: libc::c_int = libc::SIGTRAP | 0x80;
        let mut signal = 0;
        loop {
            self.request(libc::PTRACE_SYSCALL, 0, signal as usize)?;
            signal = 0;
            match self.wait()? {
                CALL => {
                    self.in_call = !self.in_call;
                    if self.in_call && self.registers()?.call() == libc::SYS_sched_yield {
                        return Ok(Stop::Waits);
                    }
                }
                libc::SIGTRAP => {
                    let mut registers = self.registers()?;
                    let at = registers.instruction() as usize - 1;
                    if Some(at) == point {
                        // The replaced instruction has not run yet.
                        registers.go_to(at as u64);
                        self.set(&registers)?;
                        return Ok(Stop::Point);
                    }
                    if at == rest as *const () as usize {
                        return Ok(Stop::Rest(registers.arguments()[0]));
                    }
                    return Err(fail!("it was trapped at {at:#x}, where no breakpoint is"));
                }
                libc::SIGALRM => {
                    return Err(fail!("it did not stop within {LIMIT} s"));
                }
                other => signal = other,
            }
        }
    }

    /// Runs one instruction. Returns the address of the next one.
    pub fn step(&mut self) -> Result<usize> {
        self.request(libc::PTRACE_SINGLESTEP, 0, 0)?;
        match self.wait()? {
            libc::SIGTRAP => Ok(self.registers()?.instruction() as usize),
            signal => Err(fail!("a step ended by signal {signal}")),
        }
    }

    /// Pins the process to a processor, where it continues.
    pub fn bind(&mut self, cpu: usize) -> Result<()> {
        tollgate_os::affinity::pin(self.child.pid(), &[cpu]).or_refused("sched_setaffinity(2) is refused")
    }

    pub fn write(&mut self, address: usize, value: u64) -> Result<()> {
        self.request(libc::PTRACE_POKEDATA, address, value as usize)
    }

    /// Writes a byte into the code. Returns the old one.
    fn replace(&mut self, address: usize, byte: u8) -> Result<u8> {
        let mut word = 0u64;
        // Unlike the C library's function, the system call writes the word to the address in the last argument.
        self.request(libc::PTRACE_PEEKTEXT, address, &raw mut word as usize)?;
        let [before, rest @ ..] = word.to_le_bytes();
        let [a, b, c, d, e, f, g] = rest;
        let word = u64::from_le_bytes([byte, a, b, c, d, e, f, g]);
        self.request(libc::PTRACE_POKETEXT, address, word as usize)?;
        Ok(before)
    }

    fn registers(&self) -> Result<Registers> {
        Registers::of(self.child.pid()).map_err(|error| fail!("PTRACE_GETREGS: {}", plainly(&error)))
    }

    fn set(&mut self, registers: &Registers) -> Result<()> {
        registers.set(self.child.pid()).map_err(|error| fail!("PTRACE_SETREGS: {}", plainly(&error)))
    }

    fn request(&self, request: libc::c_uint, address: usize, data: usize) -> Result<()> {
        // SAFETY: `data` is a number, or points to memory of the caller that the request reads or writes.
        let outcome = unsafe { libc::syscall(libc::SYS_ptrace, request, self.child.pid(), address, data) };
        // A traced process allows every request, so this error does not come from the environment.
        checked(outcome).map(drop).map_err(|error| fail!("ptrace({request:#x}): {}", plainly(&error)))
    }

    /// Waits for the next stop. Returns the signal.
    fn wait(&mut self) -> Result<libc::c_int> {
        loop {
            let status = match self.child.next(0) {
                Ok(Some(wait)) => wait.status,
                Ok(None) => continue,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(fail!("waitpid(2): {}", plainly(&error))),
            };
            return match status {
                Status::Stopped { signal, .. } => Ok(signal),
                Status::Ended(Ended::Exit(NOT_TRACED)) => Err(skip!("ptrace(2) is refused")),
                Status::Ended(Ended::Exit(NOT_JOINED)) => Err(skip!("the lock cannot be joined")),
                Status::Ended(Ended::Signal(libc::SIGSYS)) => {
                    Err(skip!("a seccomp filter forbids ptrace(2)"))
                }
                Status::Ended(ended) => Err(fail!("it ended early: {ended:?}")),
            };
        }
    }
}

/// The process's side. Returns an exit status only if it cannot begin.
fn serve(lock: &Lock, number: usize) -> i32 {
    // SAFETY: alarm(2) takes a number, and PTRACE_TRACEME nothing.
    let traced = unsafe {
        libc::alarm(LIMIT);
        libc::syscall(libc::SYS_ptrace, libc::PTRACE_TRACEME, 0, 0, 0)
    };
    if traced != 0 {
        return NOT_TRACED;
    }
    match lock.join(number) {
        Ok(handle) => obey(handle),
        Err(_) => NOT_JOINED,
    }
}

fn obey(mut handle: Handle) -> i32 {
    let mut answer = 0;
    loop {
        // SAFETY: the process is traced, and its tracer handles the trap and sets the result.
        let order = unsafe { rest(answer) };
        answer = if order == Order::Take as u64 {
            handle.test_and_set().into()
        } else if order == Order::Release as u64 {
            handle.release();
            0
        } else if order == Order::Aborts as u64 {
            handle.aborts()
        } else {
            return 0;
        };
    }
}

tollgate_arch::code! {
/// Stops the process. The tracer reads the answer from `rdi` and writes the next order to `rax`.
///
/// # Safety
/// The process must be traced, or SIGTRAP ends it.
fn rest(answer: u64) -> u64 { "int3", "ret" }
}
