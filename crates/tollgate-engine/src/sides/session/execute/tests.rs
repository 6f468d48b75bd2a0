//! Commands over pipes: agents in forks of the test's program, with an executor that executes nothing.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Instant;

use tollgate_model::traced::Ended;
use tollgate_os::shared::Shared;

use super::*;
use crate::sides::session::tests::{child, find, side, side_of};

/// Set when an agent begins to `wait`.
static WAITS: OnceLock<Shared<1>> = OnceLock::new();

/// An executor of these words: `say`, `wait` (until it is stopped), `die` (the agent does), `fail`, `long` (a text).
pub struct Fake;

impl Executor for Fake {
    fn execute(&mut self, order: &Order, tick: &mut dyn FnMut()) -> Result<Execution, Halt> {
        let said = match order.words.first().map_or("", String::as_str) {
            "die" => std::process::exit(3),
            "fail" => return Err(Halt::Lost("no\nprocess".to_owned())),
            "wait" => {
                if let Some(waits) = WAITS.get() {
                    waits[0].store(1, Release);
                }
                while interrupt::requested().is_none() {
                    std::thread::sleep(Duration::from_millis(5));
                    tick();
                }
                return Err(Halt::Run(BenchError::Interrupted(libc::SIGTERM)));
            }
            "slow" => {
                let began = Instant::now();
                while began.elapsed() < Duration::from_millis(600) {
                    std::thread::sleep(Duration::from_millis(5));
                    tick();
                }
                String::new()
            }
            "long" => "é".repeat(100_000),
            _ => format!("{:?} {:?}", order.words, order.output),
        };
        let end = End::Ended(Ended::Exit(0));
        let (traced, memory) = (None, None);
        Ok(Execution {
            end,
            wall_ns: 7,
            user_ns: 3,
            sys_ns: 2,
            memory,
            faults: 0,
            ticks: 0,
            switches: 0,
            traced,
            said,
            left: 0,
        })
    }

    fn cool(&mut self, files: &[String]) -> Result<Cooled, Halt> {
        let stayed = vec!["/lib/libc.so.6".to_owned(); 9];
        Ok(Cooled { files: files.len() as u32, stayed, certified_by: Some("mincore(2)".to_owned()) })
    }
}

fn order(word: &str) -> Order {
    Order { words: vec![word.to_owned()], output: Output::Inherit, ..Order::default() }
}

#[test]
fn commands_are_executed_in_each_environment_that_there_is() {
    let mut sides = [
        side_of(find),
        side("absent", || Err("not installed".to_owned())),
        side_of(find),
        side("dies", || Ok(crate::sides::session::tests::link(child(|| 0)))),
    ];
    let mut heard = Vec::new();
    let found = execute_in(&mut sides, &mut |what| heard.push(what), &mut |executors| {
        assert_eq!(executors.len(), 4);
        for at in [2, 0, 2] {
            let execution = executors[at].execute(&order("say"), &mut || {}).expect("executed");
            // The agent's own output is not the command's.
            assert_eq!(execution.said, "[\"say\"] Pipe");
        }
        let Err(Halt::Lost(why)) = executors[1].execute(&order("say"), &mut || {}) else { unreachable!() };
        assert_eq!(why, "not installed");
        assert!(matches!(executors[3].cool(&[]), Err(Halt::Lost(_))));
        let long = executors[0].execute(&order("long"), &mut || {}).expect("executed");
        assert_eq!(long.said.len(), MOST_SAID);
        let files = ["/etc/passwd".to_owned(), "/etc/group".to_owned()];
        let cooled = executors[0].cool(&files).expect("cooled");
        assert_eq!((cooled.files, cooled.stayed.len()), (2, 2));
        let mut ticks = 0;
        executors[0].execute(&order("slow"), &mut || ticks += 1).expect("executed");
        assert!(ticks > 0);
        let Err(Halt::Lost(why)) = executors[2].execute(&order("die"), &mut || {}) else { unreachable!() };
        assert_eq!(why, "its agent ended");
        assert!(matches!(executors[2].execute(&order("say"), &mut || {}), Err(Halt::Lost(_))));
        executors[0].execute(&order("say"), &mut || {}).expect("the others go on");
        Ok(())
    });
    let found = found.expect("two environments");
    let lost: Vec<bool> = found.iter().map(|found| found.lost.is_some()).collect();
    assert_eq!(lost, [false, true, true, true]);
    assert!(found[0].facts.contains_key("kernel.release") && found[0].findings.interrupted.is_none());
    assert!(
        heard.contains(&"starting host".to_owned()) && heard.contains(&"absent: not installed".to_owned())
    );
}

