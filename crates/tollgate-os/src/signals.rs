//! Signal dispositions and masks: sigaction(2), pthread_sigmask(3).

use std::os::fd::{FromRawFd, OwnedFd};
use std::{fmt, io, marker::PhantomData, mem, os::unix::process::CommandExt, process::Command, ptr};

/// A handler for SA_SIGINFO.
pub type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// The disposition of a signal in this process.
#[derive(Clone, Copy)]
pub struct Disposition(libc::sigaction);

impl Disposition {
    /// Returns the current disposition of a signal.
    pub fn of(signal: libc::c_int) -> Self {
        let mut now = Self::plain(libc::SIG_DFL, 0);
        // SAFETY: the kernel writes to `now`. On failure, for an invalid signal number, it stays the default.
        unsafe { libc::sigaction(signal, ptr::null(), &raw mut now.0) };
        now
    }

    /// Returns the default of signal(7), with these flags.
    pub fn default_with(flags: libc::c_int) -> Self {
        Self::plain(libc::SIG_DFL, flags)
    }

    /// Returns the disposition that ignores a signal.
    pub fn ignored() -> Self {
        Self::plain(libc::SIG_IGN, 0)
    }

    /// Returns a handler with these flags and SA_SIGINFO.
    ///
    /// # Safety
    /// The function does only what signal-safety(7) allows, preserves errno, and may run at any moment after it is set.
    pub unsafe fn handler(handler: Handler, flags: libc::c_int) -> Self {
        Self::plain(handler as *const () as usize, flags | libc::SA_SIGINFO)
    }

    fn plain(handler: libc::sighandler_t, flags: libc::c_int) -> Self {
        // SAFETY: all zeros are a valid `sigaction`.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        (action.sa_sigaction, action.sa_flags) = (handler, flags);
        Self(action)
    }

    /// Returns whether the signal is ignored.
    pub fn is_ignored(&self) -> bool {
        self.0.sa_sigaction == libc::SIG_IGN
    }

    /// Returns whether it is the default of signal(7).
    pub fn is_default(&self) -> bool {
        self.0.sa_sigaction == libc::SIG_DFL
    }

    /// Returns whether this function handles the signal.
    pub fn is_handled_by(&self, handler: Handler) -> bool {
        self.0.sa_sigaction == handler as *const () as usize
    }

    /// Returns the disposition that a started program inherits: execve(2) resets handlers to the default.
    pub fn inherited(self) -> Self {
        if self.is_ignored() { self } else { Self::default_with(0) }
    }

