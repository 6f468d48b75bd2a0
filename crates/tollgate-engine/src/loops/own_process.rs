//! Instances in a child of a bench process. It holds memory that other instances must not have, or changes itself irreversibly.
//! fork(2) depends on all memory that the process has written, so each amount of memory has a process that writes it once and runs
//! all experiments.

use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::{cell::RefCell, os::fd::AsRawFd, rc::Rc};

use serde::{Deserialize, Serialize};
use tollgate_os::process::{self, Child};

use crate::loops::runner::{Batch, Order, Runner};
use crate::machine::ending::{Ending, signal_name};
use crate::refusal::{Refusal, Result};
use crate::{loops::events, loops::experiment::Experiment, machine::clock::Clock, machine::limits::Quota};

/// A handle of such a process, which ends with its last handle or with the bench process.
#[derive(Clone)]
pub struct OwnProcess(Rc<RefCell<Process>>);

struct Process {
    child: Child,
    orders: PipeWriter,
    answers: BufReader<PipeReader>,
    died: Option<Refusal>,
}

#[derive(Serialize, Deserialize)]
struct Request {
    experiment: usize,
    clock: Clock,
    order: Order,
}

/// One line of JSON. The first answer says that the process is ready.
type Answer = Result<Vec<Batch>>;

impl OwnProcess {
    /// Forks a process. In it `prepare` makes experiments, which then run on request.
    ///
    /// # Errors
    /// If the process cannot be started, or as `prepare` returns it.
    pub fn start(quota: &Quota, prepare: impl FnOnce() -> Result<Vec<Box<dyn Experiment>>>) -> Result<Self> {
        let no_process = |error: io::Error| quota.refused("a process for the instance", &error);
        let (orders_out, orders) = io::pipe().map_err(no_process)?;
        let (answers, answers_in) = io::pipe().map_err(no_process)?;
        // During the fork, no other thread of this process holds a lock, except those that the C library makes safe across
        // fork. The child closes its copies of the parent's ends, and so sees when the parent closes them.
        let (orders_fd, answers_fd) = (orders.as_raw_fd(), answers.as_raw_fd());
        let child = process::fork_bound(|| {
            // SAFETY: the descriptors are this copy's own, and nothing in it uses them.
            unsafe {
                libc::close(orders_fd);
                libc::close(answers_fd);
            }
            serve(prepare, orders_out, answers_in);
            0
        });
        let child = child.map_err(no_process)?;
        let mut process = Process { child, orders, answers: BufReader::new(answers), died: None };
        process.receive()?;
        Ok(Self(Rc::new(RefCell::new(process))))
    }

    /// Whether the process is not known to have ended.
    pub fn answers(&self) -> bool {
        self.0.borrow().died.is_none()
    }

    /// Returns experiment number `which` of those that `prepare` returned. As a runner, it gives only its first measurement.
    pub fn experiment(&self, which: usize) -> impl Experiment + Runner + use<> {
        Remote { own: self.clone(), which }
    }
}

fn serve(
    prepare: impl FnOnce() -> Result<Vec<Box<dyn Experiment>>>,
    orders: PipeReader,
    mut answers: PipeWriter,
) {
    let mut answer = |answer: &Answer| {
        let Ok(mut line) = serde_json::to_vec(answer) else { return false };
        line.push(b'\n');
        answers.write_all(&line).is_ok()
    };
    let mut experiments = match prepare() {
        Ok(experiments) => experiments,
        Err(refusal) => {
            answer(&Err(refusal));
            return;
        }
    };
    if !answer(&Ok(Vec::new())) {
        return;
    }
    for line in BufReader::new(orders).lines().map_while(Result::ok) {
        let Ok(Request { experiment, clock, order }) = serde_json::from_str(&line) else { return };
        let batches = match experiments.get_mut(experiment) {
            Some(experiment) => events::around(|| experiment.run(clock, order)),
            None => Err(fail!("no such experiment")),
        };
        if !answer(&batches) {
            return;
        }
    }
}

struct Remote {
    own: OwnProcess,
    which: usize,
}

impl Experiment for Remote {
    fn run(&mut self, clock: Clock, order: Order) -> Result<Vec<Batch>> {
        let mut process = self.own.0.borrow_mut();
        let mut line = serde_json::to_vec(&Request { experiment: self.which, clock, order })
            .map_err(|error| Refusal::Fail(error.to_string()))?;
        line.push(b'\n');
        // If the process has ended, `receive` returns the reason.
        let _ = process.orders.write_all(&line);
        process.receive()
    }
}

