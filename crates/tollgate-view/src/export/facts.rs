//! The file of an environment's facts, which is named by its content: equal machines have the same.

use serde::Serialize;
use tollgate_model::compare::is_volatile;
use tollgate_model::{Fact, Facts};

use super::hash::fnv1a_128;

/// A fact in the file. Sources and the texts of errors are left out, since they name directories and containers of one machine.
#[derive(Serialize)]
struct Kept {
    #[serde(skip_serializing_if = "String::is_empty")]
    env_id: String,
    fact: String,
    status: String,
    value: Option<String>,
}

/// Facts that differ between equal machines: the numbers of disks.
const OF_ONE_MACHINE: [&str; 2] = ["kernel.command_line", "files.source"];

/// The facts that are neither volatile nor specific to one machine, by name.
fn kept(facts: &Facts) -> Vec<Kept> {
    let lasting =
        facts.iter().filter(|(name, _)| !is_volatile(name) && !OF_ONE_MACHINE.contains(&name.as_str()));
    let kept = |(name, fact): (&String, &Fact)| {
        let (status, value) = match fact {
            Fact::Known { value, .. } => ("known", Some(value.to_string())),
            Fact::Unknown { why } => (why.kind_and_why().0, None),
        };
        Kept { env_id: String::new(), fact: name.clone(), status: status.to_owned(), value }
    };
    lasting.map(kept).collect()
}

/// The name of the file of these facts.
pub fn env_id(facts: &Facts) -> String {
    id_of(&kept(facts))
}

/// FNV-1a of 128 bits over each fact's `["name","status","value"]` as JSON without blanks, and a line feed each.
fn id_of(facts: &[Kept]) -> String {
    let mut hashed = String::new();
    for kept in facts {
        hashed.push_str(&serde_json::to_string(&(&kept.fact, &kept.status, &kept.value)).unwrap_or_default());
        hashed.push('\n');
    }
    format!("{:032x}", fnv1a_128(hashed.as_bytes()))
}

/// The name of the file, and its content: a JSON array with a line for each fact.
///
/// # Errors
/// Only by a defect of the program: every fact converts to JSON.
pub fn file(facts: &Facts) -> Result<(String, Vec<u8>), serde_json::Error> {
    let facts = kept(facts);
    let id = id_of(&facts);
    let lines: Result<Vec<String>, _> =
        facts.into_iter().map(|kept| serde_json::to_string(&Kept { env_id: id.clone(), ..kept })).collect();
    let text = format!("[\n{}\n]\n", lines?.join(",\n"));
    Ok((id, text.into_bytes()))
}
