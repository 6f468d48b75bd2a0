//! Commands whose instructions were counted: a table of counts, and the difference of each other command from the first.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use tollgate_engine::session::{FunctionCount, UNASKED};
use tollgate_model::versus::{CALLS, COUNTED, INSTRUCTIONS, TICKS, USER_INSTRUCTIONS};
use tollgate_model::{Case, Run};
use tollgate_output::figures::{self, thousands};
use tollgate_output::table::{Table, heading, paragraph};
use tollgate_output::value::NONE;

use super::cells::{self, Cell};
use crate::atlas::Atlas;
use crate::compare::columns::{self, Choice, Compared};
use crate::comparison::{ComparedRow, Comparison};
use crate::counts::{self, OF_COMMANDS};
use crate::session::{Session, atlas};
use crate::summary::{Figures, Summary};

pub(super) const METHOD: &str = "Counted: instructions of an execution by QEMU's translator (-icount), the same at each boot. Each command has a boot of its own.";

pub(super) fn is_counted(cells: &[Cell]) -> bool {
    cells.iter().any(|cell| cell.figures(INSTRUCTIONS).is_some())
}

pub(crate) fn row<'c, 'a>(comparison: &'c Comparison<'a>) -> Option<&'c ComparedRow<'a>> {
    comparison.row(&Case::plain(INSTRUCTIONS))
}

pub(super) fn table(cells: &[Cell], width: usize) -> String {
    let median = |cell: &Cell, case: &str| cell.figures(case).map(|figures| whole(figures.estimate.median));
    let rows = cells.iter().map(|cell| (cell.label.clone(), OF_COMMANDS.map(|(_, case)| median(cell, case))));
    let heads = std::iter::once("counted").chain(OF_COMMANDS.map(|(name, _)| name));
    Table::of_cells(heads, rows).lines(Some(width), false)
}

pub(super) fn compared(base: &str, other: &str, comparison: &Comparison, width: usize) -> String {
    let rows = OF_COMMANDS.into_iter().filter_map(|(name, case)| {
        let row = comparison.row(&Case::plain(case))?;
        let is_idle = case == TICKS && [row.result.base, row.result.other] == [Some(0.0); 2];
        (!is_idle).then(|| (Compared::new(comparison, row).named(name), None))
    });
    let columns = columns::of_table(comparison, Choice::Both).headed("case", "");
    let columns = columns.headed("base", base.to_owned()).headed("other", other.to_owned());
    let table = Table::from_rows(&columns, rows);
    heading(&format!("{other} compared with {base}"), width) + &table.lines(Some(width), false)
}

/// `+12`, `-12`, and no figure for zero.
fn signed(adds: f64) -> String {
    let sign = if adds < 0.0 { "-" } else { "+" };
    if adds == 0.0 { NONE.to_owned() } else { format!("{sign}{}", whole(adds.abs())) }
}

fn whole(count: f64) -> String {
    thousands(&format!("{count:.0}"))
}

