//! Mutual exclusion of each lock under stress.

use std::time::{Duration, Instant};

use super::*;
use crate::processes::raw::tests::{comes_to_threads, in_a_process_of_its_own, threads};
use crate::testing::{patiently, pinned, ready};
use tollgate_os::affinity;

/// A team on the last allowed processor; this process stays there.
fn together() -> Team {
    let home = pinned();
    Team::new(Reach::On(home), &[home], Quota::default()).expect("a team")
}

/// Runs rounds for this time, or until a violation. Returns `None` if the environment lacks a requirement.
fn stress(team: &mut Team, method: Method, time: Duration) -> Option<Outcome> {
    let takes = if matches!(method, Method::Semop | Method::Eventfd) { 1 << 12 } else { 1 << 14 };
    let (began, mut all) = (Instant::now(), Outcome::default());
    while began.elapsed() < time && all.violations == 0 {
        all.add(&ready(method, team.round(method, takes))?);
    }
    Some(all)
}

/// One in 700 forced switches lets two in, but in one team of some hundreds not one of 23,000 did.
#[test]
fn a_load_and_a_store_let_two_in() {
    in_a_process_of_its_own(|| {
        for _ in 0..60 {
            let Some(all) = stress(&mut together(), Method::Plain, Duration::from_secs(10)) else { return };
            if all.violations > 0 {
                return;
            }
            eprintln!("{all:?}");
        }
        panic!("none in ten minutes");
    });
}

#[test]
fn no_lock_lets_two_in_however_often_its_users_are_switched_out() {
    // One process for each lock, because a semaphore has its own namespace.
    for method in Method::LOCKS {
        in_a_process_of_its_own(|| {
            let time = Duration::from_millis(400);
            let Some(all) = stress(&mut together(), method, time) else { return };
            assert_eq!(all.violations, 0, "{}: {all:?}", method.name());
            assert!(all.forced > 0, "{}: {all:?}", method.name());
            assert!(all.preempted <= all.forced && all.takes >= 1 << 12, "{}: {all:?}", method.name());
            let restarts = matches!(method, Method::Rseq | Method::RseqCpu);
            assert!(all.restarted == 0 || restarts, "{}: {all:?}", method.name());
        });
    }
}

#[test]
fn restartable_sequences_are_restarted() {
    in_a_process_of_its_own(|| {
        let mut team = together();
        for _ in 0..60 {
            let Some(all) = stress(&mut team, Method::Rseq, Duration::from_millis(500)) else { return };
            if all.restarted > 0 {
                return;
            }
        }
        panic!("none in half a minute");
    });
}

/// All allowed processors, with this process pinned to the first; `None` if there is only one.
fn processors() -> Option<Vec<usize>> {
    let all = cpu::allowed();
    if all.len() < 2 {
        eprintln!("skipped: one processor only");
        return None;
    }
    cpu::pin(all[0]).expect("an allowed processor");
    Some(all)
}

#[test]
fn a_sequence_that_does_not_look_where_it_runs_lets_two_in_from_two_processors() {
    in_a_process_of_its_own(|| {
        let Some(all) = processors() else { return };
        let mut team = Team::new(Reach::Anywhere, &all[..2], Quota::default()).expect("a team");
        let time = Duration::from_secs(30);
        let Some(all) = stress(&mut team, Method::Rseq, time) else { return };
        assert!(all.violations > 0, "{all:?}");
    });
}

#[test]
fn mutual_exclusion_holds_under_migration() {
    for method in [Method::RseqCpu, Method::Xchg, Method::Cmpxchg, Method::Lamport] {
        in_a_process_of_its_own(|| {
            let Some(all) = processors() else { return };
            let mut team = Team::new(Reach::Anywhere, &all[..2], Quota::default()).expect("a team");
            let main = cpu::own_thread();
            if stress(&mut team, method, Duration::from_millis(1)).is_none() {
                return;
            }
            let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
            let mover = {
                let over = Arc::clone(&over);
                thread::spawn(move || move_others(main, &all[..2], &over))
            };
            let outcome = stress(&mut team, method, Duration::from_millis(600));
            over.store(true, Ordering::SeqCst);
            let moves = mover.join().expect("no panic");
            let outcome = outcome.expect("as before");
            assert_eq!(outcome.violations, 0, "{}: {outcome:?}", method.name());
            assert!(moves > 0 && outcome.takes > 0, "{}: {outcome:?}, {moves} moves", method.name());
        });
    }
}

