//! Commands whose calls and times are known in advance.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use tollgate_arch::architecture::{Architecture, HERE};
use tollgate_model::traced::{Ended, Parts};
use tollgate_os::process;
use tollgate_os::shared::Shared;

use super::super::{collect, stop_counting};
use super::harness::{Outcome, alone, loaded, run_traced, run_traced_c, shell};
use crate::request::Request;

const MS: u64 = 1_000_000;

pub fn command(words: &[&str]) -> Request {
    Request::new(words.iter().map(Into::into).collect())
}

/// Checks invariants of every trace: parts sum to totals, and idle time is part of the real time.
pub fn sums_hold(outcome: &Outcome) {
    let collected = &outcome.collected;
    for call in &collected.calls {
        assert_eq!(call.parts.total_ns(), call.total_ns, "{call:?}");
        assert_eq!(call.histogram.iter().map(|(_, calls)| calls).sum::<u64>(), call.timed());
        assert!(call.max_ns <= call.total_ns && call.errors <= call.count, "{call:?}");
    }
    assert!(
        u128::from(collected.idle.unwrap().total_ns()) <= outcome.wall.as_nanos(),
        "{:?}",
        collected.idle
    );
}

#[test]
fn a_sleep_sleeps() {
    let Some(outcome) = run_traced(command(&["/bin/sleep", "0.3"])) else { return };
    sums_hold(&outcome);
    let sleep = outcome.call("clock_nanosleep");
    assert_eq!((sleep.count, sleep.errors), (1, 0));
    assert!(sleep.parts.sleep_ns >= 300 * MS, "{sleep:?}");
    assert!(sleep.parts.on_cpu_ns < sleep.total_ns / 10, "{sleep:?}");
    let idle = outcome.collected.idle.unwrap();
    assert!(idle.sleep_ns >= 290 * MS, "{idle:?}");
    assert_eq!((outcome.collected.processes, outcome.collected.threads), (1, 1));
    assert_eq!(outcome.call("execve").count, 1);
    assert_eq!(outcome.call("exit_group").unfinished, 1);
    // The read that waits for the release is not the command's; the loader made those that are.
    assert!(outcome.count("read") <= 3);
}

/// Two threads with work for 200 ms each, on one processor.
const BUSY: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <time.h>
static void *work(void *n) {
    struct timespec t;
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < 200);
    return 0;
}
int main(void) {
    cpu_set_t one;
    pthread_t a, b;
    CPU_ZERO(&one); CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    pthread_create(&a, 0, work, 0); pthread_create(&b, 0, work, 0);
    pthread_join(a, 0); pthread_join(b, 0);
}
"#;

#[test]
fn two_busy_threads_on_one_processor_wait_for_it() {
    let Some(outcome) = run_traced_c(BUSY, &[], |_| {}) else { return };
    sums_hold(&outcome);
    assert_eq!((outcome.collected.processes, outcome.collected.threads), (1, 3));
    // clock_gettime(2) for a thread's own time is a system call: the work is in it and outside of it.
    let all = outcome.everything();
    // The scheduler adds up a thread's time at other instructions of a switch, of which there are many on a busy machine.
    assert!(all.on_cpu_ns >= 390 * MS, "{all:?}");
    assert!(all.runqueue_ns >= 100 * MS, "{all:?}");
    assert!(outcome.call("futex").parts.sleep_ns >= 100 * MS);
}

#[test]
fn a_reader_sleeps_as_long_as_its_writer_computes() {
    let script = "(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo x) | (read line; exit 0)";
    let Some(outcome) = run_traced(shell(script)) else { return };
    sums_hold(&outcome);
    let (read, outside) = (outcome.call("read"), outcome.collected.outside.unwrap());
    assert!(read.parts.sleep_ns > read.total_ns / 2, "{read:?}");
    assert!(outside.total_ns() > read.parts.sleep_ns / 2, "{read:?} {outside:?}");
    // At any time some thread runs or is runnable.
    assert!(outcome.collected.idle.unwrap().sleep_ns < read.parts.sleep_ns / 2);
}

#[test]
fn a_parent_of_a_vfork_sleeps_and_waits_for_no_disk() {
    let source = r#"
        #include <unistd.h>
        #include <sys/wait.h>
        int main(void) { if (!vfork()) { usleep(200000); _exit(0); } wait(0); }
    "#;
    let Some(outcome) = run_traced_c(source, &[], |_| {}) else { return };
    let vfork = outcome.call(HERE.spelling("vfork/clone"));
    assert!(vfork.parts.sleep_ns >= 190 * MS && vfork.parts.disk_ns < 100 * MS, "{vfork:?}");
}

