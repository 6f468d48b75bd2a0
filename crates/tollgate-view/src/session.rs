//! A session as it is shown: several environments that alternated, the others compared with the first.

pub(crate) mod atlas;
pub(crate) mod builds;
pub(crate) mod environments;
pub mod json;
mod starts;
pub mod text;

use tollgate_model::{Case, Part, Run, RunId};

use crate::compare::columns::Sides;
use crate::comparison::{self, Comparison};
use crate::summary::Summary;

pub use text::text;

/// The runs of a session.
pub struct Session<'a> {
    /// The same id in every run of it.
    pub id: &'a RunId,
    /// Its environments by position; the first is the base.
    pub members: Vec<Member<'a>>,
    /// Each other environment compared with the first.
    pub comparisons: Vec<Comparison<'a>>,
}

/// An environment of a session.
pub struct Member<'a> {
    /// As the user named it, with the setting that differed there, and a number if two have the same name.
    pub name: String,
    /// Its part.
    pub part: &'a Part,
    /// Its run and its figures.
    pub summary: Summary<'a>,
}

impl<'a> Session<'a> {
    /// The session of these runs. `None` if there are none, or if they do not belong to one session.
    pub fn of(runs: &'a [Run]) -> Option<Self> {
        Self::above(runs, 0.0)
    }

    /// Like [`Session::of`], ignoring relative differences up to `asked`.
    pub fn above(runs: &'a [Run], asked: f64) -> Option<Self> {
        let mut parts: Vec<(&Part, &Run)> =
            runs.iter().map(|run| Some((run.session.as_ref()?, run))).collect::<Option<_>>()?;
        parts.sort_by_key(|(part, run)| (part.place, &run.id));
        parts.dedup_by_key(|(_, run)| &run.id);
        let (first, base) = *parts.first()?;
        if parts.iter().any(|(part, _)| part.id != first.id) {
            return None;
        }
        let names = names(parts.iter().map(|(_, run)| *run));
        let member = |((part, run), name): (&(&'a Part, &'a Run), String)| Member {
            name,
            part,
            summary: Summary::of(run),
        };
        Some(Self {
            id: &first.id,
            members: parts.iter().zip(names).map(member).collect(),
            comparisons: parts[1..].iter().map(|(_, run)| Comparison::above(base, run, asked)).collect(),
        })
    }

    /// Whether it compared whole commands of the user.
    pub fn is_of_commands(&self) -> bool {
        let is_whole =
            |member: &Member| member.part.command.as_ref().is_some_and(|command| command.is_whole());
        !self.members.is_empty() && self.members.iter().all(is_whole)
    }

    /// Keeps the rows of some cases. Their verdicts stay as they are among all.
    pub fn retain(&mut self, is_chosen: impl Fn(&Case) -> bool) {
        self.members.iter_mut().for_each(|member| member.summary.retain(&is_chosen));
        self.comparisons.iter_mut().for_each(|comparison| comparison.retain(&is_chosen));
    }

    /// The environments that are compared with the first.
    pub fn others(&self) -> impl Iterator<Item = (&Member<'a>, &Comparison<'a>)> {
        self.members.iter().skip(1).zip(&self.comparisons)
    }

    /// Each comparison with the first, with the names of the two here.
    pub fn compared(&self) -> impl Iterator<Item = (Sides<'_>, &Comparison<'a>)> {
        let base = self.members.first().map_or("", |base| base.name.as_str());
        self.others().map(move |(other, comparison)| {
            let names = [base, other.name.as_str()].map(Into::into);
            (Sides::named(comparison, names), comparison)
        })
    }
}

pub(crate) fn is_one(runs: &[Run]) -> bool {
    let id = |run: &'_ Run| run.session.as_ref().map(|part| part.id.clone());
    let first = runs.first().and_then(id);
    runs.len() > 1 && first.is_some() && runs.iter().all(|run| id(run) == first)
}

/// The name of a run among those of its session: a command's without the environment if that is the same, and only the
/// environment's if the command is the same.
fn name(run: &Run, among: &[&Run]) -> String {
    let (Some(own), Some(command)) = (run.session.as_ref(), comparison::command(run)) else {
        return comparison::name(run);
    };
    let others = || among.iter().filter_map(|other| other.session.as_ref());
    let is_one_environment = others().all(|other| other.environment == own.environment);
    let is_one_command =
        others().all(|other| other.command.as_deref().is_some_and(|other| other.is_same(command)));
    match (is_one_environment, is_one_command) {
        (true, _) => comparison::in_short_of(command),
        (false, true) => comparison::environment(own),
        (false, false) => format!("{} in {}", comparison::in_short_of(command), own.environment),
    }
}

pub(crate) fn names<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<String> {
    let runs: Vec<&Run> = runs.collect();
    let names: Vec<String> = runs.iter().map(|run| name(run, &runs)).collect();
    let numbered = |(at, name): (usize, &String)| {
        let before = names[..at].iter().filter(|known| *known == name).count();
        match names.iter().filter(|known| *known == name).count() {
            1 => name.clone(),
            _ => format!("{name} ({})", before + 1),
        }
    };
    names.iter().enumerate().map(numbered).collect()
}
