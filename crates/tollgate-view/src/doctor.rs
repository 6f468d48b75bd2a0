//! The checks of an environment, as `tollgate doctor` prints them.

use serde::Serialize;

use crate::export::word;
use crate::health::{self, Check, State};
use crate::summary::Summary;
use crate::table::{Look, Table, paragraph};

/// The result, also as JSON.
#[derive(Serialize)]
pub struct Diagnosis {
    fit: bool,
    checks: Vec<Check>,
}

impl Diagnosis {
    /// Every check, by a run that was made there.
    pub fn of(summary: &Summary) -> Self {
        let checks = health::checks(summary);
        Self { fit: checks.iter().all(|check| check.judged.state != State::Poor), checks }
    }

    /// As a table.
    pub fn text(&self, width: usize) -> String {
        let mut table = Table::new(&["check", "state"]).with_words(&["state"]);
        for Check { name, judged } in &self.checks {
            let look = match judged.state {
                State::Good | State::Fair => Look::Plain,
                State::Poor => Look::Flagged,
                State::Absent | State::Refused | State::Unreadable => Look::Faint,
            };
            // The finding is a clause, the remedies are sentences.
            let mut words = judged.found.clone();
            for (joint, advice) in [". ", " "].iter().zip(judged.remedy.iter().chain(&judged.root)) {
                words.push_str(&format!("{joint}{advice}"));
            }
            table.row(look, &[(*name).to_owned(), word(&judged.state)], &[words]);
        }
        let verdict = if self.fit {
            "Fit for measuring. Checks that are fair lower the precision or add to the latencies."
        } else {
            "Not fit for measuring: fix the checks that are poor, or compare only with runs of such an environment."
        };
        format!("{}\n{}", table.render(width), paragraph(verdict, width, ""))
    }
}