impl Runner for Remote {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        self.run(clock, order)?.into_iter().next().ok_or_else(|| fail!("its own process returned no batch"))
    }
}

impl Process {
    fn receive(&mut self) -> Answer {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(1..) => serde_json::from_str(&line).unwrap_or_else(|_| Err(self.died())),
            _ => Err(self.died()),
        }
    }

    /// Returns why it stopped answering; the same reason each time.
    fn died(&mut self) -> Refusal {
        let ending = self.end();
        let why = self.died.get_or_insert_with(|| match ending {
            Some(Ending::Killed(libc::SIGSYS)) => {
                skip!("its own process was killed by SIGSYS: a seccomp filter forbids it")
            }
            Some(Ending::Killed(signal)) if signal != libc::SIGKILL => {
                fail!("its own process was killed by {}", signal_name(signal))
            }
            Some(Ending::Exited(code)) => fail!("its own process ended with status {code}"),
            _ => fail!("its own process ended early"),
        });
        why.clone()
    }

    fn end(&mut self) -> Option<Ending> {
        self.child.end().ok().map(Ending::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OwnNumber;

    impl Experiment for OwnNumber {
        fn run(&mut self, _: Clock, order: Order) -> Result<Vec<Batch>> {
            match order.iterations {
                0 => Ok(Vec::new()),
                1 => {
                    let counted = Some(1);
                    Ok(vec![Batch { counted, ..Batch::new(u64::from(std::process::id()), 0, true) }])
                }
                2 => Err(skip!("not twice")),
                // SAFETY: ends this process at once.
                3 => unsafe { libc::_exit(3) },
                // SAFETY: the default action ends this process, as a seccomp filter does.
                _ => Err(Refusal::Fail(unsafe { libc::raise(libc::SIGSYS) }.to_string())),
            }
        }
    }

    fn ask(own: &OwnProcess, iterations: u64) -> Answer {
        own.experiment(0).run(Clock::Kernel, Order::new(iterations))
    }

    #[test]
    fn an_own_process_answers_refuses_and_dies_alone() {
        let own = OwnProcess::start(&Quota::default(), || Ok(vec![Box::new(OwnNumber)])).expect("a process");
        let batches = ask(&own, 1).expect("answers");
        assert_eq!(batches[0].work, u64::try_from(own.0.borrow().child.pid()).expect("a number"));
        let mut runner = own.experiment(0);
        // Other work may have had its processor in one of the two.
        let of_runner = runner.batch(Clock::Kernel, Order::new(1)).expect("an answer");
        assert_eq!((of_runner.work, of_runner.counted), (batches[0].work, batches[0].counted));
        assert_eq!(
            runner.batch(Clock::Kernel, Order::new(0)),
            Err(fail!("its own process returned no batch"))
        );
        assert_eq!(ask(&own, 2), Err(skip!("not twice")));
        assert_eq!(ask(&own, 3), Err(fail!("its own process ended with status 3")));
        assert!(matches!(ask(&own, 1), Err(Refusal::Fail(_))));
    }

    #[test]
    fn death_by_sigsys_is_a_skip() {
        let own = OwnProcess::start(&Quota::default(), || Ok(vec![Box::new(OwnNumber)])).expect("a process");
        let Err(Refusal::Skip(why)) = ask(&own, 4) else { panic!("a filter is a limit of the environment") };
        assert!(why.contains("SIGSYS"), "{why}");
        assert_eq!(ask(&own, 1), Err(Refusal::Skip(why)));
        assert!(!own.answers());
    }

    #[test]
    fn a_failed_preparation_returns_its_reason() {
        let refused = OwnProcess::start(&Quota::default(), || Err(skip!("no memory for it")));
        assert_eq!(refused.err(), Some(skip!("no memory for it")));
    }

    #[test]
    fn it_ends_with_its_handle() {
        let own = OwnProcess::start(&Quota::default(), || Ok(vec![Box::new(OwnNumber)])).expect("a process");
        let pid = own.0.borrow().child.pid();
        drop(own);
        assert!(process::is_gone(pid));
    }
}