#[test]
fn children_of_children_are_traced_and_others_are_not() {
    let mut other = std::process::Command::new("/bin/sh")
        .args(["-c", "while :; do echo; mkdir /no/such/directory 2>&- ; done > /dev/null"])
        .spawn()
        .unwrap();
    let outcome = run_traced(shell("(sh -c 'cat /etc/passwd; sleep 0.2; :'; :); :"));
    other.kill().unwrap();
    other.wait().unwrap();
    let Some(outcome) = outcome else { return };
    sums_hold(&outcome);
    assert_eq!(outcome.call("clock_nanosleep").count, 1);
    assert_eq!(outcome.count("mkdir"), 0);
    assert_eq!((outcome.collected.processes, outcome.collected.threads), (5, 5));
    assert_eq!(outcome.call("execve").count, 4);
}

#[test]
fn a_process_that_is_killed_in_a_call_does_not_return_from_it() {
    let Some(outcome) = run_traced(shell("kill -9 $$")) else { return };
    sums_hold(&outcome);
    assert!(matches!(outcome.ended, Ended::Signal(_)));
    assert_eq!(outcome.call("kill").unfinished + outcome.call("kill").count, 1);
    let Some(outcome) = run_traced(shell("sleep 10 & kill -9 $!; wait $! 2>&-; exit 0")) else { return };
    assert_eq!((outcome.ended, outcome.collected.processes), (Ended::Exit(0), 2));
}

#[test]
fn a_daemon_is_counted_as_far_as_it_came() {
    let mut request = shell("(sleep 2; exit 0) > /dev/null & exit 0");
    request.linger = std::time::Duration::from_millis(700);
    request.tree = true;
    let Some(outcome) = run_traced(request) else { return };
    sums_hold(&outcome);
    assert_eq!(outcome.collected.notes, [] as [String; 0]);
    assert_eq!(outcome.collected.processes, 3);
    let unfinished: Vec<_> =
        outcome.collected.calls.iter().filter(|c| c.unfinished > 0).map(|c| &*c.name).collect();
    assert!(unfinished.contains(&"clock_nanosleep"), "{unfinished:?}");
    let ended: Vec<bool> = outcome.collected.tree.iter().map(|process| process.ended_ns.is_some()).collect();
    assert_eq!(ended, [true, false, false]);
}

/// Its call is counted when the threads are added up. It returns from it before the programs are detached.
#[test]
fn nothing_is_added_for_a_thread_that_goes_on_after_the_totals() {
    let _alone = alone();
    let request = Request { running: true, tree: true, ..command(&[]) };
    for _ in 0..3 {
        let Some(bpf) = loaded(&request) else { return };
        let (zeros, mut buffer) = (std::fs::File::open("/dev/zero").unwrap(), vec![0; 32 << 20]);
        let reads = Shared::<1>::new().unwrap();
        let child = process::fork(|| {
            while rustix::io::read(&zeros, &mut buffer).is_ok() {
                reads[0].fetch_add(1, Relaxed);
            }
            1
        });
        let child = child.unwrap();
        let wait_for_reads = || {
            let begun = reads[0].load(Relaxed);
            while reads[0].load(Relaxed) < begun + 2 {
                std::thread::yield_now();
            }
        };
        bpf.begin();
        let process = child.pidfd().unwrap();
        bpf.take(std::iter::once((child.pid().cast_unsigned(), "reads", process.as_fd()))).unwrap();
        wait_for_reads();
        let (now, _) = stop_counting(&bpf.target, &bpf.maps).unwrap();
        let then = collect::so_far(&bpf.maps, now).calls;
        assert!(then.iter().any(|call| call.name == "read" && call.count > 0), "{then:?}");
        wait_for_reads();
        assert_eq!(collect::so_far(&bpf.maps, now).calls, then);
    }
}

#[test]
fn each_process_is_counted_by_itself() {
    let mut request = shell("cat /etc/passwd; (exec /bin/true); exit 0");
    request.tree = true;
    let Some(outcome) = run_traced(request) else { return };
    let tree = &outcome.collected.tree;
    let names: Vec<_> = tree.iter().map(|process| (process.parent, &*process.name, process.execs)).collect();
    assert_eq!(names, [(None, "sh", 1), (Some(0), "cat", 1), (Some(0), "true", 1)]);
    let mut sum = std::collections::BTreeMap::<&str, (u64, u64, u64, Parts)>::new();
    for call in tree.iter().flat_map(|process| &process.calls) {
        let entry = sum.entry(&call.name).or_default();
        entry.0 += call.count;
        entry.1 += call.errors;
        entry.2 += call.unfinished;
        entry.3 = entry.3.plus(call.parts);
    }
    for call in &outcome.collected.calls {
        assert_eq!(
            sum.get(&*call.name),
            Some(&(call.count, call.errors, call.unfinished, call.parts)),
            "{call:?}"
        );
    }
    let outside = tree.iter().map(|process| process.outside).fold(Parts::default(), Parts::plus);
    assert_eq!(Some(outside), outcome.collected.outside);
    assert!(
        tree.iter().all(|process| process.pid > 0 && process.ended_ns >= Some(process.began_ns)),
        "{tree:?}"
    );
}

