//! The kernel's functions that an operation's instructions are in, in a guest that counts them.

use tollgate_engine::session::{FunctionCount, Functions};
use tollgate_model::Case;

use crate::table::{Look, Table, heading, paragraph};

/// Instructions of programs, and the sum.
const PROGRAM: &str = "user space";
const SUM: &str = "sum";

/// A table of functions in the order of their first execution, with the instructions of one operation.
pub fn functions(case: &Case, environment: &str, found: &Functions, width: usize) -> String {
    let mut text = heading(&format!("{case} in {environment}"), width);
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

/// Instructions of an operation: whole ones where they are.
fn amount(found: &Functions, instructions: u64) -> String {
    let operations = found.iterations.max(1).saturating_mul(found.operations.max(1));
    match instructions.is_multiple_of(operations) {
        true => (instructions / operations).to_string(),
        false => format!("{:.2}", instructions as f64 / operations as f64),
    }
}

/// How the table came about, and whether its sum is the count.
fn remarks(found: &Functions, sum: u64) -> String {
    let operations = found.iterations.max(1).saturating_mul(found.operations.max(1)) as f64;
    let mut of = match found.iterations {
        1 => {
            format!("One operation; {} of {} that were looked at are as long.", found.agree, found.looked_at)
        }
        number => format!("The mean of {number} operations, which are not all as long as each other."),
    };
    if found.operations > 1 {
        of = of.replace("One operation", "The mean of an iteration").replace("operations", "iterations");
        of.push_str(&format!(" An iteration has {} operations.", found.operations));
    }
    let counted = match found.counted.fract() {
        0.0 => format!("{:.0}", found.counted),
        _ => format!("{:.2}", found.counted),
    };
    let is_equal = (sum as f64 / operations - found.counted).abs() < 0.01;
    of.push_str(&match is_equal {
        true => format!(" The sum is what a run counts: {counted} instructions."),
        false => format!(" A run counts {counted} instructions, which is not the sum."),
    });
    of.push_str(" From QEMU's log of executed instructions and the guest's /proc/kallsyms.");
    of
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(name: Option<&str>, instructions: u64) -> FunctionCount {
        FunctionCount { name: name.map(str::to_owned), instructions }
    }

    fn found(operations: u64, iterations: u64, counted: f64) -> Functions {
        let functions = vec![
            count(Some("entry_SYSCALL_64"), 40 * operations * iterations),
            count(None, 2 * operations * iterations),
            count(Some("do_syscall_64"), 8 * operations * iterations),
        ];
        Functions { counted, operations, iterations, looked_at: 100, agree: 99, functions }
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
}
