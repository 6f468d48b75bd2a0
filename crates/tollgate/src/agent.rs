//! `tollgate agent`: this program in an environment of a session. It measures as the coordinator asks, on standard input and output.

use std::cell::RefCell;

use tollgate_engine::agent::{Means, Moment, serve};
use tollgate_environments::Spec;
use tollgate_inspect::Machine;
use tollgate_model::Facts;

use crate::args::session::AgentArgs;
use crate::failure::Failure;
use crate::run;
use crate::storage::Workplace;

/// Serves until standard input ends. It has no handlers of signals: it is to end with what started it.
///
/// # Errors
/// Settings that cannot be had; the status with which the agent ends.
pub fn agent(args: &AgentArgs) -> Result<(), Failure> {
    if let Some(spec) = &args.spec {
        match spec.parse() {
            Ok(Spec::Host(host)) => {
                tollgate_environments::apply(&host).map_err(|error| Failure::input(error.to_string()))?;
            }
            Ok(_) => {
                return Err(Failure::input(format!("--as {spec}: it is no environment of the kind host")));
            }
            Err(error) => return Err(Failure::input(format!("--as {error}"))),
        }
    }
    let machine = Machine::here();
    let workplace = RefCell::new(None);
    let mut storage = || {
        let mut made = workplace.borrow_mut();
        made.get_or_insert_with(|| Workplace::of_agent(args.dir.as_deref())).storage()
    };
    let mut facts = |moment| facts(&machine, moment, workplace.borrow().as_ref());
    let status = serve(Means {
        version: env!("CARGO_PKG_VERSION"),
        find: tollgate_suites::find,
        executes: true,
        facts: &mut facts,
        limits: &|| run::limits(&machine),
        storage: &mut storage,
    });
    match u8::try_from(status) {
        Ok(0) => Ok(()),
        Ok(status) => Err(Failure::Status(status)),
        Err(_) => Err(Failure::Status(2)),
    }
}

fn facts(machine: &Machine, moment: Moment, workplace: Option<&Workplace>) -> Facts {
    match moment {
        Moment::Before => {
            let mut facts = tollgate_inspect::read_facts(machine);
            facts.extend(tollgate_inspect::strain(machine, "before"));
            facts
        }
        Moment::After => {
            let strain = tollgate_inspect::strain(machine, "after").into_iter();
            strain.chain(workplace.map(Workplace::facts).unwrap_or_default()).collect()
        }
    }
}