#[test]
fn single_calls_are_kept_up_to_a_limit_and_the_rest_is_counted() {
    let mut request = command(&["/bin/cat", "/etc/passwd"]);
    request.events = 1000;
    let Some(all) = run_traced(request.clone()) else { return };
    let calls: u64 = all.collected.calls.iter().map(|call| call.count).sum();
    assert_eq!(all.collected.events.len() as u64, calls);
    assert_eq!(all.collected.events[0].call, "execve");
    assert!(all.collected.events.windows(2).all(|pair| pair[0].began_ns <= pair[1].began_ns));
    let total: u64 = all.collected.events.iter().map(|event| event.parts.total_ns()).sum();
    assert_eq!(total, all.collected.calls.iter().map(|call| call.total_ns).sum::<u64>());
    request.events = 10;
    let Some(some) = run_traced(request) else { return };
    assert_eq!(some.collected.events.len(), 10);
    assert_eq!(some.collected.missed[0].number, calls - 10);
}

#[test]
fn only_what_is_wanted_is_counted() {
    let mut request = command(&["/bin/cat", "/etc/passwd"]);
    // With and without the call that the command begins with.
    for wanted in [&["execve", "openat"][..], &["openat"][..]] {
        request.only = Some(wanted.iter().map(|name| (*name).to_owned()).collect());
        let Some(outcome) = run_traced(request.clone()) else { return };
        let mut names: Vec<_> = outcome.collected.calls.iter().map(|call| &*call.name).collect();
        names.sort_unstable();
        assert_eq!(names, wanted);
        assert_eq!(outcome.collected.outside, None);
    }
}

#[test]
fn many_processes_and_many_threads_are_all_counted() {
    let source = r#"
        #include <pthread.h>
        #include <stdlib.h>
        #include <unistd.h>
        #include <sys/wait.h>
        static pthread_barrier_t all;
        static void *meet(void *n) { pthread_barrier_wait(&all); return 0; }
        int main(int argc, char **argv) {
            int processes = atoi(argv[1]), threads = atoi(argv[2]);
            for (int n = 0; n < processes; n++) { if (!fork()) { getppid(); _exit(0); } wait(0); }
            pthread_t t[threads];
            pthread_barrier_init(&all, 0, threads + 1);
            for (int n = 0; n < threads; n++) pthread_create(&t[n], 0, meet, 0);
            meet(0);
            for (int n = 0; n < threads; n++) pthread_join(t[n], 0);
            return 0;
        }
    "#;
    let with_tree = |request: &mut Request| request.tree = true;
    let Some(outcome) = run_traced_c(source, &["10000", "500"], with_tree) else { return };
    sums_hold(&outcome);
    assert_eq!(outcome.collected.missed, []);
    assert_eq!((outcome.collected.processes, outcome.collected.threads), (10_001, 10_501));
    assert_eq!(outcome.call("getppid").count, 10_000);
    assert_eq!(outcome.call("wait4").count, 10_000);
    assert_eq!(outcome.collected.tree.len(), 10_001);
    assert_eq!(outcome.collected.tree[0].threads, 501);
}

#[test]
fn calls_of_the_32_bit_table_are_counted_by_themselves() {
    if HERE != Architecture::X86_64 {
        return println!("skipped: a program calls by one table here");
    }
    let source = r#"
        int main(void) { long result; for (int n = 0; n < 7; n++) __asm__ volatile("int $0x80" : "=a"(result) : "a"(64)); }
    "#;
    let Some(outcome) = run_traced_c(source, &[], |_| {}) else { return };
    if outcome.ended != Ended::Exit(0) {
        println!("skipped: this kernel has no 32-bit calls");
        return;
    }
    assert_eq!(outcome.count("getppid (32-bit)"), 7);
    assert_eq!(outcome.count("semget"), 0);
}

#[test]
fn the_overhead_of_tracing_is_measured_and_not_counted() {
    let Some(outcome) = run_traced(command(&["/bin/true"])) else { return };
    assert!(outcome.cost.is_some_and(|cost| cost > 0.0), "{:?}", outcome.cost);
    assert!(outcome.others.is_some());
    assert_eq!(outcome.count("getppid"), 0);
}

/// Loads everything that can be requested, also as on a kernel that lacks both the cast and the loop.
#[test]
fn programs_are_accepted_with_and_without_the_functions_of_newer_kernels() {
    use super::super::{Kernel, Maps, Target, attach_all, programs};
    let mut request = command(&["/bin/true"]);
    (request.files, request.tree, request.events) = (true, true, 10);
    let (Ok(maps), Ok(mut kernel)) = (Maps::new(&request), Kernel::here(true)) else {
        println!("skipped: BPF cannot be used here");
        return;
    };
    loop {
        let target = Target {
            kernel,
            maps: maps.for_programs(&kernel),
            only_some: false,
            running: None,
            blocked: None,
        };
        assert_eq!(attach_all(&target).unwrap().len(), programs::attached(&target).len());
        if !kernel.forget_functions() {
            return;
        }
    }
}
