use proptest::prelude::*;

use super::*;
use crate::traced::{Backend, Ended, Idle, TimesFrom};

const MS: u64 = 1_000_000;

fn parts(on_cpu: u64, sleep: u64, disk: u64, runqueue: u64) -> Parts {
    Parts {
        on_cpu_ns: on_cpu * MS,
        sleep_ns: sleep * MS,
        disk_ns: disk * MS,
        runqueue_ns: runqueue * MS,
        unknown_ns: 0,
    }
}

fn call(name: &str, parts: Parts) -> Call {
    Call {
        name: name.to_owned(),
        count: 10,
        errors: 0,
        unfinished: 0,
        stopped: 0,
        total_ns: parts.total_ns(),
        max_ns: parts.total_ns(),
        parts,
        histogram: Vec::new(),
    }
}

fn traced(wall: u64, user: u64, sys: u64, idle: Option<Idle>, calls: Vec<Call>, outside: Parts) -> Traced {
    Traced {
        command: vec!["true".to_owned()],
        ended: Some(Ended::Exit(0)),
        processors: 2,
        user_ns: user * MS,
        sys_ns: sys * MS,
        times_from: TimesFrom::Rusage,
        idle,
        processes: 1,
        threads: 1,
        calls,
        outside: Some(outside),
        ..Traced::new(Backend::Bpf, wall * MS)
    }
}

fn idle(runqueue: u64, disk: u64, sleep: u64) -> Option<Idle> {
    Some(Idle { runqueue_ns: runqueue * MS, disk_ns: disk * MS, sleep_ns: sleep * MS })
}

fn sums(blame: &Blame) -> (i128, i128) {
    let parts: u64 = blame.account.parts().iter().map(|(_, ns)| ns).sum();
    let calls: u64 = blame.calls.iter().map(|call| call.parts.total_ns()).sum();
    (i128::from(parts), i128::from(calls) + i128::from(blame.outside_ns))
}

#[test]
fn of_one_thread_contributions_are_its_own_times() {
    let calls = vec![call("unlink", parts(3, 0, 290, 20)), call("read", parts(10, 5, 0, 0))];
    let one = traced(1028, 660, 50, idle(23, 290, 5), calls, parts(697, 0, 0, 3));
    let blame = Blame::of(&one);
    assert!(is_exact(&one));
    assert!(!is_exact(&Traced { wall_ns: 2 * one.wall_ns, ..one.clone() }), "half of it was not seen");
    assert_eq!(blame.account.busy(), 710 * MS);
    assert_eq!((blame.account.user, blame.account.sys), (660 * MS, 50 * MS));
    let of = |name: &str| blame.calls.iter().find(|call| call.name == name).expect("the call").parts;
    assert_eq!(of("unlink"), parts(3, 0, 290, 20));
    assert_eq!(of("read"), parts(10, 5, 0, 0));
    assert_eq!(blame.outside_ns, 700 * MS as i64);
    assert_eq!(sums(&blame), (1028 * i128::from(MS), 1028 * i128::from(MS)));
}

#[test]
fn the_rest_of_a_short_command_is_unaccounted_and_not_user_or_kernel() {
    // It ran for 5 ms of 8, 4 of which the trace saw in and outside of calls; 1 ms passed around the events.
    let one = traced(8, 3, 1, idle(0, 0, 2), Vec::new(), parts(3, 0, 0, 0));
    let one = Traced { busy_ns: Some(5 * MS), times_from: TimesFrom::Trace, ..one };
    let account = Account {
        real: 8 * MS,
        user: 3 * MS,
        sys: MS,
        sleep: 2 * MS,
        unaccounted: 2 * MS,
        ..Account::default()
    };
    assert_eq!(Account::from_traced(&one), account);
    // Two parallel threads: their time is scaled to the 5 ms in which one of them ran.
    let two = Traced { user_ns: 6 * MS, sys_ns: 2 * MS, ..one.clone() };
    let account = Account { user: 3_750_000, sys: 1_250_000, unaccounted: MS, ..account };
    assert_eq!(Account::from_traced(&two), account);
    let none = Traced { user_ns: 0, sys_ns: 0, ..one };
    assert_eq!(Account::from_traced(&none).unaccounted, 6 * MS);
}

#[test]
fn a_parent_that_waits_for_a_busy_child_contributes_nothing() {
    // The child computes for a second; the parent sleeps in wait4 all the while.
    let calls = vec![call("wait4", parts(0, 1000, 0, 0)), call("write", parts(100, 0, 0, 0))];
    let both = traced(1000, 900, 100, idle(0, 0, 0), calls, parts(900, 0, 0, 0));
    let blame = Blame::of(&both);
    let wait = blame.calls.iter().find(|call| call.name == "wait4").expect("the call");
    assert_eq!(wait.parts.total_ns(), 0);
    assert_eq!(blame.outside_ns, 900 * MS as i64);
}

