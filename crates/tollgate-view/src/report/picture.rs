//! Runs as one picture in a separate file: for one run its latencies and its curves of sharing, for several their ratios to the
//! first, for commands their times.

use tollgate_model::compare::Spread;
use tollgate_model::versus::{Command, REAL};
use tollgate_model::{Case, Run};

use super::subject::Subject;
use super::{curves, differences, names, ratios, ruler};
use crate::comparison;
use crate::page::{Axis, Drawing, Figure, Key, Mark, PictureRow, Rows, Sign, Text, picture};
use crate::screen::machine;

/// The picture as SVG; `None` if it would draw nothing of the runs. `spread` is the machine's run-to-run spread, and relative
/// differences up to `asked` do not count.
pub fn picture_of(runs: &[Run], spread: &Spread, asked: f64) -> Option<String> {
    let subjects = Subject::all(runs);
    let figures: Vec<Figure> = match subjects.as_slice() {
        [_] => [ruler::figure(&subjects), curves::sharing(&subjects)].into_iter().flatten().collect(),
        _ if subjects.iter().all(is_command) => commands(&subjects).into_iter().collect(),
        _ => ratios::figure(&subjects, &differences::all(&subjects, spread, asked)).into_iter().collect(),
    };
    let base = subjects.first()?;
    let of_machine = machine(&base.summary);
    let first = |line: &String| line.split(" | ").next().unwrap_or_default().to_owned();
    let mut about = vec![of_machine.iter().map(first).collect::<Vec<_>>().join("; ")];
    let names = names(&subjects);
    match subjects.len() {
        1 => about[0].push_str(&format!("; run {}", base.summary.run.id)),
        _ if figures.iter().all(|figure| figure.keys.is_empty()) => about.insert(0, names),
        _ => about.insert(0, format!("Base: {}", base.name)),
    }
    picture(&figures, &about)
}

fn is_command(subject: &Subject) -> bool {
    comparison::command(subject.summary.run).is_some_and(Command::is_whole)
}

fn commands(subjects: &[Subject]) -> Option<Figure> {
    let case = Case::plain(REAL);
    let row = |subject: &Subject| {
        let mark = Mark { look: 0, ..subject.mark(&case)? };
        let value = subject.summary.figures(&case)?.in_words().into();
        Some(PictureRow { name: Text::label(&subject.name), value, verdict: None, marks: vec![mark] })
    };
    let rows: Vec<PictureRow> = subjects.iter().filter_map(row).collect();
    let reach: Vec<f64> = rows.iter().flat_map(|row| &row.marks).flat_map(Mark::reach).collect();
    let axis = Axis::around_times(reach.into_iter())?;
    let key = |sign, name: &str| Key { sign, name: name.into() };
    Some(Figure {
        title: "Time of each command".into(),
        description: "Executed in alternation; on a logarithmic axis.".into(),
        keys: vec![key(Sign::Median, "median"), key(Sign::Interval, "95 % CI"), key(Sign::Min, "min")],
        panels: vec![Drawing::Rows(Rows { axis, rows, level: None, is_by_environment: false }).into()],
        ..Figure::default()
    })
}
