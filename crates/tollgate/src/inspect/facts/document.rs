//! The facts, for programs that read them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use tollgate_model::run::Tool;
use tollgate_model::{Environment, Fact, Facts};

use super::{Group, NOW, WHEN};

/// What `--format json` prints.
#[derive(Serialize)]
pub struct Document<'a> {
    tool: Tool,
    from: Option<&'a Path>,
    environment: Environment,
    facts: BTreeMap<&'a str, Record<'a>>,
    moments: BTreeMap<&'a str, Record<'a>>,
}

/// A fact as runs keep it, with what is known of it.
#[derive(Serialize)]
struct Record<'a> {
    #[serde(flatten)]
    fact: &'a Fact,
    subject: &'a str,
    about: Option<&'static str>,
    moves: Option<String>,
}

impl<'a> Document<'a> {
    /// Of the facts that were asked for, and of all that say what place it is.
    pub fn of(groups: &'a [Group], all: &Facts, from: Option<&'a Path>) -> Self {
        let (mut facts, mut moments) = (BTreeMap::new(), BTreeMap::new());
        for group in groups {
            for (name, fact) in &group.facts {
                let spec = tollgate_inspect::spec(name);
                let record = Record {
                    fact,
                    subject: &group.subject,
                    about: spec.map(|spec| spec.about),
                    moves: spec.and_then(|spec| spec.effect).map(|effect| effect.to_string()),
                };
                match name.strip_suffix(WHEN).and_then(|name| name.strip_suffix('.')) {
                    Some(name) if group.subject == NOW => moments.insert(name, record),
                    _ => facts.insert(name.as_str(), record),
                };
            }
        }
        let tool =
            Tool { name: env!("CARGO_PKG_NAME").to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        Self { tool, from, environment: tollgate_inspect::environment(all), facts, moments }
    }
}
