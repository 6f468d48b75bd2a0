//! Draws a schedule with a column for each process, A on the left, and time running down.

use anstyle::Style;
use tollgate_model::text::clean;
use tollgate_output::table::{paragraph, wrap};

use crate::{Counterexample, Step};

/// If columns would be narrower than this, all processes share one.
const NARROWEST: usize = 24;
const GAP: usize = 2;
/// Width of the process name before its steps in a shared column.
const NAMED: usize = 3;
/// Minimum width for text to the right of the address; otherwise it goes below.
const LEAST_WORDS: usize = 16;

const HEADER: Style = Style::new().bold();

/// Draws the steps of a schedule on `processors` processors, and their outcome.
pub fn draw(counterexample: &Counterexample, processors: u8, width: usize) -> String {
    let layout = Layout::new(counterexample, processors, width);
    let mut text = layout.header();
    for (number, step) in (1..).zip(&counterexample.steps) {
        layout.push(&mut text, number, step);
    }
    text.push('\n');
    if let Some(step) = counterexample.back_to {
        let again = format!("From here on everything repeats from step {}.", step + 1);
        text.push_str(&paragraph(&again, width, ""));
    }
    text.push_str(&paragraph(&sentence(&counterexample.so), width, ""));
    text
}

pub(crate) fn sentence(so: &str) -> String {
    format!("{}.", so.trim_end_matches('.'))
}

struct Layout {
    processes: usize,
    processors: u8,
    /// Width of a step's number, including the spaces after it.
    numbers: usize,
    /// Width of the column of each process; `None` if they share one.
    column: Option<usize>,
    /// Length of the longest address of a process.
    addresses: usize,
    width: usize,
}

impl Layout {
    fn new(counterexample: &Counterexample, processors: u8, width: usize) -> Self {
        let of_processes = || counterexample.steps.iter().filter(|step| step.process.is_some());
        let last = of_processes().filter_map(|step| step.process).max().unwrap_or(0);
        let processes = usize::from(last) + 1;
        let numbers = counterexample.steps.len().to_string().len() + GAP;
        let column = width.saturating_sub(numbers + GAP * (processes - 1)) / processes;
        Self {
            processes,
            processors: processors.max(1),
            numbers,
            column: Some(column).filter(|&column| column >= NARROWEST),
            addresses: of_processes().map(|step| step.place.chars().count()).max().unwrap_or(0),
            width,
        }
    }

    fn header(&self) -> String {
        let Some(column) = self.column else { return String::new() };
        let name = |process| format!("{:<1$}", Step::name(process as u8), column + GAP);
        let names: String = (0..self.processes).map(name).collect();
        format!("{HEADER}{:2$}{}{HEADER:#}\n", "", names.trim_end(), self.numbers)
    }

