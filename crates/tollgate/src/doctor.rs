//! `tollgate doctor`: what disturbs measurements on this machine, and the remedies.

use tollgate_engine::{Plan, Topology, interrupt};
use tollgate_suites::{Extent, Size};

use crate::args::Format;
use crate::args::doctor::{DoctorArgs, FailOnState};
use crate::failure::{Failure, go_on};
use crate::{out, run};
use tollgate_view::doctor::Diagnosis;
use tollgate_view::summary::{BASELINE, Summary};

/// Enough to recognize emulated traps and stolen time: a second or two, and longer on a busy machine.
const PROCESSES: usize = 16;

impl DoctorArgs {
    /// # Errors
    /// When it is interrupted, or no process can be measured at all; the condition of `--fail-on`.
    pub fn execute(&self) -> Result<(), Failure> {
        let cases = [BASELINE, "entry/int80", "entry/vm-exit"].map(str::to_owned);
        let selection = tollgate_suites::select(&Topology::here(), &cases, Extent::Usual, Size::Small)
            .map_err(|unknown| Failure::input(unknown.to_string()))?;
        interrupt::install();
        let run = run::make(&selection, &Plan::of_processes(PROCESSES), None, true)?;
        go_on()?;
        let diagnosis = Diagnosis::of(&Summary::of(&run));
        match self.format {
            Format::Json => out::print_json(&diagnosis)?,
            Format::Table => out::print(&diagnosis.text(out::width()))?,
        }
        match (self.fail_on, diagnosis.poor().as_slice()) {
            (None, _) | (_, []) => Ok(()),
            (Some(FailOnState::Poor), names) => {
                Err(Failure::Condition(format!("poor: {}", names.join(", "))))
            }
        }
    }
}
