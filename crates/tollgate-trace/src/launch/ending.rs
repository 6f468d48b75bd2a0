use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use tollgate_model::traced::Ended;
use tollgate_os::signals;

/// Ends this process as the command ended, by exit status or signal, so that its parent sees the same. Dumps no core.
pub fn end_like(ended: Ended) -> ! {
    let signal = match ended {
        Ended::Exit(status) => std::process::exit(status),
        Ended::Signal(signal) => signal,
    };
    // A limit of zero does not stop a core dump to a program that core_pattern names (core(5)), but this does.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    signals::default(&[signal]);
    signals::Set::of(&[signal]).unblock();
    signals::raise(signal);
    // The signal had no effect, since this is the first process of a PID namespace.
    std::process::exit(128_i32.saturating_add(signal))
}