/// The functions of one watched execution of each command, with the differences of the others from the first: the
/// largest, or with `all` all of them. The lists are those of the session's members.
pub fn functions(session: &Session, lists: &[Vec<FunctionCount>], all: bool, width: usize) -> String {
    const MOST: usize = 20;
    let cells = cells::all(session);
    let mut rows = rows(lists);
    if rows.is_empty() {
        return String::new();
    }
    let summaries: Vec<&Summary> = session.members.iter().map(|member| &member.summary).collect();
    let kernels = Atlas::of_command(&summaries);
    let difference = |row: &Function| if kernels.is_some() { row.step() } else { row.difference() };
    rows.sort_by_key(|row| std::cmp::Reverse((difference(row), row.sides.first().copied())));
    let labels = cells.iter().map(|cell| Cow::Owned(cell.label.clone()));
    let last = match lists.len() {
        1 => vec!["rep"],
        2 => vec!["adds", "rep adds"],
        _ => Vec::new(),
    };
    let shown = if all { rows.len() } else { MOST.min(rows.len()) };
    let cells_of = |row: &Function| {
        let counts = row.sides.iter().map(|[count, _]| thousands(&count.to_string()));
        let last = match row.sides.as_slice() {
            [[_, repeated]] => vec![thousands(&repeated.to_string())],
            [base, other] => [0, 1].map(|of| signed(other[of] as f64 - base[of] as f64)).to_vec(),
            _ => Vec::new(),
        };
        (row.name.clone(), counts.chain(last).map(Some).collect::<Vec<_>>())
    };
    let heads = [Cow::Borrowed("function")].into_iter().chain(labels);
    let heads = heads.chain(last.into_iter().map(Cow::Borrowed));
    let table = match &kernels {
        Some(kernels) => atlas::blocks(lists.len(), width, &|some| {
            let names =
                kernels.short_names()[some.clone()].iter().cloned().map(Cow::Owned).collect::<Vec<_>>();
            let counts = |row: &Function| {
                let sides = row.sides[some.clone()].iter();
                sides.map(|[count, _]| Some(thousands(&count.to_string()))).collect::<Vec<_>>()
            };
            let heads = [Cow::Borrowed("function")].into_iter().chain(names);
            Table::of_cells(heads, rows[..shown].iter().map(|row| (row.name.clone(), counts(row))))
        }),
        None => Table::of_cells(heads, rows[..shown].iter().map(cells_of)).lines(Some(width), false),
    };
    let left = rows.len() - shown;
    let more = if left > 0 {
        format!("{} more with --all. ", figures::count(left, "function", "functions"))
    } else {
        String::new()
    };
    let renamed = match rows.iter().filter(|row| row.is_renamed).count() {
        0 => String::new(),
        number => format!(
            " {} by equal counts that only one side has: `old → new`.",
            figures::count(number, "name is taken for another", "names are taken for others")
        ),
    };
    let said = format!(
        "{more}From one execution, the second: kernel functions by the guest's /proc/kallsyms, those of programs by the symbols of their files. No other column includes iterations of rep.{renamed}"
    );
    format!("\n{}{}{}", heading("By function", width), table, paragraph(&said, width, ""))
}

struct Function {
    name: String,
    /// For each side the instructions, and further iterations of `rep`.
    sides: Vec<[u64; 2]>,
    /// Whether the second side has it by another name.
    is_renamed: bool,
}

impl Function {
    fn difference(&self) -> u64 {
        let base = self.sides.first().copied().unwrap_or_default();
        self.sides.iter().map(|side| apart(*side, base)).max().unwrap_or_default()
    }

    /// The largest difference between neighbouring sides.
    fn step(&self) -> u64 {
        self.sides.windows(2).map(|pair| apart(pair[0], pair[1])).max().unwrap_or_default()
    }
}

fn apart(one: [u64; 2], other: [u64; 2]) -> u64 {
    one[0].abs_diff(other[0]).max(one[1].abs_diff(other[1]))
}

const PROGRAM: &str = "user space";

/// A function by its file and its name.
type Key<'f> = (Option<&'f str>, Option<&'f str>);

fn called((file, name): Key<'_>) -> String {
    match (file, name) {
        (None, name) => name.unwrap_or(PROGRAM).to_owned(),
        // A name of the kernel's, such as [vdso].
        (Some(file), None) if file.starts_with('[') => file.to_owned(),
        (Some(file), name) => format!("{file}: {}", name.unwrap_or("(no symbol)")),
    }
}

/// Functions with fewer instructions may have equal counts by chance.
const LEAST_RENAMED: u64 = 500;

