//! `tollgate doctor`: what disturbs measurements on this machine, and the remedies.

use std::time::Duration;

use serde::Serialize;
use tollgate_engine::{Plan, interrupt};
use tollgate_suites::{Extent, Size};

use crate::args::{DoctorArgs, Format};
use crate::failure::{Failure, go_on};
use crate::health::{self, Check, State};
use crate::summary::{BASELINE, Summary};
use crate::table::{Look, Table, paragraph};
use crate::{out, run};

/// Long enough to recognize emulated traps and stolen time.
const LOOK: Duration = Duration::from_secs(2);

/// The result as JSON.
#[derive(Serialize)]
struct Diagnosis {
    fit: bool,
    checks: Vec<Check>,
}

/// Examines the machine: its facts, and a short run of the benchmarks that show emulation.
///
/// # Errors
/// When it is interrupted, or no process can be measured at all.
pub fn doctor(args: &DoctorArgs) -> Result<(), Failure> {
    let cases = [BASELINE, "entry/int80", "entry/vm-exit"].map(str::to_owned);
    let selection = tollgate_suites::select(&cases, Extent::Usual, Size::Small)
        .map_err(|unknown| Failure::input(unknown.to_string()))?;
    interrupt::install();
    let run = run::make(&selection, &Plan::within(LOOK), None, true)?;
    go_on()?;
    let checks = health::checks(&Summary::of(&run));
    let fit = checks.iter().all(|check| check.state != State::Poor);
    match args.format {
        Format::Json => out::print_json(&Diagnosis { fit, checks }),
        Format::Table => out::print(&text(fit, &checks, out::width())),
    }
}

fn text(fit: bool, checks: &[Check], width: usize) -> String {
    let mut table = Table::new(&["check", "state"]).with_words(&["state"]);
    for check in checks {
        let look = match check.state {
            State::Good | State::Fair => Look::Plain,
            State::Poor => Look::Flagged,
            State::Absent | State::Refused | State::Unreadable => Look::Faint,
        };
        // The finding is a clause, the remedies are sentences.
        let mut words = check.found.clone();
        for (joint, advice) in [". ", " "].iter().zip([&check.remedy, &check.root].into_iter().flatten()) {
            words.push_str(joint);
            words.push_str(advice);
        }
        table.row(look, &[check.name.to_owned(), check.state.word().to_owned()], &[words]);
    }
    let verdict = match fit {
        true => "Fit for measuring. Checks that are fair lower the precision or add to the latencies.",
        false => {
            "Not fit for measuring: fix the checks that are poor, or compare only with runs of such an environment."
        }
    };
    format!("{}\n{}", table.render(width), paragraph(verdict, width, ""))
}
