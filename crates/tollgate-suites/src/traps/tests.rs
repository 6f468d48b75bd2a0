use std::ptr;
use std::sync::{Mutex, MutexGuard};

use super::SUITE;
use super::touched::{self, Counting, Touched};
use crate::prelude::*;
use crate::processes::raw::tests::{comes_to_threads, threads};
use crate::testing::{patiently, ready as ready_or_skipped};
use tollgate_arch::signal::Action;
use tollgate_engine::timed::EMPTY;
use tollgate_model::traced::Ended;
use tollgate_os::process;
use tollgate_os::signals::{self, Set};

/// Handlers belong to the process: tests that install some wait for each other.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    locked(&ALONE)
}

fn outcome_of(work: impl FnOnce() -> i32) -> Ended {
    let child = process::fork(|| {
        let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the limit is valid for reading.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &no_core) };
        // SAFETY: a lock that another thread held at the fork is never released: the alarm kills a child that waits for
        // it, however busy the machine is.
        unsafe { libc::alarm(600) };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        outcome.unwrap_or_else(|panic| {
            // The harness's captured output is lost with this child.
            let why = panic.downcast_ref::<String>().map_or("a panic", String::as_str);
            // SAFETY: the text is valid for reading its own length.
            unsafe { libc::write(2, why.as_ptr().cast(), why.len()) };
            101
        })
    });
    child.and_then(|mut child| child.wait()).expect("it ends")
}

pub(super) fn died_of(work: impl FnOnce()) -> Option<libc::c_int> {
    let ended = outcome_of(|| {
        work();
        0
    });
    match ended {
        Ended::Signal(signal) => Some(signal),
        Ended::Exit(_) => None,
    }
}

/// The cases of this architecture.
fn cases() -> impl Iterator<Item = (&'static Benchmark, Params)> {
    let all = SUITE.benchmarks.iter().flat_map(|&benchmark| {
        (benchmark.cases)(&Topology::default()).into_iter().map(move |params| (benchmark, params))
    });
    all.filter(|(benchmark, params)| (benchmark.timed)(params).why_absent(HERE).is_none())
}

fn ready(benchmark: &'static Benchmark, params: &Params) -> Option<Instance> {
    let Kind::Instance(instance) = benchmark.kind else { panic!("no instance") };
    ready_or_skipped(
        benchmark.case(params.clone()).to_string(),
        instance((benchmark.timed)(params), params, &mut Context::here()),
    )
}

/// Runs batches of several lengths, each of which must count its operations.
fn use_it(benchmark: &'static Benchmark, params: &Params, instance: &mut Instance) {
    let (ops, most) = instance.limits();
    for iterations in [1, 3, 16, 2, most] {
        let iterations = iterations.min(most).min(64);
        let wanted = benchmark.counts.map(|_| iterations * ops);
        let case = benchmark.case(params.clone());
        let counted = counted(benchmark, &case.to_string(), instance, Order::new(iterations));
        assert_eq!(counted, wanted, "{case}: {iterations}");
    }
}

/// Returns the count of a batch. An unrelated fault, or a lack of free huge pages, disturbs a batch of page faults; a
/// correct count stands even if the thread was switched out. A count that stays wrong comes from an undisturbed batch.
fn counted(benchmark: &Benchmark, case: &str, instance: &mut Instance, order: Order) -> Option<u64> {
    let strays = matches!(benchmark.counts, Some("minor faults" | "pages"));
    let wanted = order.all() * instance.limits().0;
    patiently(case, || {
        let batch = instance.batch(Clock::Kernel, order).expect("a batch");
        (!strays || batch.undisturbed || batch.counted == Some(wanted)).then_some(batch.counted)
    })
}

const SIGNALS: [libc::c_int; 6] =
    [libc::SIGILL, libc::SIGTRAP, libc::SIGFPE, libc::SIGSEGV, libc::SIGBUS, libc::SIGUSR1];

/// The action of each signal that this suite uses, and whether this thread blocks it.
fn dispositions() -> Vec<(Action, bool)> {
    let blocked = Set::blocked();
    let of = |&signal: &libc::c_int| (Action::now(signal).expect("an action"), blocked.contains(signal));
    SIGNALS.iter().map(of).collect()
}