#[test]
fn a_command_that_is_not_waited_for_is_stopped() {
    let waits = WAITS.get_or_init(|| Shared::new().expect("memory"));
    let began = Instant::now();
    execute_in(&mut [side_of(find)], &mut |_| {}, &mut |executors| {
        // As after an interruption: the answer to the first request is not taken for that to the second.
        let Err(Halt::Lost(why)) = executors[0].execute(&order("fail"), &mut || {}) else { unreachable!() };
        assert_eq!(why, "no process");
        Ok(())
    })
    .expect("one environment");
    let mut sides = [side_of(find)];
    let mut agent = AgentSide::new(&mut sides[0], Vec::new());
    agent.start().expect("started");
    let send = |side: &mut AgentSide<'_, '_>, number, word| {
        side.send(&Request::Execute { number, order: Box::new(order(word)) }, MARGIN).expect("sent");
    };
    send(&mut agent, 1, "wait");
    while waits[0].load(Acquire) == 0 {
        assert!(began.elapsed() < Duration::from_secs(300), "it does not wait");
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut remote = RemoteExecutor { number: 1, ..RemoteExecutor::new(&mut agent, LATE) };
    let second = remote.execute(&order("say"), &mut || {}).expect("executed");
    assert_eq!(second.said, "[\"say\"] Pipe");
    // A late answer.
    send(&mut agent, 1, "long");
    let mut remote = RemoteExecutor { number: 2, ..RemoteExecutor::new(&mut agent, LATE) };
    assert_eq!(remote.execute(&order("say"), &mut || {}).expect("executed").said, "[\"say\"] Pipe");
    // The end of the line ends the current work.
    send(&mut agent, 9, "wait");
    drop(agent);
    drop(sides);
    assert!(began.elapsed() < Duration::from_secs(300));
}

#[test]
fn without_an_environment_there_is_no_work() {
    let nothing = &mut |_: &mut [&mut dyn Executor]| unreachable!("no environment");
    let mut absent = [side("absent", || Err("not installed".to_owned()))];
    let error = execute_in(&mut absent, &mut |_| {}, nothing).expect_err("absent");
    assert_eq!(error.to_string(), "nothing was measured: absent: not installed");
    let mut counting = side_of(find);
    counting.is_counting = true;
    let error = execute_in(&mut [counting], &mut |_| {}, nothing).expect_err("no times");
    assert_eq!(
        error.to_string(),
        "nothing was measured: host: QEMU's translator executes it, so its times are not those of hardware; vm:exact counts instructions"
    );
}

#[test]
fn the_error_of_the_work_is_that_of_the_session() {
    let failed = execute_in(&mut [side_of(find)], &mut |_| {}, &mut |_| {
        Err(BenchError::NoProcess(std::io::Error::other("too many")))
    });
    assert!(matches!(failed, Err(BenchError::NoProcess(_))));
    let stopped =
        execute_in(&mut [side_of(find)], &mut |_| {}, &mut |_| Err(BenchError::Interrupted(libc::SIGINT)));
    assert_eq!(stopped.expect("what there is")[0].findings.interrupted, Some(libc::SIGINT));
}