#[test]
fn a_parent_that_waits_for_a_sleeping_child_contributes_nothing() {
    let of = |processes, calls: &[Call], idle, outside| {
        let one = traced(12, 1, 1, idle, calls.to_vec(), outside);
        let blame = Blame::of(&Traced { processes, ..one });
        blame.calls.iter().map(|call| call.parts).collect::<Vec<_>>()
    };
    let [slept, wait] = [call("clock_nanosleep", parts(0, 10, 0, 0)), call("wait4", parts(0, 10, 0, 1))];
    let both = [slept.clone(), wait.clone()];
    assert_eq!(of(2, &both, idle(1, 0, 10), Parts::default()), [parts(0, 10, 0, 0), parts(0, 0, 0, 1)]);
    // One tracer knows no kinds, another no sleep outside of calls.
    let unknown =
        |call: &Call| Call { parts: Parts { unknown_ns: 10 * MS, ..Parts::default() }, ..call.clone() };
    let unknown = [unknown(&slept), unknown(&wait)];
    assert_eq!(of(2, &unknown, None, parts(2, 0, 0, 0)), [unknown[0].parts, Parts::default()]);
    assert_eq!(of(1, &both[1..], idle(1, 0, 10), Parts::default()), [wait.parts]);
    let short = call("clock_nanosleep", parts(0, 4, 0, 0));
    let both = [short.clone(), wait];
    assert_eq!(of(1, &both, idle(1, 0, 10), Parts::default()), [short.parts, parts(0, 6, 0, 1)]);
    assert_eq!(of(2, &both, idle(1, 0, 10), Parts::default()), [short.parts, parts(0, 0, 0, 1)]);
}

#[test]
fn two_busy_threads_share_the_real_time() {
    let calls = vec![call("read", parts(500, 0, 0, 0))];
    let two = Traced { threads: 2, ..traced(1000, 1400, 600, idle(0, 0, 0), calls, parts(1500, 0, 0, 0)) };
    let blame = Blame::of(&two);
    assert!(!is_exact(&two));
    assert_eq!((blame.account.user, blame.account.sys), (700 * MS, 300 * MS));
    assert_eq!(blame.calls[0].parts.on_cpu_ns, 250 * MS);
    assert_eq!(blame.outside_ns, 750 * MS as i64);
}

#[test]
fn where_idle_time_is_unknown_so_is_the_kind_of_waiting() {
    let unknown = Parts { on_cpu_ns: MS, unknown_ns: 299 * MS, ..Parts::default() };
    let mut serial = traced(1000, 600, 100, None, vec![call("read", unknown)], Parts::default());
    serial.outside = None;
    let blame = Blame::of(&serial);
    assert_eq!(blame.account.unaccounted, 300 * MS);
    assert_eq!(blame.calls[0].parts, Parts { on_cpu_ns: MS, unknown_ns: 300 * MS, ..Parts::default() });
    assert!(!is_exact(&serial));
    // The cause of a call's waiting may be known nevertheless.
    serial.calls.push(call("fsync", parts(0, 0, 299, 0)));
    let blame = Blame::of(&serial);
    assert_eq!(blame.calls[0].parts.disk_ns, 150 * MS);
    assert_eq!(blame.calls[1].parts.unknown_ns, 150 * MS);
    let parallel = traced(1000, 1500, 300, None, Vec::new(), Parts::default());
    assert_eq!(Account::from_traced(&parallel).unaccounted, 0);
    assert_eq!(Account::from_traced(&parallel).busy(), 1000 * MS);
}

#[test]
fn a_difference_is_ranked_by_what_calls_contribute_to_it() {
    let base = traced(
        100,
        60,
        40,
        idle(0, 0, 0),
        vec![call("close", parts(10, 0, 0, 0)), call("open", parts(30, 0, 0, 0))],
        parts(60, 0, 0, 0),
    );
    let other = traced(
        400,
        60,
        140,
        idle(0, 200, 0),
        vec![call("close", parts(100, 0, 200, 0)), call("write", parts(40, 0, 0, 0))],
        parts(60, 0, 0, 0),
    );
    let (base, other) = (Blame::of(&base), Blame::of(&other));
    let ranked = differences(&base, &other);
    let names: Vec<&str> = ranked.iter().map(|difference| difference.name.as_str()).collect();
    assert_eq!(names, ["close", "write", "open"]);
    assert_eq!(ranked[0].total_ns(), 290 * MS as i64);
    assert_eq!((ranked[2].counts, ranked[2].total_ns()), ([10, 0], -30 * MS as i64));
    let explained: i64 = ranked.iter().map(Difference::total_ns).sum();
    assert_eq!(explained + other.outside_ns - base.outside_ns, 300 * MS as i64);
}

