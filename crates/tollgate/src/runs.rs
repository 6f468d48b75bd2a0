//! `tollgate runs`: the kept runs, listed, renamed, deleted.

use std::time::Duration;

use serde::Serialize;
use tollgate_model::compare::Halves;
use tollgate_model::text::beginning;
use tollgate_model::{Environment, Label, Part, RunId};
use tollgate_output::figures;
use tollgate_output::table::{Look, Table};
use tollgate_store::document::Outline;
use tollgate_store::edit::Keeping;
use tollgate_store::kept::{Entry, kept};
use tollgate_store::kind::RunKind;

use crate::args::Format;
use crate::args::runs::{DeleteArgs, RenameArgs, RunsArgs, RunsVerb};
use crate::failure::Failure;
use crate::{out, say};

/// Characters of the patterns or the command in a table.
const MOST_SHOWN: usize = 32;

impl RunsArgs {
    /// # Errors
    /// A run that is not kept; a directory that cannot be read or written.
    pub fn execute(&self) -> Result<(), Failure> {
        match &self.verb {
            None => list(self.format),
            Some(RunsVerb::Rename(args)) => rename(args),
            Some(RunsVerb::Delete(args)) => delete(args),
        }
    }
}

fn rename(args: &RenameArgs) -> Result<(), Failure> {
    let keeping = Keeping::open()?;
    for entry in keeping.find(&args.run)? {
        keeping.rename(&entry, &args.label)?;
        out::print(&format!("{} is now labelled {}.\n", entry.id, args.label))?;
    }
    Ok(())
}

/// All runs are found before the first is deleted.
fn delete(args: &DeleteArgs) -> Result<(), Failure> {
    let keeping = Keeping::open()?;
    let mut entries: Vec<Entry> = Vec::new();
    for meant in &args.run {
        for entry in keeping.find(meant)? {
            keeping.expect_run(&entry)?;
            if entries.iter().all(|known| known.id != entry.id) {
                entries.push(entry);
            }
        }
    }
    for entry in entries {
        keeping.delete(&entry)?;
        out::print(&format!("{} is deleted.\n", entry.id))?;
    }
    Ok(())
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Runs {
    /// Oldest first.
    runs: Vec<KeptRun>,
    /// The bases of kept sessions compared with themselves.
    a_a: Tally,
}

/// The A/A of sessions: halves of the processes of their bases, compared as environments are.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Tally {
    /// Number of sessions, among the 40 newest.
    sessions: usize,
    #[serde(flatten)]
    halves: Halves,
}

impl Tally {
    fn new(entries: &[Entry], records: &[KeptRun]) -> Self {
        /// More are not read, since their samples would be.
        const MOST: usize = 40;
        let is_base =
            |record: &KeptRun| record.session.as_ref().is_some_and(|part| part.place == 0 && part.of > 1);
        let bases = entries.iter().zip(records).rev().filter(|(_, record)| is_base(record)).take(MOST);
        let bases = bases.filter_map(|(entry, _)| entry.open().ok());
        bases.map(|base| Halves::of_run(&base)).fold(Self::default(), |mut tally, halves| {
            tally.sessions += 1;
            tally.halves.add(&halves);
            tally
        })
    }

    /// `A/A: 51 of 51 the same, none different, in 3 sessions`.
    fn line(&self) -> Option<String> {
        let sessions = figures::count(self.sessions, "session", "sessions");
        (self.sessions > 0).then(|| format!("{}, in {sessions}.\n", self.halves))
    }
}

#[derive(Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct KeptRun {
    /// Its id.
    id: Option<RunId>,
    /// The verb that made it.
    kind: Option<RunKind>,
    /// The user's name for it, or None.
    label: Option<Label>,
    /// The patterns that chose its cases, empty for everything; None if it has none, like a trace.
    patterns: Option<Vec<String>>,
    /// The traced command and its arguments, or None.
    command: Option<Vec<String>>,
    /// The innermost known layer.
    environment: Option<Environment>,
    /// Its part in a session of several environments, or None.
    session: Option<Part>,
    /// Time of the first measurement.
    started: Option<String>,
    /// From the first to the last measurement.
    duration_s: Option<f64>,
    /// Requested cases.
    rows: Option<usize>,
    /// Its file.
    path: String,
    /// Why the file does not read as a run, or None; then all but `id` and `path` are null.
    fault: Option<String>,
}

