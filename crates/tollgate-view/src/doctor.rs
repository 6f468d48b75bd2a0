//! The checks of an environment, as `tollgate doctor` prints them.

use serde::Serialize;

use crate::export::word;
use crate::health::{self, Check, Fix, State};
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
        let mut commands = String::new();
        for Check { name, judged } in &self.checks {
            if let Some(Fix { at, command, undo }) = &judged.fix {
                // Whole lines: they are copied.
                commands.push_str(&format!(
                    "  {name}{}\n    {command}\n    undo: {undo}\n",
                    at.unwrap_or_default()
                ));
            }
        }
        if !commands.is_empty() {
            commands.insert_str(0, "\nTo copy:\n");
        }
        let verdict = if self.fit {
            "Fit for measuring. Checks that are fair lower the precision or add to the latencies."
        } else {
            "Not fit for measuring: fix the checks that are poor, or compare only with runs of such an environment."
        };
        format!("{}{commands}\n{}", table.render(width), paragraph(verdict, width, ""))
    }

    /// The names of the checks that are poor.
    pub fn poor(&self) -> Vec<&'static str> {
        let poor = self.checks.iter().filter(|check| check.judged.state == State::Poor);
        poor.map(|check| check.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Judged;

    #[test]
    fn commands_stand_on_whole_lines_with_their_undo() {
        let command = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
        let undo = "echo powersave | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
        let fix = Fix { at: None, command: command.to_owned(), undo: undo.to_owned() };
        let judged = |state, fix| Judged { state, found: "found".to_owned(), remedy: None, root: None, fix };
        let checks = vec![
            Check { name: "governor", judged: judged(State::Fair, Some(fix)) },
            Check { name: "load", judged: judged(State::Poor, None) },
        ];
        let diagnosis = Diagnosis { fit: false, checks };
        let text = diagnosis.text(40);
        assert!(
            text.contains(&format!("\nTo copy:\n  governor\n    {command}\n    undo: {undo}\n")),
            "{text}"
        );
        assert_eq!(diagnosis.poor(), ["load"]);
    }
}
