//! Ending as the command did.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use tollgate_model::traced::Ended;
use tollgate_os::signals;

/// Ends this process as the command ended: with its exit status, or by the same signal, so that the process that started this one
/// sees the command's own end. No core of this process is dumped.
pub fn end_like(ended: Ended) -> ! {
    let signal = match ended {
        Ended::Exit(status) => std::process::exit(status),
        Ended::Signal(signal) => signal,
    };
    // A limit of zero does not keep a core from a program that core_pattern names (core(5)); this does.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    signals::default(&[signal]);
    signals::Set::of(&[signal]).unblock();
    signals::raise(signal);
    // The signal did not end it: it is the first process of a namespace, whose signals are the kernel's to give.
    std::process::exit(128_i32.saturating_add(signal))
}
