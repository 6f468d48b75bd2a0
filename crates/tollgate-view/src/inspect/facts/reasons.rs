//! Unknown facts, compactly: facts with the same reason are named together, and all are included.

use tollgate_model::{Fact, Facts};

use super::hanging::{FAINT, INDENT, hanging};

pub(crate) fn reasons(unknown: &[&(String, Fact)], facts: &Facts, width: usize) -> String {
    let mut lines: Vec<Reason> = Vec::new();
    for (name, fact) in unknown {
        let Fact::Unknown { why } = fact else { continue };
        let (kind, why) = why.kind_and_why();
        let reason = Reason::new(kind, name, why);
        match lines.iter_mut().find(|known| known.joins(&reason)) {
            Some(known) => known.join(reason),
            None => lines.push(reason),
        }
    }
    let mut text = String::new();
    for kind in ["refused", "unreadable", "absent"] {
        let of_kind = lines.iter().filter(|reason| reason.kind == kind);
        let of_kind: Vec<String> = of_kind.map(Reason::to_string).collect();
        if !of_kind.is_empty() {
            let help = if kind == "refused" { help(facts) } else { "" };
            let list = format!("{}{help}", of_kind.join("; "));
            text.push_str(&hanging(&format!("{INDENT}{kind}: "), &list, FAINT, width));
        }
    }
    text
}

struct Reason<'a> {
    kind: &'static str,
    names: Vec<&'a str>,
    why: &'a str,
    missing: Option<(&'a str, Vec<&'a str>)>,
}

impl<'a> Reason<'a> {
    fn new(kind: &'static str, name: &'a str, why: &'a str) -> Self {
        let path = why.strip_suffix(" does not exist").filter(|path| !path.contains([' ', ',']));
        let missing = path.and_then(|path| path.rsplit_once('/'));
        let missing = missing.map(|(directory, file)| (directory, vec![file]));
        Self { kind, names: vec![name], why, missing }
    }

    fn joins(&self, other: &Self) -> bool {
        let same_directory = match (&self.missing, &other.missing) {
            (Some((own, _)), Some((others, _))) => own == others,
            _ => false,
        };
        self.kind == other.kind && (self.why == other.why || same_directory)
    }

    fn join(&mut self, other: Self) {
        self.names.extend(other.names);
        if let (Some((_, own)), Some((_, others))) = (&mut self.missing, other.missing) {
            for file in others {
                if !own.contains(&file) {
                    own.push(file);
                }
            }
        }
    }
}

impl std::fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.names.join(", ");
        match &self.missing {
            Some((directory, files)) if files.len() > 1 => {
                write!(f, "{names} (not in {directory}: {})", files.join(", "))
            }
            _ => write!(f, "{names} ({})", plain_reason(self.why)),
        }
    }
}

fn help(facts: &Facts) -> &'static str {
    match crate::facts::number(facts, "process.user") {
        Some(0.0) => ". Refused even to root here: a capability is missing, or a security module forbids it",
        _ => ". Root may mostly read them",
    }
}

fn plain_reason(why: &str) -> String {
    let without_number = match why.rfind(" (os error ") {
        Some(at) if why.ends_with(')') => &why[..at],
        _ => why,
    };
    without_number.replace(" does not exist", " is not there")
}
