//! Tests of environments that fail to start.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::cases::benchmark::{Benchmark, Kind, PLAIN, Suite};
use crate::sides::session::Link;
use crate::sides::session::life::About;
use crate::sides::session::tests::{alone, side};

static START: Benchmark =
    Benchmark { name: "some/start", kind: Kind::Environment(|_| Some(Aspect::Start)), ..PLAIN };
static SHELL: Benchmark =
    Benchmark { name: "some/shell", kind: Kind::Environment(|_| Some(Aspect::StartToShell)), ..PLAIN };
static SUITE: Suite = Suite { name: "some", about: "", benchmarks: &[&START, &SHELL] };

/// The started sides, in order.
type Told = Rc<RefCell<Vec<usize>>>;

struct Fails(&'static str);

impl Life for Fails {
    fn start(&mut self, _: &mut dyn FnMut()) -> Result<Link, String> {
        Err(self.0.to_owned())
    }

    fn start_shell(&mut self, _: &mut dyn FnMut()) -> Result<Link, Refusal> {
        Err(Refusal::Skip("it has no shell".to_owned()))
    }

    fn end(&mut self) {}

    fn about(&self) -> About {
        About::default()
    }
}

#[test]
fn orders_and_documents_are_as_recorded() {
    let held = || {
        crate::recorded::hold("starts", |seed| {
            let told = Told::default();
            let mut sides: Vec<_> = (0..4)
                .map(|at| {
                    let told = told.clone();
                    let mut side = side("some", || Err("no agent".to_owned()));
                    side.wake = Some(Box::new(move || {
                        told.borrow_mut().push(at);
                        Ok(())
                    }));
                    if at == 3 {
                        side.life = Some(Box::new(Fails("it does not start")));
                    }
                    side
                })
                .collect();
            let mut sides: Vec<AgentSide> =
                sides.iter_mut().map(|side| AgentSide::new(side, vec![])).collect();
            sides.iter_mut().for_each(|side| side.started = 1);
            let cases = SUITE.benchmarks.iter().map(|benchmark| (*benchmark, Default::default())).collect();
            let group = Group { suite: &SUITE, cases };
            let mut starts = Starts::new(&[(&group, Ordinal::default())]);
            let plan = Plan::of_processes(12);
            let deadline = Instant::now() + std::time::Duration::from_secs(3600);
            let mut watch = |_: &crate::cases::run::Progress| {};
            let mut teller = Teller::new(&mut watch, &plan);
            let mut random = Random::new(seed);
            starts.measure(&mut sides, (&plan, deadline), &mut random, &mut teller).expect("measured");
            let of = |at: usize| {
                let measurements = starts.measurements(at, &sides[at], None);
                format!(
                    "{} {:?}\n",
                    serde_json::to_string(&measurements).expect("a document"),
                    sides[at].lost
                )
            };
            let documents = (0..4).map(of).collect::<String>();
            format!("{:?}\n{documents}{:?} {}\n", told.borrow(), starts.facts(), random.next_u64())
        })
    };
    // Strays are ended after each start.
    alone(|| {
        held();
        true
    });
}