/// Functions by their names. With two sides, a function that only the first has and one that only the second has are the same if
/// both have equal counts that no other one has. If one side does not divide programs into functions, each side has one row for them.
fn rows(lists: &[Vec<FunctionCount>]) -> Vec<Function> {
    let is_whole = |function: &FunctionCount| function.file.is_none() && function.name.is_none();
    let is_divided = !lists.iter().flatten().any(is_whole);
    let mut counts: BTreeMap<Key<'_>, Vec<[u64; 2]>> = BTreeMap::new();
    for (at, list) in lists.iter().enumerate() {
        for function in list {
            let key = if function.is_of_program() && !is_divided {
                (None, None)
            } else {
                (function.file.as_deref(), function.name.as_deref())
            };
            let count = &mut counts.entry(key).or_insert_with(|| vec![[0; 2]; lists.len()])[at];
            *count = [count[0] + function.instructions, count[1] + function.repeated];
        }
    }
    let mut renamed: BTreeMap<Key<'_>, Key<'_>> = BTreeMap::new();
    if lists.len() == 2 {
        let mut alone: BTreeMap<[u64; 2], [Vec<Key<'_>>; 2]> = BTreeMap::new();
        for (key, sides) in &counts {
            match sides.as_slice() {
                [base, [0, 0]] if base[0] >= LEAST_RENAMED => alone.entry(*base).or_default()[0].push(*key),
                [[0, 0], other] if other[0] >= LEAST_RENAMED => {
                    alone.entry(*other).or_default()[1].push(*key)
                }
                _ => {}
            }
        }
        for sides in alone.into_values() {
            if let [[old], [new]] = sides.each_ref().map(Vec::as_slice)
                && old.0 == new.0
            {
                renamed.insert(*old, *new);
            }
        }
    }
    let news: Vec<Key<'_>> = renamed.values().copied().collect();
    let rows = counts.into_iter().filter(|(key, _)| !news.contains(key));
    let row = |(key, sides): (Key<'_>, Vec<[u64; 2]>)| match renamed.get(&key) {
        Some(new) => {
            let sides = vec![sides[0]; 2];
            Function { name: format!("{} → {}", called(key), called(*new)), sides, is_renamed: true }
        }
        None => Function { name: called(key), sides, is_renamed: false },
    };
    rows.map(row).collect()
}

/// Instructions in a function of the kernel, or of a program.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct FunctionRecord {
    /// Its name; absent for the instructions of programs that are not divided, and of a file without symbols.
    function: Option<String>,
    /// The file of a program's function; for the kernel's absent, or `[interrupts]` or `[other threads]`.
    file: Option<String>,
    /// Instructions in it.
    instructions: u64,
    /// Further iterations of repeating instructions, which are not among `instructions`.
    rep_iterations: u64,
}

pub(super) fn functions_record(list: &[FunctionCount]) -> Vec<FunctionRecord> {
    let one = |function: &FunctionCount| FunctionRecord {
        function: function.name.clone(),
        file: function.file.clone(),
        instructions: function.instructions,
        rep_iterations: function.repeated,
    };
    list.iter().map(one).collect()
}

/// The notes on the counts of a command: the spread of its executions, its ticks, and what is unknown.
pub(super) fn notes(cell: &Cell) -> Vec<String> {
    let Some(total) = cell.figures(INSTRUCTIONS) else { return Vec::new() };
    let spread = (!total.is_exact()).then(|| spread(total));
    let ticks = cell.figures(TICKS).map(|ticks| ticks.estimate.max).filter(|ticks| *ticks > 0.0);
    let ticks = ticks.map(|ticks| {
        let ticks = figures::count(ticks as usize, "tick", "ticks");
        format!("an execution includes up to {ticks} of the kernel, whose instructions are in its total")
    });
    let run = cell.member.summary.run;
    let split = why_not(run, USER_INSTRUCTIONS).map(|why| format!("no split into user and kernel: {why}"));
    let calls =
        why_not(run, CALLS).filter(|why| *why != UNASKED).map(|why| format!("no system calls: {why}"));
    [spread, ticks, split, calls].into_iter().flatten().collect()
}

fn spread(total: &Figures) -> String {
    let of = &total.estimate;
    let range = counts::batches(total).unwrap_or_default();
    let share = 100.0 * (of.max - of.min) / of.median.max(1.0);
    format!("executions within one boot differ by {range} ({share:.2} %), equally at each boot")
}

