//! `tollgate bill`: what sits on the boundaries of this machine, and what each costs a call.

use std::thread;
use std::time::Duration;

use tollgate_engine::interrupt;
use tollgate_environments::{Cleanup, KnobSetting};
use tollgate_inspect::{Machine, bpf, read_facts};
use tollgate_model::{Fact, FactValue, Run};
use tollgate_view::bill::{self, Bill, CALLS, Charge, Runs, WITHOUT_AUDIT, Way};
use tollgate_view::session::Session;

use crate::args::bill::BillArgs;
use crate::args::{Format, RunArgs};
use crate::failure::{Failure, go_on, plainly};
use crate::{out, run, say};

/// Half a minute for each of the suites that the calls are in.
const A_STATE: Duration = Duration::from_secs(150);
/// The kernel times BPF programs for this long.
const STATISTICS: Duration = Duration::from_secs(3);

impl BillArgs {
    /// # Errors
    /// It is interrupted. A cost that cannot be measured is a line of the bill.
    pub fn execute(&self) -> Result<(), Failure> {
        let facts = read_facts(&Machine::here());
        let mut found =
            Bill { charges: bill::charges(&facts), hidden: bill::hidden(&facts), ..Bill::default() };
        let (mut measured, mut counted) = (Vec::new(), Vec::new());
        if self.yes {
            interrupt::install();
            let mut missing = Vec::new();
            let mut keep = |what: &str, made: Result<Vec<Run>, Failure>| {
                made.unwrap_or_else(|failure| {
                    let why = match failure {
                        Failure::Input(why) | Failure::Failed(why) | Failure::NotKept(why) => why,
                        _ => "interrupted".to_owned(),
                    };
                    missing.push(format!("{what}: {why}"));
                    Vec::new()
                })
            };
            if found.charges.iter().any(|charge| charge.way == Way::Statistics) {
                let is_on = facts.get("kernel.bpf_stats").and_then(Fact::value).and_then(FactValue::as_flag);
                match statistics(is_on == Some(true)) {
                    Ok(programs) => found.programs = programs,
                    Err(failure) => drop(keep("the runs of BPF programs", Err(failure))),
                }
                go_on()?;
            }
            if let Some(args) = turns(&found.charges, self.time) {
                measured = keep("what is measured in turns", run::session_of(&args?));
            }
            if let Some(args) = guests(&found.charges) {
                counted = keep("what a guest counts", go_on().and_then(|()| run::session_of(&args?)));
            }
            if measured.is_empty() && counted.is_empty() {
                go_on()?;
            }
            found.missing = missing;
        }
        found.measured = Session::of(&measured).filter(|session| session.members.len() > 1);
        found.counted = Session::of(&counted).filter(|session| session.members.len() > 1);
        match self.format {
            Format::Json => out::print_json(&found.document())?,
            Format::Table if self.yes => out::print(&found.text(out::width()))?,
            Format::Table => out::print(&found.list(out::width()))?,
        }
        if !self.yes && found.charges.iter().any(|charge| !matches!(charge.way, Way::NotKnown { .. })) {
            say::say("--yes measures what can be taken away, as the list says");
        }
        Ok(())
    }
}

/// A session of the calls, with a switch for each thing that commands can take away.
fn turns(charges: &[Charge], time: Option<Duration>) -> Option<Result<RunArgs, Failure>> {
    let mut words = calls();
    for Charge { name, way, .. } in charges {
        if let Way::Measured { without, with, .. } = way {
            words.extend(["--switch", without, with, name].map(str::to_owned));
        }
    }
    let switches = (words.len() - CALLS.len()) / 4;
    // Nothing is taken away, each thing alone, and, if there are several, all of them.
    let states = if switches > 1 { switches + 2 } else { 2 };
    let time = time.unwrap_or(A_STATE * states as u32);
    words.push(format!("--time={}s", time.as_secs()));
    (switches > 0).then(|| RunArgs::of_words(words))
}

/// A session of guests: one with this machine's audit rules, one without each thing that a parameter takes away, and one
/// without all of several.
fn guests(charges: &[Charge]) -> Option<Result<RunArgs, Failure>> {
    let mut parameters: Vec<&str> = Vec::new();
    for parameter in charges.iter().filter_map(|charge| charge.way.parameter()) {
        if !parameters.contains(&parameter) {
            parameters.push(parameter);
        }
    }
    let guest = |name: &str, without: &[&str]| {
        let has_rules = parameters.contains(&WITHOUT_AUDIT) && !without.contains(&WITHOUT_AUDIT);
        let rules = if has_rules { ",audit=loaded" } else { "" };
        format!("--in={name}=vm:exact{rules},append={}", without.join(" "))
    };
    let one = |parameter: &&str| guest(parameter.split('=').next().unwrap_or(parameter), &[parameter]);
    let mut words = calls();
    words.push(guest("all", &[]));
    words.extend(parameters.iter().map(one));
    words.extend((parameters.len() > 1).then(|| guest("none", &parameters)));
    (!parameters.is_empty()).then(|| RunArgs::of_words(words))
}

fn calls() -> Vec<String> {
    CALLS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// The runs of BPF programs while the kernel times them, which adds two readings of the clock to each.
fn statistics(is_on: bool) -> Result<Vec<Runs>, Failure> {
    let programs = || {
        bpf::programs()
            .map_err(|errno| Failure::input(format!("bpf(2): {}", std::io::Error::from_raw_os_error(errno))))
    };
    // It may be on for another tool.
    let mut knob = match is_on {
        true => None,
        false => Some(
            KnobSetting::claim("kernel.bpf_stats_enabled=1")
                .map_err(|error| Failure::input(error.to_string()))?,
        ),
    };
    let lock = knob.as_ref().map(KnobSetting::lock);
    let cleanup = Cleanup::holding(lock.as_slice()).map_err(|error| Failure::input(plainly(&error)))?;
    if let Some(knob) = &mut knob {
        knob.promise(&cleanup)
            .and_then(|()| knob.switch(true))
            .map_err(|error| Failure::input(error.to_string()))?;
    }
    let before = programs()?;
    thread::sleep(STATISTICS);
    let after = programs()?;
    if let Some(knob) = &mut knob {
        knob.switch(false).map_err(|error| Failure::input(error.to_string()))?;
    }
    Ok(bill::runs(&before, &after))
}
