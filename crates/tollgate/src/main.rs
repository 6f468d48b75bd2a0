//! tollgate: measures, explains and compares what it costs to cross the boundaries of a machine.
//!
//! The command knows every other part and does none of their work: it parses ([`args`]), calls one
//! function per verb, and prints ([`out`], [`say`], [`table`]). What a run's samples say is put together in one
//! place ([`prices`]), whichever verb shows it, and whether they are to be trusted in another
//! ([`health`]); kept runs are the business of [`store`] alone; and how a program ends is decided in
//! [`failure`] alone.

#![forbid(unsafe_code)]

mod advice;
mod args;
mod causes;
mod compare;
mod complete;
mod decode;
mod doctor;
mod export;
mod facts;
mod failure;
mod figures;
mod health;
mod inspect;
mod lab;
mod list;
mod man;
mod observations;
mod out;
mod pictures;
mod prices;
mod report;
mod run;
mod say;
mod schedules;
mod show;
mod site;
mod store;
mod stored;
mod table;
mod trace;
mod writing;

use std::process::ExitCode;

use args::Verb;

fn main() -> ExitCode {
    // First of all: a bench process is this program too, and must not even parse.
    tollgate_probes::bench::enter_if_told(tollgate_probes::find);
    tollgate_inspect::aslr::enter_if_told();
    let outcome = args::parse().and_then(|verb| match verb {
        Verb::Run(args) => run::run(&args),
        Verb::List(args) => list::list(&args),
        Verb::Show(args) => show::show(&args),
        Verb::Compare(args) => compare::compare(&args),
        Verb::Trace(args) => trace::trace(&args),
        Verb::Schedules(args) => schedules::schedules(&args),
        Verb::Inspect(args) => inspect::inspect(&args),
        Verb::Decode(args) => decode::decode(&args),
        Verb::Lab(args) => lab::lab(&args),
        Verb::Report(args) => report::report(&args),
        Verb::Export(args) => export::export(&args),
        Verb::Store(args) => stored::store(&args),
        Verb::Doctor(args) => doctor::doctor(&args),
        Verb::Completions(args) => complete::completions(&args),
        Verb::Man(args) => man::man(&args),
    });
    failure::conclude(outcome)
}
