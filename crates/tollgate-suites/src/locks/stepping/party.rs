//! A process that takes and releases a lock when it is told, and can be stopped at any of its instructions.
//!
//! Source: ptrace(2). A breakpoint is INT3 (Intel SDM volume 2, INT3), written into this process's own copy of the code:
//! another process with the same code at the same address runs past it. PTRACE_SINGLESTEP is no way to go through a
//! restartable sequence, since every step is an interruption, and each interruption sends it to its abort handler. A
//! breakpoint interrupts it once.

use std::{arch, io, mem};

use crate::locks::lock::{Handle, Lock};
use tollgate_engine::{Refusal, die_with_parent};
use tollgate_model::text::plainly;

/// What a process is told, and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Order {
    /// Take the lock: what the word held before.
    Take = 1,
    /// Give it back: 0.
    Release = 2,
    /// How often a restartable sequence was restarted.
    Aborts = 3,
}

/// Where a process has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// It has done what it was told, and this is its answer.
    Rest(u64),
    /// Before the instruction at which it was to stop.
    Point,
    /// It was about to give the processor away (sched_yield(2)): it waits for another.
    Waits,
}

/// The process. It stands still but while [`Party::run_to`] or [`Party::step`] runs, and ends when this is dropped.
pub(super) struct Party {
    pid: libc::pid_t,
    /// Whether it has stopped at the entry of a system call, so that the next stop is at its exit.
    in_call: bool,
}

/// INT3.
const BREAKPOINT: u8 = 0xcc;
/// Seconds after which a process gives up. All that is done with one takes less than two.
const LIMIT: u32 = 120;
/// What a process says that cannot be traced, and one that cannot join.
const NOT_TRACED: i32 = 3;
const NOT_JOINED: i32 = 4;

impl Party {
    /// Forks member `number` of a lock, on the processor of the calling thread. It stands still at once.
    ///
    /// # Errors
    /// [`Refusal::Skip`] where the place lets nobody be traced, or lacks what the lock needs.
    pub fn new(lock: &Lock, number: usize) -> Result<Self, Refusal> {
        // SAFETY: getpid(2) has no preconditions.
        let parent = unsafe { libc::getpid() };
        // SAFETY: the copy uses what it inherits, its one thread and the allocator, which is safe across fork.
        match unsafe { libc::fork() } {
            -1 => Err(Refusal::of("fork(2) is refused", &io::Error::last_os_error())),
            0 => {
                die_with_parent(parent);
                let status = serve(lock, number);
                // SAFETY: ends the copy without running what belongs to the original.
                unsafe { libc::_exit(status) }
            }
            pid => {
                let mut party = Self { pid, in_call: false };
                match party.wait()? {
                    libc::SIGTRAP => {
                        let options = libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACESYSGOOD;
                        party.request(libc::PTRACE_SETOPTIONS, 0, options as usize)?;
                        Ok(party)
                    }
                    signal => Err(Refusal::Fail(format!("it stopped by signal {signal} before it began"))),
                }
            }
        }
    }

    /// Tells it what to do. It must be at rest; it begins when it is run.
    pub fn tell(&mut self, order: Order) -> Result<(), Refusal> {
        let mut registers = self.registers()?;
        registers.rax = order as u64;
        self.set(&registers)
    }

    /// Runs it until it rests, waits or is about to run the instruction at `point`.
    pub fn run_to(&mut self, point: Option<usize>) -> Result<Stop, Refusal> {
        let replaced = point.map(|point| self.replace(point, BREAKPOINT)).transpose()?;
        let stop = self.run(point);
        if let (Some(point), Some(replaced)) = (point, replaced) {
            self.replace(point, replaced)?;
        }
        stop
    }

    fn run(&mut self, point: Option<usize>) -> Result<Stop, Refusal> {
        const CALL: libc::c_int = libc::SIGTRAP | 0x80;
        let mut signal = 0;
        loop {
            self.request(libc::PTRACE_SYSCALL, 0, signal as usize)?;
            signal = 0;
            match self.wait()? {
                CALL => {
                    self.in_call = !self.in_call;
                    if self.in_call && self.registers()?.orig_rax == libc::SYS_sched_yield as u64 {
                        return Ok(Stop::Waits);
                    }
                }
                libc::SIGTRAP => {
                    let mut registers = self.registers()?;
                    let at = registers.rip as usize - 1;
                    if Some(at) == point {
                        // The instruction that was replaced is still to be run.
                        registers.rip -= 1;
                        self.set(&registers)?;
                        return Ok(Stop::Point);
                    }
                    if at == rest as *const () as usize {
                        return Ok(Stop::Rest(registers.rdi));
                    }
                    return Err(Refusal::Fail(format!("it was trapped at {at:#x}, where nobody meant it")));
                }
                libc::SIGALRM => {
                    return Err(Refusal::Fail(format!("it did not stop within {LIMIT} s")));
                }
                other => signal = other,
            }
        }
    }

