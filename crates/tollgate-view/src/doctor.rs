//! The checks of an environment, as `tollgate doctor` prints them.

use serde::Serialize;
use tollgate_output::table::{Look, Table, paragraph};

use crate::export::word;
use crate::health::{self, Check, Fix, Judged, State};
use crate::summary::Summary;

/// The result, also as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnosis {
    /// Whether no check is `poor`.
    fit: bool,
    /// In the order of the table.
    checks: Vec<Check>,
}

impl Diagnosis {
    /// Every check, by a run that was made there.
    pub fn of(summary: &Summary) -> Self {
        let mut checks = health::checks(summary);
        checks.sort_by_key(|check| check.judged.given);
        Self { fit: checks.iter().all(|check| check.judged.state != State::Poor), checks }
    }

    /// As a table: what can be changed, and what cannot.
    pub fn text(&self, width: usize) -> String {
        let mut table = Table::new(&["check", "state"]).with_words(&["state"]);
        let first_given = self.checks.iter().position(|check| check.judged.given);
        for (at, Check { name, judged }) in self.checks.iter().enumerate() {
            if Some(at) == first_given {
                table.heading("Part of this environment: it cannot be changed here");
            }
            let look = match judged.state {
                State::Good | State::Fair => Look::Plain,
                State::Poor => Look::Flagged,
                State::Absent | State::Refused | State::Unreadable => Look::Faint,
            };
            table.row(look, &[(*name).to_owned(), word(&judged.state)], &[words(judged)]);
        }
        format!("{}{}\n{}", table.render(width), self.commands(), paragraph(&self.verdict(), width, ""))
    }

    fn commands(&self) -> String {
        let fixes = self.checks.iter().filter_map(|check| Some((check.name, check.judged.fix.as_ref()?)));
        let lines = fixes.map(|(name, Fix { at, command, undo })| {
            format!("  {name}{}\n    {command}\n    undo: {undo}\n", at.unwrap_or_default())
        });
        let lines: String = lines.collect();
        if lines.is_empty() { lines } else { format!("\nTo copy:\n{lines}") }
    }

    fn verdict(&self) -> String {
        let poor = self.poor();
        if !poor.is_empty() {
            return format!(
                "Not fit for measuring: {}. Change that first, or compare only runs of such environments.",
                poor.join(", ")
            );
        }
        let fair =
            self.checks.iter().filter(|check| check.judged.state == State::Fair && !check.judged.given);
        match fair.map(|check| check.name).collect::<Vec<_>>().as_slice() {
            [] => "Fit for measuring.".to_owned(),
            names => format!(
                "Fit for measuring. Changing these would make figures more precise or lower: {}.",
                names.join(", ")
            ),
        }
    }

    /// The names of the checks that are poor.
    pub fn poor(&self) -> Vec<&'static str> {
        let poor = self.checks.iter().filter(|check| check.judged.state == State::Poor);
        poor.map(|check| check.name).collect()
    }
}

fn words(judged: &Judged) -> String {
    let mut words = judged.found.clone();
    for (joint, advice) in [". ", " "].iter().zip(judged.remedy.iter().chain(&judged.root)) {
        words.push_str(&format!("{joint}{advice}"));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_stand_on_whole_lines_with_their_undo() {
        let command = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
        let undo = "echo powersave | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
        let fix = Fix { at: None, command: command.to_owned(), undo: undo.to_owned() };
        let judged = |state, fix| Judged {
            state,
            found: "found".to_owned(),
            remedy: None,
            root: None,
            fix,
            given: false,
            disturbance: None,
        };
        let checks = vec![
            Check { name: "governor", judged: judged(State::Fair, Some(fix)) },
            Check { name: "steal", judged: judged(State::Poor, None) },
            Check { name: "hypervisor", judged: Judged { given: true, ..judged(State::Fair, None) } },
        ];
        let diagnosis = Diagnosis { fit: false, checks };
        let text = diagnosis.text(40);
        assert!(
            text.contains(&format!("\nTo copy:\n  governor\n    {command}\n    undo: {undo}\n")),
            "{text}"
        );
        assert_eq!(diagnosis.poor(), ["steal"]);
        let at = |words: &str| text.find(words).expect(words);
        assert!(at("steal") < at("Part of this") && at("Part of this") < at("hypervisor"), "{text}");
        let verdict =
            Diagnosis { checks: vec![diagnosis.checks[0].clone(), diagnosis.checks[2].clone()], fit: true }
                .verdict();
        assert!(verdict.ends_with("precise or lower: governor."), "{verdict}");
    }
}
