//! What holds for every arm of this suite.

use std::mem;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::SUITE;
use super::handler::{self, Action};
use super::memory::PAGE;
use super::touched::{self, Counting, Touched};
use crate::bench::clock::Clock;
use crate::bench::timed::EMPTY;
use crate::bench::{Arm, Order, Refusal, Timed};
use crate::probe::Probe;
use tollgate_model::Params;

/// Handlers belong to the process: tests that install some wait for each other.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a process ended that did this and no more.
fn outcome_of(work: impl FnOnce() -> i32) -> libc::c_int {
    // SAFETY: the child does `work` and ends without running what belongs to the original.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the limit is valid for reading.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &no_core) };
        // SAFETY: a lock that another thread held at the fork is never let go: this ends whoever waits for it.
        unsafe { libc::alarm(60) };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        let status = outcome.unwrap_or_else(|panic| {
            // What the harness captures ends with this copy of it.
            let why = panic.downcast_ref::<String>().map_or("a panic", String::as_str);
            // SAFETY: the text is valid for reading its own length.
            unsafe { libc::write(2, why.as_ptr().cast(), why.len()) };
            101
        });
        // SAFETY: ends the child.
        unsafe { libc::_exit(status) };
    }
    assert!(child > 0, "no process");
    let mut status = -1;
    // SAFETY: `child` is our child; `status` is valid for writing.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status
}

/// The signal that killed a process that did this, if one did.
pub(super) fn died_of(work: impl FnOnce()) -> Option<libc::c_int> {
    let status = outcome_of(|| {
        work();
        0
    });
    libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
}

fn cases() -> impl Iterator<Item = (&'static Probe, Params)> {
    SUITE.probes.iter().flat_map(|&probe| (probe.cases)().into_iter().map(move |params| (probe, params)))
}

/// The arm of a case, where this place can have it.
fn ready(probe: &'static Probe, params: &Params) -> Option<Arm> {
    match (probe.arm)(probe, params) {
        Ok(arm) => Some(arm),
        Err(Refusal::Skip(why)) => {
            eprintln!("skipped: {}: {why}", probe.case(params.clone()));
            None
        }
        Err(Refusal::Fail(error)) => panic!("{}: {error}", probe.case(params.clone())),
    }
}

/// Blocks of several lengths, each of which counts what was asked for.
fn use_it(probe: &'static Probe, params: &Params, arm: &mut Arm) {
    let (ops, most) = arm.room();
    for iterations in [1, 3, 16, 2, most] {
        let iterations = iterations.min(most).min(64);
        let counted = (0..10).find_map(|_| {
            let block = arm.block(Clock::Kernel, Order { iterations, extra: 0 }).expect("a block");
            (block.undisturbed || probe.counts != Some("minor faults")).then_some(block.counted)
        });
        let wanted = probe.counts.map(|_| iterations * ops);
        assert_eq!(counted, Some(wanted), "{}: {iterations}", probe.case(params.clone()));
    }
}

const SIGNALS: [libc::c_int; 6] =
    [libc::SIGILL, libc::SIGTRAP, libc::SIGFPE, libc::SIGSEGV, libc::SIGBUS, libc::SIGUSR1];

/// What the process does on each signal that this suite touches, and what this thread blocks.
fn dispositions() -> Vec<(Action, bool)> {
    let of = |&signal: &libc::c_int| {
        // SAFETY: an all-zero mask is valid; the call only writes it.
        let blocked = unsafe {
            let mut mask: libc::sigset_t = mem::zeroed();
            assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut mask), 0);
            libc::sigismember(&mask, signal) == 1
        };
        (Action::now(signal).expect("an action"), blocked)
    };
    SIGNALS.iter().map(of).collect()
}

/// Mappings, threads, and locked memory of this process, where it can be told.
fn held() -> Option<(usize, usize, String)> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?.lines().count();
    let threads = std::fs::read_dir("/proc/self/task").ok()?.count();
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let locked = status.lines().find(|line| line.starts_with("VmLck:"))?.to_owned();
    Some((maps, threads, locked))
}