    /// Runs one instruction. Where the next one is.
    pub fn step(&mut self) -> Result<usize, Refusal> {
        self.request(libc::PTRACE_SINGLESTEP, 0, 0)?;
        match self.wait()? {
            libc::SIGTRAP => Ok(self.registers()?.rip as usize),
            signal => Err(Refusal::Fail(format!("a step ended by signal {signal}"))),
        }
    }

    /// Binds it to a processor: it goes on there.
    pub fn bind(&mut self, cpu: usize) -> Result<(), Refusal> {
        tollgate_os::processors::bind(self.pid, &[cpu])
            .map_err(|error| Refusal::of("sched_setaffinity(2) is refused", &error))
    }

    /// Writes eight bytes into its memory.
    pub fn write(&mut self, address: usize, value: u64) -> Result<(), Refusal> {
        self.request(libc::PTRACE_POKEDATA, address, value as usize)
    }

    /// Puts a byte into its code. The one that was there.
    fn replace(&mut self, address: usize, byte: u8) -> Result<u8, Refusal> {
        let mut word = 0u64;
        // The system call writes the word to where the last argument points, other than the C library's function.
        self.request(libc::PTRACE_PEEKTEXT, address, &raw mut word as usize)?;
        let [before, rest @ ..] = word.to_le_bytes();
        let [a, b, c, d, e, f, g] = rest;
        let word = u64::from_le_bytes([byte, a, b, c, d, e, f, g]);
        self.request(libc::PTRACE_POKETEXT, address, word as usize)?;
        Ok(before)
    }

    fn registers(&self) -> Result<libc::user_regs_struct, Refusal> {
        // SAFETY: an all-zero user_regs_struct is valid.
        let mut registers: libc::user_regs_struct = unsafe { mem::zeroed() };
        self.request(libc::PTRACE_GETREGS, 0, &raw mut registers as usize)?;
        Ok(registers)
    }

    fn set(&mut self, registers: &libc::user_regs_struct) -> Result<(), Refusal> {
        self.request(libc::PTRACE_SETREGS, 0, &raw const *registers as usize)
    }

    fn request(&self, request: libc::c_uint, address: usize, data: usize) -> Result<(), Refusal> {
        // SAFETY: `data` is a number, or points to what the request reads or writes, which the caller keeps.
        let outcome = unsafe { libc::syscall(libc::SYS_ptrace, request, self.pid, address, data) };
        match outcome {
            // Whoever may be traced may be asked everything: it is not the place that refuses.
            -1 => {
                Err(Refusal::Fail(format!("ptrace({request:#x}): {}", plainly(&io::Error::last_os_error()))))
            }
            _ => Ok(()),
        }
    }

    /// The signal by which it stopped.
    fn wait(&mut self) -> Result<libc::c_int, Refusal> {
        let mut status = 0;
        loop {
            // SAFETY: `status` is valid for writing.
            match unsafe { libc::waitpid(self.pid, &mut status, libc::__WALL) } {
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                -1 => {
                    return Err(Refusal::Fail(format!(
                        "waitpid(2): {}",
                        plainly(&io::Error::last_os_error())
                    )));
                }
                _ if libc::WIFSTOPPED(status) => return Ok(libc::WSTOPSIG(status)),
                _ => break,
            }
        }
        // The number may be another's from now on.
        self.pid = 0;
        let seccomp = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSYS;
        match libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)) {
            Some(NOT_TRACED) => Err(Refusal::Skip("ptrace(2) is refused".to_owned())),
            Some(NOT_JOINED) => Err(Refusal::Skip("the lock cannot be joined".to_owned())),
            None if seccomp => Err(Refusal::Skip("a seccomp filter forbids ptrace(2)".to_owned())),
            _ => Err(Refusal::Fail(format!("it ended with wait status {status:#x}"))),
        }
    }
}

impl Drop for Party {
    fn drop(&mut self) {
        if self.pid == 0 {
            return;
        }
        // SAFETY: our child, which nobody has waited for, so that the number is still its own.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        // A stop that nobody has heard of comes before its end.
        while self.wait().is_ok() {}
    }
}

/// The process's side. Comes back only where it cannot begin: with its status.
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
        // SAFETY: the process is traced: whoever traces it hears of the trap and sets what it returns.
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

/// Stops the process. Whoever traces it finds the answer in `rdi`, and puts the next order into `rax`.
///
/// # Safety
/// The process must be traced, or SIGTRAP ends it.
#[unsafe(naked)]
unsafe extern "C" fn rest(answer: u64) -> u64 {
    arch::naked_asm!("int3", "ret")
}
