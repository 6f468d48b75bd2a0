//! The facts as JSON.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use tollgate_model::run::Tool;
use tollgate_model::{Environment, Fact, Facts};

use super::group::{Group, NOW, WHEN};

/// The output of `--format json`.
#[derive(Serialize)]
pub struct Document<'a> {
    tool: Tool,
    from: Option<&'a Path>,
    environment: Environment,
    facts: BTreeMap<&'a str, Record<'a>>,
    moments: BTreeMap<&'a str, Record<'a>>,
}

/// A fact as runs keep it, with its effect.
#[derive(Serialize)]
struct Record<'a> {
    #[serde(flatten)]
    fact: &'a Fact,
    subject: &'a str,
    about: Option<&'static str>,
    affects: Option<String>,
}

impl<'a> Document<'a> {
    /// The chosen facts, and all that describe the environment.
    pub fn of(groups: &'a [Group], all: &Facts, from: Option<&'a Path>, tool: Tool) -> Self {
        let (mut facts, mut moments) = (BTreeMap::new(), BTreeMap::new());
        for group in groups {
            for (name, fact) in &group.facts {
                let spec = tollgate_inspect::spec(name);
                let record = Record {
                    fact,
                    subject: &group.subject,
                    about: spec.map(|spec| spec.about),
                    affects: spec.and_then(|spec| spec.effect).map(|effect| effect.to_string()),
                };
                match name.strip_suffix(WHEN).and_then(|name| name.strip_suffix('.')) {
                    Some(name) if group.subject == NOW => moments.insert(name, record),
                    _ => facts.insert(name.as_str(), record),
                };
            }
        }
        Self { tool, from, environment: tollgate_inspect::environment(all), facts, moments }
    }
}