    /// Sets it for a signal, and returns the previous one.
    ///
    /// # Errors
    /// EINVAL for an invalid signal number, or for SIGKILL and SIGSTOP.
    pub fn set(&self, signal: libc::c_int) -> io::Result<Self> {
        let mut before = Self::plain(libc::SIG_DFL, 0);
        // SAFETY: the action is a constant, came from the kernel, or was made by a caller who vouched for its function.
        match unsafe { libc::sigaction(signal, &raw const self.0, &raw mut before.0) } {
            0 => Ok(before),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Sets it until the result is dropped.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn set_for_now(&self, signal: libc::c_int) -> io::Result<Changed> {
        self.set(signal).map(|before| Changed { signal, before })
    }
}

impl fmt::Debug for Disposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Disposition({:#x})", self.0.sa_sigaction)
    }
}

/// A changed disposition, which is restored on drop.
#[derive(Debug)]
#[must_use = "the disposition is as before when this is dropped"]
pub struct Changed {
    signal: libc::c_int,
    before: Disposition,
}

impl Drop for Changed {
    fn drop(&mut self) {
        let _ = self.before.set(self.signal);
    }
}

/// Restores the default dispositions of signals.
pub fn default(signals: &[libc::c_int]) {
    for signal in signals {
        let _ = Disposition::default_with(0).set(*signal);
    }
}

/// Ignores a signal.
pub fn ignore(signal: libc::c_int) {
    let _ = Disposition::ignored().set(signal);
}

/// Starts a program with this disposition of these signals, regardless of this process's own. A shell makes its background
/// jobs ignore SIGINT, and programs inherit that.
pub fn start_with(command: &mut Command, disposition: Disposition, signals: &'static [libc::c_int]) {
    let set = move || signals.iter().try_for_each(|signal| disposition.inherited().set(*signal).map(drop));
    // SAFETY: sigaction(2) may be called between fork and exec.
    unsafe { command.pre_exec(set) };
}

/// A set of signals.
#[derive(Clone, Copy)]
pub struct Set(libc::sigset_t);

impl Set {
    /// Returns a set of these signals.
    pub fn of(signals: &[libc::c_int]) -> Self {
        // SAFETY: all zeros are a valid set.
        let mut set = Self(unsafe { mem::zeroed() });
        for signal in signals {
            // SAFETY: the set is alive; an invalid number changes nothing.
            unsafe { libc::sigaddset(&raw mut set.0, *signal) };
        }
        set
    }

    /// Returns the set of all signals.
    pub fn all() -> Self {
        let mut set = Self::of(&[]);
        // SAFETY: the set is alive.
        unsafe { libc::sigfillset(&raw mut set.0) };
        set
    }

    /// Returns whether the set contains a signal.
    pub fn contains(&self, signal: libc::c_int) -> bool {
        // SAFETY: the set is alive.
        unsafe { libc::sigismember(&raw const self.0, signal) == 1 }
    }

    /// Returns the signals that the calling thread blocks.
    pub fn blocked() -> Self {
        Self::of(&[]).change(libc::SIG_BLOCK)
    }

    /// Blocks exactly these in the calling thread.
    pub fn block_only(&self) {
        self.change(libc::SIG_SETMASK);
    }

    /// Also blocks these in the calling thread.
    pub fn block(&self) {
        self.change(libc::SIG_BLOCK);
    }

    /// Unblocks these in the calling thread, and returns the signals that it blocked before.
    pub fn unblock(&self) -> Self {
        self.change(libc::SIG_UNBLOCK)
    }

    /// Like [`Self::block_only`], until the result is dropped.
    pub fn block_only_for_now(&self) -> Mask {
        Mask(self.change(libc::SIG_SETMASK), PhantomData)
    }

    /// Like [`Self::unblock`], until the result is dropped.
    pub fn unblock_for_now(&self) -> Mask {
        Mask(self.change(libc::SIG_UNBLOCK), PhantomData)
    }

    /// The only error of pthread_sigmask(3) is an unknown `how`.
    fn change(&self, how: libc::c_int) -> Self {
        let mut before = Self::of(&[]);
        // SAFETY: both sets are alive, and a thread may change its own mask.
        unsafe { libc::pthread_sigmask(how, &raw const self.0, &raw mut before.0) };
        before
    }

    /// Waits for any of these signals, which must be blocked (sigwaitinfo(2)).
    ///
    /// # Errors
    /// EINTR.
    pub fn wait(&self) -> io::Result<()> {
        // SAFETY: the set is alive, and the null pointer asks for no details.
        match unsafe { libc::sigwaitinfo(&raw const self.0, ptr::null_mut()) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Returns a non-blocking descriptor from which these signals are read while they are blocked (signalfd(2)).
    ///
    /// # Errors
    /// Those of signalfd(2).
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        // SAFETY: the set is alive.
        match unsafe { libc::signalfd(-1, &raw const self.0, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: the descriptor is new, and nothing else owns it.
            descriptor => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        }
    }
}

/// The previous signal mask of a thread, which is restored on drop.
#[must_use = "the mask is as before when this is dropped"]
pub struct Mask(Set, PhantomData<*const ()>);

impl Drop for Mask {
    fn drop(&mut self) {
        self.0.block_only();
    }
}

/// Sends a signal to the calling thread (raise(3)).
pub fn raise(signal: libc::c_int) {
    // SAFETY: raise(3) takes a number.
    unsafe { libc::raise(signal) };
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

    use super::*;

    static CAME: AtomicI32 = AtomicI32::new(0);

    extern "C" fn note(signal: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
        CAME.store(signal, Relaxed);
    }

    #[test]
    fn a_disposition_is_set_and_comes_back() {
        let signal = libc::SIGRTMIN() + 3;
        let before = Disposition::of(signal);
        assert!(before.is_default());
        // SAFETY: the function stores a number.
        let changed = unsafe { Disposition::handler(note, 0) }.set_for_now(signal).unwrap();
        assert!(Disposition::of(signal).is_handled_by(note));
        assert!(!Disposition::of(signal).inherited().is_handled_by(note));
        raise(signal);
        assert_eq!(CAME.load(Relaxed), signal);
        drop(changed);
        let ignored = Disposition::ignored().set_for_now(signal).unwrap();
        assert!(Disposition::of(signal).inherited().is_ignored());
        raise(signal);
        drop(ignored);
        assert!(Disposition::of(signal).is_default());
        assert!(Disposition::ignored().set(libc::SIGKILL).is_err());
    }

    #[test]
    fn a_program_starts_with_dispositions() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "kill -USR1 $$; kill -INT $$; echo alive"]);
        start_with(&mut shell, Disposition::default_with(0), &[libc::SIGINT]);
        start_with(&mut shell, Disposition::ignored(), &[libc::SIGUSR1, libc::SIGINT]);
        assert_eq!(shell.output().unwrap().stdout, b"alive\n");
        start_with(&mut shell, Disposition::default_with(0), &[libc::SIGINT]);
        assert_eq!(shell.output().unwrap().stdout, b"");
    }

    #[test]
    fn a_mask_holds_back_and_comes_back() {
        let signal = libc::SIGRTMIN() + 4;
        assert!(!Set::blocked().contains(signal));
        let mask = Set::all().block_only_for_now();
        assert!(Set::blocked().contains(signal));
        let descriptor = Set::of(&[signal]).descriptor().unwrap();
        raise(signal);
        let mut info = [0; 128];
        assert_eq!(rustix::io::read(&descriptor, &mut info).unwrap(), 128);
        assert_eq!(info[..4], signal.to_ne_bytes());
        let open = Set::of(&[signal]).unblock_for_now();
        assert!(!Set::blocked().contains(signal));
        drop(open);
        assert!(Set::blocked().contains(signal));
        drop(mask);
        assert!(!Set::blocked().contains(signal));
    }
}
