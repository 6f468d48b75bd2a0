//! `tollgate agent`: this program in an environment of a session. It measures as the coordinator asks, on standard input and output.

use std::cell::RefCell;
use std::path::Path;

use tollgate_engine::agent::{Means, Moment, serve};
use tollgate_engine::versus::{Cooled, Execution, Executor, Halt, Order, counted};
use tollgate_environments::{Spec, SpecError, inside};
use tollgate_inspect::Machine;
use tollgate_model::{Fact, Facts};
use tollgate_suites::command::Here;

use crate::args::session::AgentArgs;
use crate::failure::Failure;
use crate::run;
use crate::storage::Workplace;

const RAM_DEVICE: &str = "ram.device";

impl AgentArgs {
    /// # Errors
    /// Settings that cannot be made; the status with which the agent ends.
    pub fn execute(&self) -> Result<(), Failure> {
        if let Some(spec) = &self.spec {
            let named: Spec =
                spec.parse().map_err(|error: SpecError| Failure::input(format!("--as {error}")))?;
            let applied = named.apply().ok_or_else(|| {
                Failure::input(format!("--as {spec}: it is not an environment of kind host"))
            })?;
            applied.map_err(|error| Failure::input(error.to_string()))?;
        }
        let machine = Machine::here();
        let on_ram = self.on.as_ref().map(Workplace::of_agent_on_ram);
        let workplace = RefCell::new(on_ram);
        let mut storage = || {
            let mut made = workplace.borrow_mut();
            made.get_or_insert_with(|| Workplace::of_agent(self.dir.as_deref())).storage()
        };
        // Guests that have executed commands are asked one after the other.
        let mut ahead = Path::new(counted::FOUND).exists().then(|| before(&machine));
        let mut facts = |moment| match moment {
            Moment::Before => ahead.take().unwrap_or_else(|| before(&machine)),
            // Nothing is measured after the last facts.
            Moment::After => after(&machine, workplace.take(), self.on.is_some()),
        };
        let mut here = Here::new();
        let traced = counted::traced_ahead();
        let traced = traced.map(|order| (here.execute(&order, &mut || {}), order));
        let mut executor = Ahead { here, traced };
        let status = serve(Means {
            version: env!("CARGO_PKG_VERSION"),
            find: tollgate_suites::find,
            executes: true,
            facts: &mut facts,
            limits: &|| run::limits(&machine),
            storage: &mut storage,
            executor: &mut executor,
        });
        match u8::try_from(status) {
            Ok(0) => Ok(()),
            Ok(status) => Err(Failure::Status(status)),
            Err(_) => Err(Failure::Status(2)),
        }
    }
}

/// Executes commands, and answers for one that was executed already.
struct Ahead {
    here: Here,
    traced: Option<(Result<Execution, Halt>, Order)>,
}

impl Executor for Ahead {
    fn execute(&mut self, order: &Order, tick: &mut dyn FnMut()) -> Result<Execution, Halt> {
        let ahead = self.traced.take_if(|(_, traced)| traced == order);
        ahead.map_or_else(|| self.here.execute(order, tick), |(executed, _)| executed)
    }

    fn cool(&mut self, files: &[String]) -> Result<Cooled, Halt> {
        self.here.cool(files)
    }
}

fn before(machine: &Machine) -> Facts {
    let mut facts = tollgate_inspect::read_facts(machine);
    facts.extend(tollgate_inspect::strain(machine, "before"));
    facts
}

fn after(machine: &Machine, workplace: Option<Workplace>, is_on_ram: bool) -> Facts {
    let mut facts: Facts = tollgate_inspect::strain(machine, "after").into_iter().collect();
    facts.extend(inside::programs());
    let Some(workplace) = workplace else {
        // A guest's disk has facts even if QEMU's translator measures nothing on it.
        facts.extend(inside::disk().into_iter().flat_map(|disk| tollgate_inspect::storage(machine, &disk)));
        return facts;
    };
    facts.extend(workplace.facts());
    if !is_on_ram {
        return facts;
    }
    match workplace.storage() {
        Err(why) => facts.extend([(RAM_DEVICE.to_owned(), Fact::unreadable(why))]),
        Ok(_) => {
            drop(workplace);
            facts.extend([("ram.left".to_owned(), tollgate_environments::left())]);
        }
    }
    facts
}