    fn push(&self, text: &mut String, number: usize, step: &Step) {
        let all = self.width.saturating_sub(self.numbers);
        let (name, indent, width) = match (self.column, self.column_of(step)) {
            (Some(column), Some(at)) => (String::new(), at * (column + GAP), column),
            (Some(_), None) => (String::new(), 0, all),
            // In a shared column the process's name comes first.
            (None, _) => {
                let name = step.process.map(|process| Step::name(process).to_string());
                (name.unwrap_or_default(), NAMED, all.saturating_sub(NAMED))
            }
        };
        let numbers = self.numbers - GAP;
        for (at, line) in self.lines(step, width).iter().enumerate() {
            let number = if at == 0 { number.to_string() } else { String::new() };
            let name = if at == 0 { name.as_str() } else { "" };
            let line = format!("{number:>numbers$}{:GAP$}{name:indent$}{line}", "");
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }

    /// Returns the column of a step: that of its process, or for the machine's steps that of the only process on the
    /// processor. Processes are assigned to processors round-robin.
    fn column_of(&self, step: &Step) -> Option<usize> {
        let processors = usize::from(self.processors);
        let mut there =
            (0..self.processes).filter(|process| process % processors == usize::from(step.processor));
        step.process.map(usize::from).or_else(|| there.next().filter(|_| there.next().is_none()))
    }

    /// Formats a step in lines of this width: `lock:2 x = 1 into the store buffer`, followed by the changes after it or
    /// below.
    fn lines(&self, step: &Step, width: usize) -> Vec<String> {
        let mut lines = match step.process {
            Some(_) => hung(&step.place, &step.what, self.hang(width), width),
            None => hung("", &format!("{}: {}", self.part(step), step.what), 0, width),
        };
        // Changes that the step's own text already states are not repeated.
        let changes = step.changes.iter().filter(|change| !step.what.contains(change.as_str()));
        let changes: Vec<&str> = changes.map(String::as_str).collect();
        if changes.is_empty() {
            return lines;
        }
        let changes = format!("→ {}", changes.join(", "));
        match lines.last_mut() {
            Some(last) if last.chars().count() + 1 + changes.chars().count() <= width => {
                last.push(' ');
                last.push_str(&clean(&changes));
            }
            _ => lines.extend(hung("", &changes, self.hang(width), width)),
        }
        lines
    }

    fn hang(&self, width: usize) -> usize {
        let indent = self.addresses + 1;
        if indent + LEAST_WORDS <= width { indent } else { GAP }
    }

    /// Names the part of the machine that acts, with its processor if the column does not show that.
    fn part(&self, step: &Step) -> String {
        let is_seen = self.processors == 1 || (self.column.is_some() && self.column_of(step).is_some());
        if is_seen { step.place.clone() } else { format!("{} of processor {}", step.place, step.processor) }
    }
}

fn hung(head: &str, words: &str, indent: usize, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = wrap(&clean(words), width.saturating_sub(indent))
        .into_iter()
        .map(|line| format!("{:indent$}{line}", ""))
        .collect();
    let head = clean(head);
    let length = head.chars().count();
    match lines.first_mut() {
        Some(first) if length < indent => {
            let words: String = first.chars().skip(length).collect();
            *first = format!("{head}{words}");
        }
        _ => drop(lines.splice(0..0, wrap(&head, width))),
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(process: Option<u8>, processor: u8, place: &str, what: &str, changes: &[&str]) -> Step {
        let changes = changes.iter().map(ToString::to_string).collect();
        Step { process, processor, place: place.to_owned(), what: what.to_owned(), changes }
    }

    fn counterexample(processor_of_b: u8, back_to: Option<usize>) -> Counterexample {
        let steps = vec![
            step(Some(0), 0, "tst", "move k1,a0", &["k1 = 0x10000000"]),
            step(
                Some(1),
                processor_of_b,
                "tst+0x4",
                "a long instruction that has no end in sight",
                &["v0 = 0"],
            ),
            step(None, processor_of_b, "kernel", "x = 1 reaches memory", &["x = 1"]),
        ];
        Counterexample { harm: None, steps, back_to, so: "A waits for B".to_owned() }
    }

    fn lines(counterexample: &Counterexample, processors: u8, width: usize) -> Vec<String> {
        let text = anstream::adapter::strip_str(&draw(counterexample, processors, width)).to_string();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn each_process_has_its_column() {
        let all = [
            "   A                             B",
            "1  tst     move k1,a0",
            "           → k1 = 0x10000000",
            "2                                tst+0x4 a long instruction",
            "                                         that has no end in",
            "                                         sight → v0 = 0",
            "3                                kernel: x = 1 reaches memory",
            "",
            "A waits for B.",
        ];
        assert_eq!(lines(&counterexample(1, None), 2, 61), all.map(str::to_owned));
    }

    #[test]
    fn a_step_of_the_kernel_on_a_shared_processor_is_in_no_column() {
        let drawn = lines(&counterexample(0, None), 1, 80);
        assert!(drawn.contains(&"3  kernel: x = 1 reaches memory".to_owned()), "{drawn:#?}");
        // On the second of two processors, which runs no process.
        let mut stray = counterexample(1, None);
        stray.steps[1].process = Some(0);
        let drawn = lines(&stray, 2, 80);
        assert!(drawn.contains(&"3  kernel of processor 1: x = 1 reaches memory".to_owned()), "{drawn:#?}");
    }

    #[test]
    fn where_columns_would_be_too_narrow_the_names_stand_in_front() {
        let drawn = lines(&counterexample(1, None), 2, 44);
        assert_eq!(drawn[0], "1  A  tst     move k1,a0 → k1 = 0x10000000");
        assert!(drawn[1].starts_with("2  B  tst+0x4 a long instruction"), "{drawn:#?}");
        assert_eq!(drawn[3], "3     kernel of processor 1: x = 1 reaches");
    }

    #[test]
    fn a_loop_is_said_to_be_one() {
        let drawn = lines(&counterexample(1, Some(1)), 2, 80);
        assert!(drawn.contains(&"From here on everything repeats from step 2.".to_owned()), "{drawn:#?}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut many = counterexample(1, Some(0));
        many.steps.push(step(Some(3), 1, "a-place-that-is-longer-than-any-other", "x", &["y", "z"]));
        for counterexample in [counterexample(0, None), counterexample(1, None), many] {
            for width in 30..160 {
                for line in lines(&counterexample, 2, width) {
                    assert!(line.chars().count() <= width, "{width}: {line}");
                }
            }
        }
    }

    #[test]
    fn what_a_program_says_cannot_command_the_terminal() {
        let steps = vec![step(Some(0), 0, "a\u{1b}[2J", "b\u{7}", &["c\u{9b}"])];
        let counterexample = Counterexample { harm: None, steps, back_to: None, so: "d\u{1b}c".to_owned() };
        assert!(!draw(&counterexample, 1, 80).contains(['\u{7}', '\u{9b}']));
        assert!(lines(&counterexample, 1, 80).iter().all(|line| !line.contains(|c: char| c.is_control())));
    }
}
