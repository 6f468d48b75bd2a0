//! The kernel functions that an operation's instructions are in, in a guest that counts them.

use tollgate_engine::session::{FunctionCount, Functions, Lengths};
use tollgate_model::Case;
use tollgate_output::table::{Look, Table, heading, paragraph};

const PROGRAM: &str = "user space";
const SUM: &str = "sum";
const NEAR: f64 = 0.01;

/// A table of functions in the order of their first execution, with the instructions of one operation.
pub fn functions(case: &Case, environment: &str, found: &Functions, width: usize) -> String {
    let mut text = heading(&case.to_string(), width);
    text.push_str(&paragraph(environment, width, "In           "));
    let mut table = Table::new(&["function", "instructions", "share"]);
    let sum: u64 = found.functions.iter().map(|function| function.instructions).sum();
    let mut row = |name: &str, instructions: u64| {
        let share = 100.0 * instructions as f64 / sum.max(1) as f64;
        table.row(Look::Plain, &[name.to_owned(), amount(found, instructions), format!("{share:.1} %")], &[]);
    };
    let (program, kernel): (Vec<&FunctionCount>, Vec<&FunctionCount>) =
        found.functions.iter().partition(|function| function.name.is_none());
    for function in program.iter().chain(&kernel) {
        row(function.name.as_deref().unwrap_or(PROGRAM), function.instructions);
    }
    row(SUM, sum);
    text.push_str(&table.lines(Some(width), false));
    text.push_str(&paragraph(&remarks(found, sum), width, ""));
    text
}

fn amount(found: &Functions, instructions: u64) -> String {
    let operations = found.iterations.max(1).saturating_mul(found.operations.max(1));
    if instructions.is_multiple_of(operations) {
        (instructions / operations).to_string()
    } else {
        format!("{:.2}", instructions as f64 / operations as f64)
    }
}

fn remarks(found: &Functions, sum: u64) -> String {
    let Lengths { iterations, usual, agree, most } = found.lengths;
    let (one, several) = match found.operations {
        0 | 1 => ("operation", "operations"),
        _ => ("iteration", "iterations"),
    };
    let mut of = match found.iterations {
        1 => format!(
            "One {one}; {agree} of {iterations} {several} in a row have the same number of instructions."
        ),
        number => format!(
            "The mean of {number} {several} in a row: {agree} of them have {usual} instructions, and the longest has {most}."
        ),
    };
    if found.operations > 1 {
        of.push_str(&format!(" An iteration has {} operations.", found.operations));
    }
    let mean = sum as f64 / found.iterations.max(1).saturating_mul(found.operations.max(1)) as f64;
    let (least, greatest) = found.range;
    let is_within = mean > least - NEAR && mean < greatest + NEAR;
    of.push_str(&match (least == greatest, is_within) {
        (true, true) => format!(" The sum is what a run counts: {} instructions.", decimal(least)),
        (true, false) => format!(
            " A run counts {} instructions, which is not the sum: its batches have more {several} than were watched.",
            decimal(least)
        ),
        (false, true) => {
            let (least, greatest) = (decimal(least), decimal(greatest));
            format!(" A run counts from {least} to {greatest} instructions, not the same in each batch.")
        }
        (false, false) => {
            let (least, greatest) = (decimal(least), decimal(greatest));
            format!(" A run counts from {least} to {greatest} instructions, which do not include the sum.")
        }
    });
    of.push_str(" From a plugin of QEMU's translator and the guest's /proc/kallsyms.");
    of
}

pub(super) fn decimal(count: f64) -> String {
    if count.fract() == 0.0 { format!("{count:.0}") } else { format!("{count:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(name: Option<&str>, instructions: u64) -> FunctionCount {
        FunctionCount { name: name.map(str::to_owned), file: None, instructions, repeated: 0 }
    }

    fn found(operations: u64, iterations: u64, counted: f64) -> Functions {
        let functions = vec![
            count(Some("entry_SYSCALL_64"), 40 * operations * iterations),
            count(None, 2 * operations * iterations),
            count(Some("do_syscall_64"), 8 * operations * iterations),
        ];
        let lengths = Lengths { iterations: 100, usual: 50, agree: 99, most: 700 };
        Functions { counted, range: (counted, counted), operations, iterations, lengths, functions }
    }

    fn shown(found: &Functions) -> String {
        let case = Case { benchmark: "entry/syscall".to_owned(), params: Default::default() };
        anstream::adapter::strip_str(&functions(&case, "vm:exact", found, 70)).to_string()
    }

    #[test]
    fn programs_stand_apart_and_the_sum_is_that_of_the_rows() {
        let text = shown(&found(1, 1, 50.0));
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let place = |words: &[&str]| rows.iter().position(|row| row.starts_with(words)).expect("a row");
        let order = [
            place(&["user", "space", "2"]),
            place(&["entry_SYSCALL_64", "40", "80.0"]),
            place(&["do_syscall_64", "8"]),
            place(&["sum", "50"]),
        ];
        assert!(order.is_sorted(), "{text}");
        assert!(text.contains("99 of 100") && text.contains("what a run counts: 50"), "{text}");
    }

    #[test]
    fn a_sum_that_is_not_the_count_says_so_and_several_operations_are_divided() {
        assert!(shown(&found(1, 1, 51.0)).contains("A run counts 51 instructions, which is not the sum"));
        let text = shown(&found(4, 10, 50.0));
        assert!(
            text.contains("what a run counts") && text.contains("An iteration has 4 operations"),
            "{text}"
        );
    }

    #[test]
    fn a_count_with_a_spread_has_its_range_and_the_longest_operation() {
        let spread = |range| shown(&Functions { range, ..found(1, 30, 50.5) }).replace('\n', " ");
        let text = spread((49.0, 52.25));
        assert!(text.contains("from 49 to 52.25 instructions, not the same in each batch"), "{text}");
        assert!(text.contains("99 of them have 50 instructions, and the longest has 700"), "{text}");
        assert!(spread((51.0, 52.0)).contains("do not include the sum"));
    }
}
