//! The verbs in groups, as the main help shows them: clap has no groups of subcommands.

use clap::Command;
use tollgate_output::table::wrap;

use crate::out;

/// The groups, the most used verbs first. A verb in no group is in the first.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Commands", &["run", "show", "explain", "compare", "versus", "claims", "runs", "list", "report"]),
    ("This machine", &["inspect", "doctor", "bill", "environments", "trace", "ram"]),
    ("Other systems and shells", &["export", "store", "config", "completions", "man", "help"]),
    ("Advanced", &["decode", "lab", "schedules"]),
];
const COLUMN: usize = 15;

pub fn grouped(command: Command) -> Command {
    let width = out::width();
    let mut rest: Vec<(String, String)> = command
        .get_subcommands()
        .filter(|verb| !verb.is_hide_set())
        .map(|verb| {
            (verb.get_name().to_owned(), verb.get_about().map(ToString::to_string).unwrap_or_default())
        })
        .collect();
    rest.push(("help".to_owned(), "Print the help of a verb".to_owned()));
    let mut groups = Vec::new();
    for (name, verbs) in GROUPS {
        let mut lines = String::new();
        for verb in verbs {
            if let Some(at) = rest.iter().position(|(known, _)| known == verb) {
                let (verb, about) = rest.remove(at);
                lines.push_str(&line(&verb, &about, width));
            }
        }
        groups.push((name, lines));
    }
    for (verb, about) in rest {
        groups[0].1.push_str(&line(&verb, &about, width));
    }
    let groups: Vec<String> = groups.into_iter().map(|(name, lines)| format!("{name}:\n{lines}")).collect();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}\nOptions:\n{{options}}{{after-help}}",
        groups.join("\n")
    );
    command.help_template(template)
}

fn line(verb: &str, about: &str, width: usize) -> String {
    let mut text = String::new();
    for (at, piece) in wrap(about, width.saturating_sub(COLUMN).max(20)).iter().enumerate() {
        let verb = if at == 0 { verb } else { "" };
        text.push_str(&format!("  {verb:0$}{piece}\n", COLUMN - 2));
    }
    text
}
