//! The screen of a session: at most 40 lines of at most 80 columns that say what each environment costs, how far that can be
//! trusted, and why. With all rows, as many lines as they need.

use std::time::Duration;

use tollgate_environments::is_guest;
use tollgate_model::text::{clean, quoted};
use tollgate_output::figures::{count, time_left};
use tollgate_output::table::{cut, paragraph};
use unicode_width::UnicodeWidthStr;

use super::{Member, Session, atlas, builds, environments, starts};
use crate::atlas::Atlas;
use crate::compare::block::{Block, Head};
use crate::compare::columns::Choice;
use crate::comparison::{self, Comparison};

const LINES: usize = 40;
const COLUMNS: usize = 80;
const LEAST_ROWS: usize = 3;
/// Causes that are shown for one comparison, and for each of several.
const MOST_CAUSES: usize = 4;
const FEW_CAUSES: usize = 2;
const LONGEST_NAME: usize = 26;

/// The screen, for a terminal of this width. With `all` every row and every fact.
pub fn text(session: &Session, all: bool, width: usize) -> String {
    let width = if all { width } else { width.min(COLUMNS) };
    let summaries: Vec<_> = session.members.iter().map(|member| &member.summary).collect();
    if let Some(kernels) = Atlas::of(&summaries) {
        let head = title(session, width) + &base(session, width);
        let rest = atlas::text(session, &kernels, all, width, LINES - head.lines().count());
        return head + &rest;
    }
    let is_of_starts = starts::is_all(session);
    let mut text = head(session, width, is_of_starts && !all);
    text.push_str(&starts::text(session, width));
    if is_of_starts && !all {
        text.push_str(&more(session, width));
        text.push('\n');
        return text;
    }
    // The head says why an environment has nothing.
    let has_rows =
        |comparison: &Comparison| !(comparison.rows.is_empty() && comparison.not_compared.is_empty());
    let others = session.others().filter(|(_, comparison)| has_rows(comparison));
    let others: Vec<_> = others.collect();
    let is_alone = others.len() == 1;
    let blocks: Vec<Block> = others
        .into_iter()
        .map(|(other, comparison)| block(&session.members[0], other, comparison, is_alone, width))
        .collect();
    // The last line names the commands that show the rest.
    let notes = builds::notes(session);
    let notes: String = notes.iter().map(|note| paragraph(note, width, "")).collect();
    let fixed =
        text.lines().count() + blocks.iter().map(Block::lines).sum::<usize>() + notes.lines().count() + 1;
    let mut room = LINES.saturating_sub(fixed);
    let number = blocks.len();
    for (at, block) in blocks.iter().enumerate() {
        text.push('\n');
        if all {
            text.push_str(&block.whole());
            continue;
        }
        let own = (room / (number - at)).max(LEAST_ROWS);
        let (part, used) = block.text(own);
        text.push_str(&part);
        room = room.saturating_sub(used);
    }
    text.push_str(&notes);
    text.push_str(&more(session, width));
    text.push('\n');
    text
}

fn base(session: &Session, width: usize) -> String {
    let about = environments::lines(session).into_iter().next();
    about.map_or_else(String::new, |(_, about)| cut(&clean(&about), width) + "\n")
}

fn title(session: &Session, width: usize) -> String {
    let Some(base) = session.members.first() else { return String::new() };
    let (verb, [cases, members]) = match builds::harness(session) {
        Some(harness) => ("versus", builds::head(session, harness)),
        None => {
            let cases = count(base.summary.measured().count(), "case", "cases");
            ("session", [cases, count(session.members.len(), "environment", "environments")])
        }
    };
    line(session, verb, &[cases, members], width)
}

/// A session of a verb on one line: its id, how long it took, what was measured, and the user's name for it.
pub(crate) fn line(session: &Session, verb: &str, measured: &[String], width: usize) -> String {
    let run = session.members.first().map(|base| base.summary.run);
    let seconds = run.and_then(|run| Duration::try_from_secs_f64(run.seconds()?).ok());
    let label = run.and_then(|run| run.label.as_ref()).map(ToString::to_string);
    let begin = [Some(format!("{verb} {}", session.id)), seconds.map(time_left)].into_iter().flatten();
    let parts: Vec<String> = begin.chain(measured.iter().cloned()).chain(label).collect();
    format!("{}\n", cut(&clean(&parts.join("  ")), width))
}

fn head(session: &Session, width: usize, is_short: bool) -> String {
    let Some(base) = session.members.first() else { return String::new() };
    let mut text = title(session, width);
    let lines = environments::lines(session);
    let names = lines.iter().map(|(name, _)| name.width());
    let longest = names.filter(|width| *width <= LONGEST_NAME).max().unwrap_or(0);
    for (name, about) in lines {
        let name = clean(&name);
        let (own, hang) = if name.width() <= longest {
            (String::new(), format!("  {name}{}  ", " ".repeat(longest - name.width())))
        } else {
            // A longer name has a line of its own.
            (format!("  {}\n", cut(&name, width.saturating_sub(2))), "    ".to_owned())
        };
        let lines = paragraph(&about, width, &hang);
        let lines = if is_short { cut(&format!("{hang}{}", clean(&about)), width) + "\n" } else { lines };
        text.push_str(&(own + &lines));
    }
    if session.members.len() < base.part.of as usize {
        let gone = base.part.of as usize - session.members.len();
        let line =
            format!("  {} of the session, not among these runs", count(gone, "environment", "environments"));
        text.push_str(&cut(&line, width));
        text.push('\n');
    }
    text
}

fn block<'c, 'a>(
    base: &Member,
    other: &Member,
    comparison: &'c Comparison<'a>,
    is_alone: bool,
    width: usize,
) -> Block<'c, 'a> {
    let head = Head {
        who: format!("{} compared with {}", in_short(&other.name), in_short(&base.name)),
        how: environments::method(comparison).into_iter().collect(),
        choice: Choice::Base,
        most_causes: if is_alone { MOST_CAUSES } else { FEW_CAUSES },
        most_only: 0,
        is_helpful: is_alone,
    };
    Block::new(comparison, head, width)
}

/// The name of an environment, with the last two names of a kernel's path, since a line has no room for more.
fn in_short(name: &str) -> String {
    let piece = |piece: &str| match piece.split_once("kernel=") {
        Some((before, path)) => format!("{before}kernel={}", comparison::in_short(path)),
        None => piece.to_owned(),
    };
    if is_guest(name) { name.split(',').map(piece).collect::<Vec<_>>().join(",") } else { name.to_owned() }
}

fn more(session: &Session, width: usize) -> String {
    if builds::harness(session).is_some() {
        return cut(&builds::more(session), width);
    }
    let largest = session.comparisons.iter().flat_map(Comparison::changed);
    let largest = largest.max_by(|one, another| one.size().total_cmp(&another.size()));
    let row = largest.or_else(|| session.comparisons.iter().flat_map(|it| &it.rows).next());
    let benchmark = quoted(row.map_or("entry/syscall", |row| row.case().benchmark.as_str()));
    let line = format!("More: tollgate show --all | tollgate report | tollgate explain {benchmark}");
    if line.width() <= width {
        line
    } else {
        cut(&format!("More: tollgate show --all | tollgate explain {benchmark}"), width)
    }
}
