//! A process traced with ptrace(2).

#![allow(unsafe_code)]

use std::io;

use tollgate_arch::registers::Registers;
use tollgate_model::traced::Ended;
use tollgate_os::process::{self, Child, Status};

use super::NoStart;

/// A traced process that runs only during [`Traced::run_to`]. Dropping this ends it. If this process is killed, the kernel ends
/// it (`PTRACE_O_EXITKILL`).
pub(super) struct Traced<'a> {
    child: Child,
    /// Killed children of the traced process, which this process must reap once that is gone (see `Subreaper`).
    orphans: Vec<libc::pid_t>,
    stop: &'a dyn Fn() -> bool,
}

impl<'a> Traced<'a> {
    /// Takes over a child that asked to be traced, once it has called execve(2). [`NoStart::Exited`] if it did not get there.
    pub fn executed(child: Child, stop: &'a dyn Fn() -> bool) -> Result<Self, NoStart> {
        let mut traced = Self { child, orphans: Vec::new(), stop };
        let (signal, _) = traced.wait_for_stop()?;
        if signal != libc::SIGTRAP {
            return Err(NoStart::Killed(signal));
        }
        let options = libc::PTRACE_O_EXITKILL
            | libc::PTRACE_O_TRACEFORK
            | libc::PTRACE_O_TRACEVFORK
            | libc::PTRACE_O_TRACECLONE;
        traced.request(libc::PTRACE_SETOPTIONS, 0, options as usize)?;
        Ok(traced)
    }

    pub fn pid(&self) -> libc::pid_t {
        self.child.pid()
    }

    pub fn registers(&self) -> Result<Registers, NoStart> {
        Registers::of(self.pid()).map_err(|error| NoStart::Failed("PTRACE_GETREGS", error))
    }

    pub fn set_registers(&self, registers: &Registers) -> Result<(), NoStart> {
        registers.set(self.pid()).map_err(|error| NoStart::Failed("PTRACE_SETREGS", error))
    }

    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), NoStart> {
        let mut word = self.peek(address)?.to_ne_bytes();
        word.iter_mut().zip(bytes).for_each(|(old, new)| *old = *new);
        self.request(libc::PTRACE_POKETEXT, address as usize, usize::from_ne_bytes(word)).map(drop)
    }

    pub fn read(&self, address: u64, length: usize) -> Result<Vec<u8>, NoStart> {
        let mut bytes = vec![0u8; length];
        let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: length };
        // SAFETY: the local buffer is writable for its length; the kernel checks the remote one.
        let read = unsafe { libc::syscall(libc::SYS_process_vm_readv, self.pid(), &local, 1, &remote, 1, 0) };
        if let Ok(read @ 1..) = usize::try_from(read) {
            bytes.truncate(read);
            return Ok(bytes);
        }
        // Some seccomp filters allow ptrace(2) but not this call.
        bytes.clear();
        for at in (address..).step_by(size_of::<usize>()) {
            match self.peek(at) {
                Ok(word) if bytes.len() < length => bytes.extend(word.to_ne_bytes()),
                Err(error) if bytes.is_empty() => return Err(error),
                _ => break,
            }
        }
        Ok(bytes)
    }

    fn peek(&self, address: u64) -> Result<usize, NoStart> {
        let mut word: usize = 0;
        // The system call itself writes the word; the C library's function returns it instead. SAFETY: the word is writable; the
        // kernel checks the address.
        let status = unsafe {
            libc::syscall(libc::SYS_ptrace, libc::PTRACE_PEEKTEXT, self.pid(), address, &raw mut word)
        };
        if status == -1 { Err(self.failed("PTRACE_PEEKTEXT")) } else { Ok(word) }
    }

    /// Runs it up to the breakpoint whose next instruction is at `next`, and returns its registers there.
    pub fn run_to(&mut self, next: u64) -> Result<Registers, NoStart> {
        let mut signal = 0;
        loop {
            self.request(libc::PTRACE_CONT, 0, signal as usize)?;
            signal = match self.wait_for_stop()? {
                (libc::SIGTRAP, 0) => {
                    let registers = self.registers()?;
                    if registers.instruction() == next {
                        return Ok(registers);
                    }
                    libc::SIGTRAP
                }
                (libc::SIGTRAP, event) => {
                    self.let_go(event)?;
                    0
                }
                (libc::SIGALRM, _) => return Err(NoStart::TookTooLong),
                (signal, _) => signal,
            };
        }
    }

    /// Kills a process that it made. A thread, which a library may start before the entry point, runs on untraced.
    fn let_go(&mut self, event: i32) -> Result<(), NoStart> {
        if ![libc::PTRACE_EVENT_FORK, libc::PTRACE_EVENT_VFORK, libc::PTRACE_EVENT_CLONE].contains(&event) {
            return Ok(());
        }
        let mut number: libc::c_ulong = 0;
        self.request(libc::PTRACE_GETEVENTMSG, 0, &raw mut number as usize)?;
        let made = number as libc::pid_t;
        // SAFETY: signal 0 only checks whether there is such a thread in that process.
        let is_thread = unsafe { libc::syscall(libc::SYS_tgkill, self.pid(), made, 0) == 0 };
        if !is_thread {
            // It is traced by us, and stopped or about to stop: its number is not reused until it is waited for.
            let _ = process::kill(made, libc::SIGKILL);
            self.orphans.push(made);
        }
        while process::wait4(made, 0).is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {}
        if is_thread {
            // SAFETY: the request takes numbers.
            unsafe { libc::ptrace(libc::PTRACE_DETACH, made, 0, 0) };
        }
        Ok(())
    }

    fn wait_for_stop(&mut self) -> Result<(i32, i32), NoStart> {
        loop {
            match self.child.next(0) {
                Ok(Some(wait)) => {
                    return match wait.status {
                        Status::Stopped { signal, event } => Ok((signal, event)),
                        Status::Ended(Ended::Exit(status)) => Err(NoStart::Exited(status)),
                        Status::Ended(Ended::Signal(libc::SIGALRM)) => Err(NoStart::TookTooLong),
                        Status::Ended(Ended::Signal(signal)) => Err(NoStart::Killed(signal)),
                    };
                }
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(NoStart::Failed("waitpid", error));
                }
                _ if (self.stop)() => return Err(NoStart::Stopped),
                _ => {}
            }
        }
    }

    fn request(&self, request: libc::c_uint, address: usize, data: usize) -> Result<libc::c_long, NoStart> {
        // SAFETY: each request above passes what it needs: numbers, an address of the other process, or memory for the kernel.
        let answer = unsafe { libc::ptrace(request, self.pid(), address, data) };
        if answer == -1 { Err(self.failed(name(request))) } else { Ok(answer) }
    }

    fn failed(&self, call: &'static str) -> NoStart {
        NoStart::Failed(call, io::Error::last_os_error())
    }
}

fn name(request: libc::c_uint) -> &'static str {
    match request {
        libc::PTRACE_POKETEXT => "PTRACE_POKETEXT",
        libc::PTRACE_SETOPTIONS => "PTRACE_SETOPTIONS",
        libc::PTRACE_GETEVENTMSG => "PTRACE_GETEVENTMSG",
        _ => "PTRACE_CONT",
    }
}

impl Drop for Traced<'_> {
    fn drop(&mut self) {
        let _ = self.child.end();
        // Children that it had reaped itself are gone, and this call does not block for them.
        for orphan in &self.orphans {
            let _ = Child::adopt(*orphan).wait();
        }
    }
}
