//! Notes on the figures of commands: failed executions, dropped caches, what was subtracted.

use tollgate_model::traced::Ended;
use tollgate_model::versus::{Cold, INSTRUCTIONS, REAL, SYS, USER};
use tollgate_output::figures::count;

use super::cells::Cell;
use super::counted;
use crate::session::Session;
use crate::together::together;
use crate::{facts, health};
use tollgate_trace::output::text as words;

const MOST_STAYED: usize = 2;

/// The notes; with several commands they name the command.
pub(super) fn all(session: &Session, cells: &[Cell]) -> Vec<String> {
    let is_traced = cells.iter().any(|cell| !cell.traced().is_empty());
    let of_cell = |cell: &'_ Cell| {
        let untraced = cell.why_untraced().filter(|_| is_traced).map(|why| format!("not traced: {why}"));
        let label = cell.label.clone();
        notes_of(cell).into_iter().chain(untraced).map(move |note| (note, label.clone())).collect::<Vec<_>>()
    };
    let notes = together(cells.iter().flat_map(of_cell));
    let gone = session.members.first().map_or(0, |first| first.part.of as usize);
    let gone = gone.saturating_sub(session.members.len());
    let gone =
        (gone > 0).then(|| format!("{} of it, not among these runs.", count(gone, "command", "commands")));
    let first = session.members.first().map(|first| &first.summary.run.facts);
    let in_turn = first.and_then(|facts| facts::text(facts, facts::IN_TURN)).map(|why| {
        format!("In turn, not in random order: {why}. --prepare can set the same state before each.")
    });
    let named = notes.into_iter().map(|(note, labels)| format!("{}: {note}.", labels.join(", ")));
    in_turn.into_iter().chain(named).chain(gone).collect()
}

fn notes_of(cell: &Cell) -> Vec<String> {
    let run = cell.member.summary.run;
    let lost = facts::text(&run.facts, facts::LOST).map(|why| format!("lost: {why}"));
    let throttled =
        health::used_up(&run.facts).map(|found| format!("{found} (cpu.max): real time includes these waits"));
    let failed = &cell.command.failed;
    let failed = (!failed.is_empty()).then(|| {
        let kind = |(ended, all): (Ended, Vec<()>)| {
            format!("{} in {}", words::ended(ended), count(all.len(), "execution", "executions"))
        };
        let kinds = together(failed.iter().map(|failed| (failed.ended, ())));
        let kinds: Vec<String> = kinds.into_iter().map(kind).collect();
        format!("{} (of {})", kinds.join(", "), cell.executions())
    });
    let cold = cell.command.cold.as_ref().map(cold);
    let of_samples = cell.figures(REAL).or_else(|| cell.figures(INSTRUCTIONS));
    let of_samples = of_samples.map(|figures| figures.measured.notes.clone()).unwrap_or_default();
    let of_samples = counted::notes(cell).into_iter().chain(of_samples);
    lost.into_iter()
        .chain(throttled)
        .chain(failed)
        .chain(cold)
        .chain(division(cell))
        .chain(of_samples)
        .collect()
}

/// A command needs some user time to run and some sys time to make calls.
fn division(cell: &Cell) -> Option<String> {
    let [user, sys] = [USER, SYS].map(|case| cell.figures(case).map(|figures| figures.estimate.median));
    let is_chance = (user? == 0.0) != (sys? == 0.0);
    is_chance.then(|| {
        "the kernel divides user and sys by samples of its clock tick, too few for a command this short"
            .to_owned()
    })
}

/// `the page cache of 12 files was dropped before each execution, by mincore(2); pages of 1 stayed: /lib/libc.so.6`
fn cold(cold: &Cold) -> String {
    let by = match &cold.certified_by {
        Some(call) => format!("certified by {call}"),
        None => "not certified: no call says which pages are cached".to_owned(),
    };
    let files = count(cold.files as usize, "file that it reads", "files that it reads");
    let stayed = match cold.stayed_files {
        0 => "none stayed".to_owned(),
        number => {
            let named = cold.stayed.iter().take(MOST_STAYED).cloned().collect::<Vec<_>>().join(", ");
            format!("pages of {number} stayed: {named}")
        }
    };
    format!("the page cache of {files} was dropped before each execution, {by}; {stayed}")
}
