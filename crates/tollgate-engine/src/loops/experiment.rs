//! Experiments: actions that give several measurements each.

use std::{cell::RefCell, rc::Rc};

use crate::loops::runner::{Batch, Order, Runner};
use crate::{loops::context::Context, loops::instance::Instance, machine::clock::Clock, refusal::Result};

/// One action that gives several measurements, such as the time until fork(2) returns and the time until the child has exited.
pub trait Experiment {
    /// Runs it `order.iterations` times. Returns one batch for each question, always in the same order.
    fn run(&mut self, clock: Clock, order: Order) -> Result<Vec<Batch>>;
}

/// An experiment whose questions are instances of one process: a round runs it once for all of them.
#[derive(Clone)]
pub struct Shared {
    key: String,
    latest: Rc<RefCell<Latest>>,
}

struct Latest {
    experiment: Box<dyn Experiment>,
    order: Option<Order>,
    /// Batches that no instance has taken yet.
    answers: Vec<Option<Batch>>,
}

impl Shared {
    /// Returns the experiment with this key in this process, made by `make` on first use. It stays until the process ends.
    pub fn once<E: Experiment + 'static>(
        context: &mut Context,
        key: &str,
        make: impl FnOnce(&mut Context) -> Result<E>,
    ) -> Result<Self> {
        let make = |context: &mut Context| {
            let latest = Latest { experiment: Box::new(make(context)?), order: None, answers: Vec::new() };
            Ok(Self { key: key.to_owned(), latest: Rc::new(RefCell::new(latest)) })
        };
        context.shared_while(key, |_| true, make)
    }

    /// Returns the instance of question number `which`. All instances of an experiment are due in the same rounds.
    pub fn question(&self, which: usize) -> Instance {
        let question = Question { latest: Rc::clone(&self.latest), which };
        let mut instance = Instance::new(question);
        instance.ready.experiment = Some(self.key.clone());
        instance
    }
}

struct Question {
    latest: Rc<RefCell<Latest>>,
    which: usize,
}

impl Runner for Question {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        let mut latest = self.latest.borrow_mut();
        if latest.order != Some(order) || latest.answers.get(self.which).is_none_or(Option::is_none) {
            latest.order = None;
            let answers = latest.experiment.run(clock, order)?;
            latest.answers = answers.into_iter().map(Some).collect();
            latest.order = Some(order);
        }
        let answer = latest.answers.get_mut(self.which).and_then(Option::take);
        answer.ok_or_else(|| fail!("the experiment has no such measurement"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how often it ran.
    struct Counts(u64);

    impl Experiment for Counts {
        fn run(&mut self, _: Clock, _: Order) -> Result<Vec<Batch>> {
            self.0 += 1;
            Ok(vec![Batch::new(self.0, 0, true); 2])
        }
    }

    #[test]
    fn an_experiment_runs_once_for_all_questions_and_again_for_a_repeated_one() {
        let mut context = Context::here();
        let mut shared = || Shared::once(&mut context, "counts", |_| Ok(Counts(0))).expect("made");
        let (mut first, mut second) = (shared().question(0), shared().question(1));
        let ask = |instance: &mut Instance, iterations| {
            instance.runner.batch(Clock::Kernel, Order::new(iterations)).expect("answers").work
        };
        assert_eq!((ask(&mut first, 1), ask(&mut second, 1)), (1, 1));
        assert_eq!((ask(&mut second, 1), ask(&mut first, 1)), (2, 2));
        assert_eq!((ask(&mut first, 1), ask(&mut first, 1), ask(&mut second, 1)), (3, 4, 4));
        // Another number of iterations needs another run.
        assert_eq!((ask(&mut first, 1), ask(&mut second, 7)), (5, 6));
        let order = Order::new(1);
        assert!(shared().question(2).runner.batch(Clock::Kernel, order).is_err());
    }
}