fn why_not<'r>(run: &'r Run, case: &str) -> Option<&'r str> {
    run.measurement(&Case::plain(case))?.outcome.why()
}

/// A count of a command.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum CountRecord {
    /// It was counted.
    Counted {
        /// The median.
        median: f64,
        /// The smallest.
        min: f64,
        /// The largest.
        max: f64,
        /// The count of each execution, in their order.
        samples: Vec<f64>,
    },
    /// It was not.
    Not {
        /// Why not.
        why_not: Option<String>,
    },
}

/// The counts of a command for a document, by case; `None` if none was counted.
pub(super) fn record(cell: &Cell) -> Option<BTreeMap<String, CountRecord>> {
    cell.figures(INSTRUCTIONS)?;
    let field = |case: &&str| {
        let name = case.strip_prefix("versus/").unwrap_or(case).replace('-', "_");
        let value = match cell.figures(case) {
            Some(figures) => CountRecord::Counted {
                median: figures.estimate.median,
                min: figures.estimate.min,
                max: figures.estimate.max,
                samples: figures.measured.samples.clone(),
            },
            None => CountRecord::Not { why_not: why_not(cell.member.summary.run, case).map(str::to_owned) },
        };
        (name, value)
    };
    Some(COUNTED.iter().map(field).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(all: &[(&str, u64, u64)]) -> Vec<FunctionCount> {
        let of = |&(name, instructions, repeated): &(&str, u64, u64)| FunctionCount {
            file: None,
            name: Some(name.to_owned()),
            instructions,
            repeated,
        };
        all.iter().map(of).collect()
    }

    fn names(lists: &[Vec<FunctionCount>]) -> Vec<String> {
        rows(lists).into_iter().map(|row| row.name).collect()
    }

    #[test]
    fn a_function_that_one_side_alone_has_is_the_other_s_of_as_many_instructions() {
        let old = list(&[("updated", 19_166, 0), ("memset", 900, 5), ("same", 10, 0)]);
        let new = list(&[("__updated", 19_166, 0), ("memset_orig", 900, 0), ("same", 12, 0)]);
        assert_eq!(
            names(&[old.clone(), new.clone()]),
            ["memset", "memset_orig", "same", "updated → __updated"]
        );
        // A third side, few instructions, and two candidates.
        assert_eq!(names(&[old.clone(), new.clone(), new]).len(), 5);
        assert_eq!(names(&[list(&[("a", 499, 0)]), list(&[("b", 499, 0)])]), ["a", "b"]);
        let two = list(&[("__updated", 19_166, 0), ("other", 19_166, 0)]);
        assert_eq!(names(&[list(&[("updated", 19_166, 0)]), two]), ["__updated", "other", "updated"]);
        // Functions of two programs, or of a program and the kernel, are never the same.
        let of_program = |file: &str, name: &str| {
            let [function] = &list(&[(name, 600, 0)])[..] else { unreachable!() };
            vec![FunctionCount { file: Some(file.to_owned()), ..function.clone() }]
        };
        assert_eq!(names(&[of_program("ls", "a"), of_program("ls", "b")]), ["ls: a → ls: b"]);
        assert_eq!(names(&[of_program("ls", "a"), of_program("libc", "b")]), ["libc: b", "ls: a"]);
        let whole = vec![FunctionCount { name: None, ..list(&[("", 700, 0)])[0].clone() }];
        assert_eq!(names(&[of_program("ls", "a"), whole.clone()]), ["user space"]);
        assert_eq!(names(&[of_program("[interrupts]", "tick"), whole]), ["user space", "[interrupts]: tick"]);
        assert_eq!(names(&[of_program("ls", "a"), list(&[("b", 600, 0)])]), ["b", "ls: a"]);
        let rows = rows(&[old]);
        assert_eq!((rows[0].name.as_str(), &rows[0].sides), ("memset", &vec![[900, 5]]));
    }
}
