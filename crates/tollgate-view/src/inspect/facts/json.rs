//! The facts as JSON.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use tollgate_model::run::Tool;
use tollgate_model::{Environment, Fact, Facts};

use super::group::{Group, NOW, WHEN};

/// The output of `--format json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "InspectedFacts"))]
pub struct FactsDocument<'a> {
    /// The program that read them.
    tool: Tool,
    /// The captured tree, or None.
    from: Option<&'a Path>,
    /// The innermost known layer.
    environment: Environment,
    /// By name. `--only` and `--affects` leave other facts out.
    facts: BTreeMap<&'a str, InspectedFact<'a>>,
    /// Likewise the volatile facts, such as `load`.
    moments: BTreeMap<&'a str, InspectedFact<'a>>,
}

/// A fact as runs keep it, with its effect.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct InspectedFact<'a> {
    #[serde(flatten)]
    fact: &'a Fact,
    /// Its subject.
    subject: &'a str,
    /// A sentence about it, or None.
    about: Option<&'static str>,
    /// The boundaries that it affects and how, or None.
    affects: Option<String>,
}

impl<'a> FactsDocument<'a> {
    /// The chosen facts, and all that describe the environment.
    pub fn new(groups: &'a [Group], all: &Facts, from: Option<&'a Path>, tool: Tool) -> Self {
        let (mut facts, mut moments) = (BTreeMap::new(), BTreeMap::new());
        for group in groups {
            for (name, fact) in &group.facts {
                let spec = tollgate_inspect::spec(name);
                let record = InspectedFact {
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