/// Mappings and locked memory of this process, if /proc shows them.
fn held() -> Option<(usize, String)> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?.lines().count();
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let locked = status.lines().find(|line| line.starts_with("VmLck:"))?.to_owned();
    Some((maps, locked))
}

/// Runs everything in sequence in its own process: other tests also map memory and start threads.
#[test]
fn every_batch_counts_its_operations_and_restores_the_process() {
    let _alone = alone();
    let ended = outcome_of(|| {
        let threads = threads();
        for (benchmark, params) in cases() {
            let case = benchmark.case(params.clone());
            let before = dispositions();
            let mut rest = Vec::new();
            // After the first use the C library keeps some memory, such as a thread's stack.
            for _ in 0..2 {
                let Some(mut instance) = ready(benchmark, &params) else { break };
                use_it(benchmark, &params, &mut instance);
                assert_eq!(dispositions(), before, "{case}: between batches");
                drop(instance);
                threads.inspect(|&threads| comes_to_threads(threads, &case.to_string()));
                rest.push(held());
            }
            assert_eq!(dispositions(), before, "{case}: afterwards");
            assert!(rest.windows(2).all(|two| two[0] == two[1]), "{case}: {rest:?}");
        }
        0
    });
    assert_eq!(ended, Ended::Exit(0), "its reason was printed");
}

#[test]
fn a_blocked_or_ignored_signal_is_restored() {
    let _alone = alone();
    let ended = outcome_of(|| {
        for signal in SIGNALS {
            signals::ignore(signal);
        }
        Set::of(&SIGNALS).block();
        let before = dispositions();
        for (benchmark, params) in
            cases().filter(|(benchmark, _)| matches!(benchmark.counts, Some("signals" | "traps")))
        {
            if let Some(mut instance) = ready(benchmark, &params) {
                use_it(benchmark, &params, &mut instance);
            }
            assert_eq!(dispositions(), before, "{}", benchmark.case(params));
        }
        0
    });
    assert_eq!(ended, Ended::Exit(0), "its reason was printed");
}

#[test]
fn first_touches_are_as_many_faults_as_pages() {
    let _alone = alone();
    let benchmark = &super::minor_fault::BENCHMARK;
    for params in (benchmark.cases)(&Topology::default()) {
        let Some(mut instance) = ready(benchmark, &params) else { continue };
        let (_, most) = instance.limits();
        for iterations in [1, most / 2, most - 1, most] {
            for _ in 0..20 {
                let counted = counted(benchmark, "first touches", &mut instance, Order::new(iterations));
                assert_eq!(counted, Some(iterations));
            }
        }
    }
}

#[test]
fn pages_that_are_not_touched_have_no_estimate() {
    let _alone = alone();
    for counting in [Counting::Faults, Counting::Pages] {
        let touched = Touched::new(touched::small(8).expect("memory"), page_size(), 0, counting);
        let refused = touched.instance(Timed::once("", EMPTY), 1, checks::any).err();
        assert!(matches!(refused, Some(Refusal::Skip(_))), "{refused:?}");
    }
}

#[test]
fn no_batch_exceeds_its_region() {
    let _alone = alone();
    for (benchmark, params) in cases() {
        let Some(mut instance) = ready(benchmark, &params) else { continue };
        let (_, most) = instance.limits();
        if most == u64::MAX {
            continue;
        }
        let beyond = instance.batch(Clock::Kernel, Order::new(most + 1));
        assert!(matches!(beyond, Err(Refusal::Fail(_))), "{}", benchmark.case(params));
    }
}

#[test]
fn a_fault_of_other_code_kills_although_a_handler_is_installed() {
    let _alone = alone();
    let signal = died_of(|| {
        let benchmark = &super::general_protection::BENCHMARK;
        let timed = (benchmark.timed)(&Params::new());
        let mut handled = super::general_protection::handled(timed);
        if handled.install().is_err() {
            return;
        }
        // SAFETY: ends this process, which the test expects.
        unsafe { ptr::null_mut::<u8>().write_volatile(1) };
    });
    assert_eq!(signal, Some(libc::SIGSEGV));
}
