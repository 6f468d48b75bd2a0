//! Calls that a seccomp(2) filter stops: their entry is not seen.

use tollgate_arch::architecture::{Architecture, HERE};
use tollgate_model::traced::{Call, Ended};

use super::counts::{compiled, same_but};
use super::harness::{Outcome, run_traced_c};
use super::truths::sums_hold;
use crate::request::Request;

/// A filter answers getppid(2) three times, twice in a child and once in a thread. The first argument says how. The second
/// one chooses the call: 64-bit by default, of the 32-bit table with `compat`, of the x32 ABI with `x32`.
const STOPPED: &str = r#"
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define X32 0x40000000
static const char *table = "";
static void handler(int signal, siginfo_t *info, void *context) {}
static void call(int times) {
    while (times--) {
        long result = 64;
#ifdef __x86_64__
        if (!strcmp(table, "compat")) asm volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
        else
#endif
            syscall(!strcmp(table, "x32") ? X32 | SYS_getppid : SYS_getppid);
    }
}
static void *calls(void *none) { call(1); return 0; }
/// Answers this many calls with an error, and lets one more pass.
static void answer(int listener, int times) {
    for (; times >= 0; times--) {
        struct seccomp_notif asked;
        struct seccomp_notif_resp answer;
        memset(&asked, 0, sizeof asked);
        memset(&answer, 0, sizeof answer);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked)) _exit(2);
        answer.id = asked.id;
        answer.error = times ? -13 : 0;
        answer.flags = times ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer)) _exit(3);
    }
    _exit(0);
}
int main(int argc, char **argv) {
    char kind = argv[1][0];
    unsigned action = kind == 'e' ? SECCOMP_RET_ERRNO | 1 : kind == 'z' ? SECCOMP_RET_ERRNO : kind == 't' ? SECCOMP_RET_TRAP
        : kind == 'n' ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_KILL_PROCESS;
    if (argc > 2) table = argv[2];
    struct sigaction act = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
    if (kind == 't') sigaction(SIGSYS, &act, 0);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, X32 | SYS_getppid, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, strcmp(table, "compat") ? -1 : 64, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { 6, code };
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int flags = kind == 'n' ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
    int listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (listener < 0) return 42;
    if (kind == 'n') {
        if (!fork()) answer(listener, 6);
        call(1);
    }
    call(3);
    if (!fork()) { call(2); _exit(0); }
    wait(0);
    pthread_t thread;
    pthread_create(&thread, 0, calls, 0);
    pthread_join(thread, 0);
    if (kind == 'n') wait(0);
    return 0;
}
"#;

/// Traces it; prints a note and returns `None` if that is not possible or this kernel has no such filter.
fn traced(arguments: &[&str], ask: impl FnOnce(&mut Request)) -> Option<Outcome> {
    let outcome = run_traced_c(STOPPED, arguments, ask)?;
    if outcome.ended == Ended::Exit(42) {
        println!("skipped: this kernel refuses such a filter");
        return None;
    }
    assert_eq!(outcome.collected.missed, []);
    Some(outcome)
}

fn figures(call: &Call) -> (u64, u64, u64) {
    (call.count, call.errors, call.stopped)
}

#[test]
fn counts_of_stopped_calls_are_those_of_strace() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled(directory.path(), STOPPED) else { return };
    for kind in ["errno", "zero", "trap", "notified"] {
        // Whether one thread waits for the other is random.
        same_but(&[&program, kind], &["futex"]);
    }
}