/// One after the other in a process of its own: other tests map memory and start threads as well.
#[test]
fn every_block_counts_its_operations_and_everything_is_as_before_afterwards() {
    let _alone = alone();
    let status = outcome_of(|| {
        for (probe, params) in cases() {
            let case = probe.case(params.clone());
            let before = dispositions();
            let mut rest = Vec::new();
            // The first use leaves what the C library keeps for the next: a thread's stack, say.
            for _ in 0..2 {
                let Some(mut arm) = ready(probe, &params) else { break };
                use_it(probe, &params, &mut arm);
                assert_eq!(dispositions(), before, "{case}: between blocks");
                drop(arm);
                rest.push(held());
            }
            assert_eq!(dispositions(), before, "{case}: afterwards");
            assert!(rest.windows(2).all(|two| two[0] == two[1]), "{case}: {rest:?}");
        }
        0
    });
    assert_eq!(status, 0, "its reason was printed");
}

#[test]
fn a_signal_that_was_blocked_or_ignored_is_so_again() {
    let _alone = alone();
    let status = outcome_of(|| {
        for signal in SIGNALS {
            // SAFETY: an all-zero set is empty; this process is ours alone.
            unsafe {
                let mut set: libc::sigset_t = mem::zeroed();
                libc::sigaddset(&mut set, signal);
                libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
                libc::signal(signal, libc::SIG_IGN);
            }
        }
        let before = dispositions();
        for (probe, params) in cases().filter(|(probe, _)| probe.counts == Some("signals")) {
            if let Some(mut arm) = ready(probe, &params) {
                use_it(probe, &params, &mut arm);
            }
            assert_eq!(dispositions(), before, "{}", probe.case(params));
        }
        0
    });
    assert_eq!(status, 0, "its reason was printed");
}

#[test]
fn first_touches_are_as_many_faults_as_pages() {
    let _alone = alone();
    let probe = &super::minor_fault::PROBE;
    for params in (probe.cases)() {
        let Some(mut arm) = ready(probe, &params) else { continue };
        let (_, most) = arm.room();
        for iterations in [1, most / 2, most - 1, most] {
            let order = Order { iterations, extra: 0 };
            // A fault of the program's own makes a block disturbed, never its count wrong.
            let blocks = (0..20).map(|_| arm.block(Clock::Kernel, order).expect("a block"));
            let undisturbed: Vec<Option<u64>> =
                blocks.filter(|block| block.undisturbed).map(|block| block.counted).collect();
            assert!(!undisturbed.is_empty());
            assert!(undisturbed.iter().all(|&counted| counted == Some(iterations)), "{undisturbed:?}");
        }
    }
}

#[test]
fn pages_that_are_not_touched_have_no_price() {
    let _alone = alone();
    for counting in [Counting::Faults, Counting::Pages] {
        let touched = Touched::new(touched::small(8).expect("memory"), PAGE, 0, counting);
        let refused = touched.arm(Timed::once("", EMPTY), 1, handler::any).err();
        assert!(matches!(refused, Some(Refusal::Skip(_))), "{refused:?}");
    }
}

#[test]
fn no_block_reaches_beyond_its_region() {
    let _alone = alone();
    for (probe, params) in cases() {
        let Some(mut arm) = ready(probe, &params) else { continue };
        let (_, most) = arm.room();
        if most == u64::MAX {
            continue;
        }
        let beyond = arm.block(Clock::Kernel, Order { iterations: most + 1, extra: 0 });
        assert!(matches!(beyond, Err(Refusal::Fail(_))), "{}", probe.case(params));
    }
}

#[test]
fn a_fault_of_other_code_kills_although_a_handler_is_installed() {
    let _alone = alone();
    let signal = died_of(|| {
        let probe = &super::general_protection::PROBE;
        let timed = (probe.timed)(&Params::new());
        let mut handled = super::general_protection::handled(timed);
        if handled.install().is_err() {
            return;
        }
        // SAFETY: ends this process, which is what is tested.
        unsafe { ptr::null_mut::<u8>().write_volatile(1) };
    });
    assert_eq!(signal, Some(libc::SIGSEGV));
}