/// Migrates all threads of this process except `main` and the calling one between processors. Returns the number of
/// migrations.
fn move_others(main: libc::pid_t, to: &[usize], over: &std::sync::atomic::AtomicBool) -> u64 {
    let mut random = Random::new(1);
    let mut moves = 0;
    while !over.load(Ordering::SeqCst) {
        let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return moves };
        let threads = threads.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        for thread in threads.filter(|&thread| thread != main && thread != cpu::own_thread()) {
            let to = to[random.next_u64() as usize % to.len()];
            moves += u64::from(affinity::pin(thread, &[to]).is_ok());
            thread::sleep(Duration::from_micros(50));
        }
    }
    moves
}

#[test]
fn single_processor_locks_are_refused_elsewhere() {
    in_a_process_of_its_own(|| {
        for method in [Method::Plain, Method::Rseq, Method::LamportUp] {
            let refused = Lock::new(method, Reach::Anywhere, 2).err();
            let Some(Refusal::Skip(why)) = refused else { panic!("{refused:?}") };
            assert!(why.starts_with("it is safe on one processor only: "), "{why}");
        }
        let all = cpu::allowed();
        let home = *all.last().expect("a processor");
        let lock = Lock::new(Method::Rseq, Reach::On(home), 2).expect("a lock");
        if all.len() > 1 {
            let refused = lock.join(1).err();
            let Some(Refusal::Skip(why)) = refused else { panic!("{refused:?}") };
            assert!(why.contains("not pinned to one"), "{why}");
            cpu::pin(all[0]).expect("an allowed processor");
            assert!(lock.join(1).is_err(), "bound to another");
        }
        cpu::pin(home).expect("an allowed processor");
        if let Err(why) = lock.join(1) {
            eprintln!("skipped: {why:?}");
        }
    });
}

#[test]
fn threads_sleep_between_rounds_and_go_with_their_team() {
    in_a_process_of_its_own(|| {
        let Some(before) = threads() else { return eprintln!("skipped: no /proc") };
        let mut team = together();
        if stress(&mut team, Method::Xchg, Duration::from_millis(1)).is_none() {
            return;
        }
        assert_eq!(threads(), Some(before + WORKERS));
        let used = cpu::switches_of_process;
        // A thread may not sleep yet. Four active timers would force thousands of switches, again and again.
        patiently("200 ms in which the threads sleep", || {
            let switches = used();
            thread::sleep(Duration::from_millis(200));
            (used() - switches < 20).then_some(())
        });
        drop(team);
        comes_to_threads(before, "the team has ended");
    });
}

#[test]
fn a_violation_fails_the_batch_and_a_lock_is_measured() {
    in_a_process_of_its_own(|| {
        let mut team = together();
        if stress(&mut team, Method::Xchg, Duration::from_millis(1)).is_none() {
            return;
        }
        let batch = team.batch(Clock::Kernel, Method::Xchg, 1 << 15).expect("a batch");
        assert!(batch.work > batch.empty, "{batch:?}");
        let until = Instant::now() + Duration::from_secs(30);
        while Instant::now() < until {
            if let Err(why) = team.batch(Clock::Kernel, Method::Plain, 1 << 15) {
                let Refusal::Fail(why) = why else { panic!("{why:?}") };
                assert!(why.starts_with("mutual exclusion violated "), "{why}");
                return;
            }
        }
        panic!("no batch failed in half a minute");
    });
}

#[test]
#[ignore = "takes two minutes; to be run by hand: --ignored --nocapture a_table"]
fn a_table_of_ten_seconds_each() {
    println!(
        "{:<17} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "by", "acquired", "violations", "switches", "preempted", "restarted", "failed"
    );
    for method in [Method::Plain].into_iter().chain(Method::LOCKS) {
        in_a_process_of_its_own(|| {
            let mut team = together();
            let (began, mut all) = (Instant::now(), Outcome::default());
            while began.elapsed() < Duration::from_secs(10) {
                all.add(&team.round(method, 1 << 14).expect("a round"));
            }
            let Outcome { takes, violations, forced, preempted, restarted, in_vain } = all;
            println!(
                "{:<17} {takes:>12} {violations:>10} {forced:>10} {preempted:>10} {restarted:>10} {in_vain:>10}",
                method.name()
            );
            assert!(violations == 0 || method == Method::Plain, "{}", method.name());
        });
    }
}