#[test]
fn stopped_calls_are_counted_and_have_no_time() {
    for (kind, errors) in [("errno", 6), ("zero", 0), ("trap", 0)] {
        let Some(outcome) = traced(&[kind], |request| (request.tree, request.events) = (true, 1000)) else {
            return;
        };
        sums_hold(&outcome);
        let getppid = outcome.call("getppid");
        assert_eq!(figures(getppid), (6, errors, 6), "{kind}");
        assert_eq!((getppid.total_ns, getppid.max_ns, getppid.mean_ns()), (0, 0, None), "{getppid:?}");
        let others = outcome.collected.calls.iter().filter(|call| call.name != "getppid");
        assert_eq!(others.map(|call| call.stopped).sum::<u64>(), 0, "{:?}", outcome.collected.calls);
        let of_process = |number: usize| {
            let calls = &outcome.collected.tree[number].calls;
            calls.iter().find(|call| call.name == "getppid").map(figures)
        };
        let child = if errors > 0 { 2 } else { 0 };
        assert_eq!(
            [of_process(0), of_process(1)],
            [Some((4, errors - child, 4)), Some((2, child, 2))],
            "{kind}"
        );
        assert!(
            outcome.collected.events.iter().all(|event| event.call != "getppid"),
            "their time is not known"
        );
    }
}

#[test]
fn calls_that_another_process_answers_are_stopped_and_those_that_it_lets_pass_are_not() {
    let Some(outcome) = traced(&["notified"], |_| {}) else { return };
    sums_hold(&outcome);
    assert_eq!(figures(outcome.call("getppid")), (7, 6, 6));
    assert!(outcome.call("getppid").total_ns > 0);
}

#[test]
fn a_call_for_which_a_filter_kills_is_counted_as_strace_does() {
    let Some(outcome) = traced(&["killed"], |_| {}) else { return };
    assert_eq!(outcome.ended, Ended::Signal(libc::SIGSYS));
    // The call returns while its process is being killed; before Linux 5.16 the process ended in the call.
    assert!(matches!(
        outcome.collected.calls.iter().find(|call| call.name == "getppid").map(figures),
        None | Some((1, 0, 1))
    ));
}

#[test]
fn stopped_calls_are_counted_in_the_table_of_their_number() {
    if HERE != Architecture::X86_64 {
        return println!("skipped: a program calls by one table here");
    }
    for (table, name) in [("compat", "getppid (32-bit)"), ("x32", "getppid (x32)")] {
        let Some(outcome) = traced(&["errno", table], |_| {}) else { return };
        if table == "compat" && outcome.ended == Ended::Signal(libc::SIGSEGV) {
            println!("skipped: this kernel has no 32-bit calls");
            continue;
        }
        assert_eq!(figures(outcome.call(name)), (6, 6, 6), "{table}");
    }
}

#[test]
fn of_calls_that_were_not_asked_for_none_counts_as_stopped() {
    let only = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
    let Some(outcome) = traced(&["errno"], |request| request.only = only(&["getppid", "wait4"])) else {
        return;
    };
    let all: Vec<_> =
        outcome.collected.calls.iter().map(|call| (call.name.as_str(), figures(call))).collect();
    assert_eq!(all, [("wait4", (1, 0, 0)), ("getppid", (6, 6, 6))]);
    let Some(outcome) = traced(&["errno"], |request| request.only = only(&["wait4"])) else { return };
    assert_eq!(outcome.collected.calls.len(), 1, "{:?}", outcome.collected.calls);
}

/// Programs are detached one by one, the one at the entry first.
#[test]
fn calls_of_what_goes_on_when_the_trace_ends_are_not_stopped() {
    let source = r#"
        #include <unistd.h>
        #include <sys/syscall.h>
        int main(void) { if (!fork()) for (int n = 0; n < 3000000; n++) syscall(SYS_getppid); return 0; }
    "#;
    for _ in 0..3 {
        let Some(outcome) = run_traced_c(source, &[], |request| request.linger = std::time::Duration::ZERO)
        else {
            return;
        };
        assert!(
            outcome.count("getppid") > 0 || outcome.collected.threads == 2,
            "{:?}",
            outcome.collected.calls
        );
        let stopped: u64 = outcome.collected.calls.iter().map(|call| call.stopped).sum();
        assert_eq!(stopped, 0, "{:?}", outcome.collected.calls);
    }
}