impl KeptRun {
    fn of(entry: &Entry) -> Self {
        let outline = entry.outline();
        let (id, path) = (Some(entry.id.clone()), entry.path.display().to_string());
        match outline {
            Err(fault) => Self { id, path, fault: Some(fault.to_string()), ..Self::default() },
            Ok(outline) => Self {
                kind: Some(outline.kind()),
                duration_s: outline.seconds(),
                rows: Some(outline.rows()),
                command: outline.command().map(<[String]>::to_vec),
                id,
                path,
                ..Self::described(outline)
            },
        }
    }

    fn described(outline: Outline) -> Self {
        Self {
            patterns: outline.patterns(),
            label: outline.label,
            environment: Some(outline.environment),
            session: outline.session,
            started: Some(outline.started),
            ..Self::default()
        }
    }

    /// The environment: for a run in a session as the user named it.
    fn shown_environment(&self) -> Option<String> {
        let named = self.session.as_ref().map(|part| part.environment.clone());
        named.or_else(|| self.environment.map(|environment| environment.to_string()))
    }

    /// The measured cases, or the command; before it the position in a session.
    fn measured(&self) -> Option<String> {
        let place = self.session.as_ref().map(|part| format!("{}/{}", u64::from(part.place) + 1, part.of));
        let parts: Vec<String> = place.into_iter().chain(self.asked()).collect();
        (!parts.is_empty()).then(|| parts.join(": "))
    }

    fn asked(&self) -> Option<String> {
        let of_session = self.session.as_ref().and_then(|part| part.command.as_ref());
        if let Some(command) = of_session {
            return Some(command.shown().to_owned());
        }
        match (&self.command, &self.patterns) {
            (Some(command), _) => Some(command.join(" ")),
            (None, Some(patterns)) if patterns.is_empty() => Some("everything".to_owned()),
            (None, Some(patterns)) => Some(patterns.join(" ")),
            (None, None) => None,
        }
    }
}

fn list(format: Format) -> Result<(), Failure> {
    let entries = kept()?;
    let runs: Vec<KeptRun> = entries.iter().map(KeptRun::of).collect();
    let a_a = Tally::new(&entries, &runs);
    match format {
        Format::Json => out::print_json(&Runs { runs, a_a }),
        Format::Table if runs.is_empty() => {
            say::say("no run is kept yet; `tollgate run` makes one");
            Ok(())
        }
        Format::Table => out::print(&(table(&runs).render(out::width()) + &a_a.line().unwrap_or_default())),
    }
}

fn table(runs: &[KeptRun]) -> Table {
    const HEADER: [&str; 8] =
        ["run", "kind", "label", "time", "patterns or command", "environment", "started", "cases"];
    let mut table = Table::new(&HEADER)
        .with_words(&["kind", "label", "patterns or command", "environment", "started"])
        .with_dispensable(3);
    for run in runs {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let time = run.duration_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let cells = [
            or_none(run.id.as_ref().map(ToString::to_string)),
            or_none(run.kind.map(|kind| kind.to_string())),
            or_none(run.label.as_ref().map(ToString::to_string)),
            or_none(time.map(figures::time_left)),
            or_none(run.measured().map(|text| beginning(&text, MOST_SHOWN).into_owned())),
            or_none(run.shown_environment()),
            or_none(run.started.clone()),
            or_none(run.rows.map(|rows| rows.to_string())),
        ];
        let (look, remarks) = match &run.fault {
            Some(fault) => (Look::Flagged, vec![format!("its file {fault}")]),
            None => (Look::Plain, Vec::new()),
        };
        table.row(look, &cells, &remarks);
    }
    table
}