#[test]
fn the_median_repetition_is_one_of_them() {
    let of = |wall| traced(wall, 1, 1, idle(0, 0, 0), Vec::new(), Parts::default());
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[of(30), of(10), of(20)]).map(|traced| traced.wall_ns), Some(20 * MS));
    assert_eq!(median(&[of(40), of(10), of(20), of(30)]).map(|traced| traced.wall_ns), Some(20 * MS));
}

/// The published decomposition: Satoru Takeuchi, "WSL vs VM for development work", 2017; real, user, sys and waiting in seconds, and
/// the cores that it was computed with. Its figures have three digits.
#[test]
fn the_rule_gives_the_published_waiting() {
    const PUBLISHED: [(&str, f64, f64, f64, u32, f64, f64); 6] = [
        ("git checkout, wsl", 254.0, 4.70, 95.1, 1, 154.2, 0.05),
        ("git checkout, vm", 5.35, 3.59, 1.78, 1, -0.01, 0.011),
        ("tag file, wsl", 95.2, 48.7, 60.5, 8, 81.5, 0.06),
        ("tag file, vm", 39.9, 48.3, 12.2, 8, 32.3, 0.06),
        ("build, wsl", 281.0, 604.0, 905.0, 8, 92.3, 0.1),
        ("build, vm", 97.6, 605.0, 51.6, 8, 15.5, 0.06),
    ];
    for (what, real, user, sys, cores, wait, digits) in PUBLISHED {
        let mut one = traced(0, 0, 0, None, Vec::new(), Parts::default());
        [one.wall_ns, one.user_ns, one.sys_ns] = [real, user, sys].map(|seconds| (seconds * 1e9) as u64);
        let by_rule = one.wait_by_rule_ns(cores) / 1e9;
        assert!((by_rule - wait).abs() <= digits, "{what}: {by_rule}");
    }
}

fn any_parts() -> impl Strategy<Value = Parts> {
    let ns = || prop_oneof![Just(0), 0..10_000_000_000_u64, any::<u64>()];
    [ns(), ns(), ns(), ns(), ns()].prop_map(|[on_cpu_ns, sleep_ns, disk_ns, runqueue_ns, unknown_ns]| Parts {
        on_cpu_ns,
        sleep_ns,
        disk_ns,
        runqueue_ns,
        unknown_ns,
    })
}

fn any_traced() -> impl Strategy<Value = Traced> {
    let ns = || prop_oneof![Just(0), 0..10_000_000_000_u64, any::<u64>()];
    let idle = prop::option::of([ns(), ns(), ns()]);
    let busy = prop::option::of(ns());
    let calls = prop::collection::vec(("[a-c]", any_parts()), 0..6);
    let outside = prop::option::of(any_parts());
    ([ns(), ns(), ns()], busy, idle, calls, outside).prop_map(
        |([wall, user, sys], busy_ns, idle, calls, outside)| Traced {
            wall_ns: wall,
            user_ns: user,
            sys_ns: sys,
            busy_ns,
            idle: idle.map(|[runqueue_ns, disk_ns, sleep_ns]| Idle { runqueue_ns, disk_ns, sleep_ns }),
            calls: calls.into_iter().map(|(name, parts)| call(&name, parts)).collect(),
            outside,
            ..traced(0, 0, 0, None, Vec::new(), Parts::default())
        },
    )
}

proptest! {
    #[test]
    fn parts_of_any_execution_sum_to_the_real_time(one in any_traced()) {
        let account = Account::from_traced(&one);
        let sum: u128 = account.parts().iter().map(|(_, ns)| u128::from(*ns)).sum();
        prop_assert_eq!(sum, u128::from(one.wall_ns));
        let blame = Blame::of(&one);
        let fits = one.wall_ns < i64::MAX as u64 && one.calls.len() < 2;
        if fits {
            prop_assert_eq!(sums(&blame).1, i128::from(one.wall_ns));
        }
    }

    #[test]
    fn any_two_executions_are_compared(base in any_traced(), other in any_traced()) {
        let ranked = differences(&Blame::of(&base), &Blame::of(&other));
        let sizes: Vec<u64> = ranked.iter().map(|row| row.total_ns().unsigned_abs()).collect();
        prop_assert!(sizes.windows(2).all(|pair| pair[0] >= pair[1]));
    }
}
