//! The small language that the machine runs: stores, loads that decide where to go on, fences.
//!
//! It has no registers: all that a load is good for in a lock is a decision.

use std::fmt;

use super::buffer::Address;

/// A variable that a program names. `i` is the number of the process that runs it, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    X,
    Y,
    B,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number, up to 7.
    Is(u8),
    I,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `x = i`.
    Store(Place, Value),
    /// `mfence`.
    Fence,
    /// `if x == i goto label`.
    If(Place, Value, Label),
    /// `if x != i goto label`.
    Unless(Place, Value, Label),
    /// `wait until y == 0`: reads again and again.
    Wait(Place, Value),
    /// `wait until b[j] == 0 for each j`, one process after the other.
    WaitForAll,
    /// `goto label`: no step of its own.
    Goto(Label),
    /// The critical section: one step, and a process that is here holds the lock.
    Critical,
}

/// The name of a line. One that no line has is the end of the program.
pub type Label = &'static str;

#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Its name, where something leads to it.
    pub label: Option<Label>,
    pub op: Op,
}

/// Lines, and how they follow each other.
#[derive(Clone, Debug)]
pub struct Program {
    lines: Vec<Line>,
    /// For each line, and the end, the first that takes a step.
    settled: Vec<u8>,
}

impl Program {
    /// A program. It has at most 255 lines.
    pub fn new(lines: Vec<Line>) -> Self {
        let mut program = Self { settled: Vec::new(), lines };
        program.settled = (0..=program.lines.len()).map(|at| program.settle(at) as u8).collect();
        program
    }

    /// The operation of a line; None at the end.
    pub fn op(&self, at: u8) -> Option<Op> {
        self.lines.get(usize::from(at)).map(|line| line.op)
    }

    /// Where it begins.
    pub fn first(&self) -> u8 {
        self.settled[0]
    }

    /// Where it goes on after a line.
    pub fn after(&self, at: u8) -> u8 {
        self.settled[self.lines.len().min(usize::from(at) + 1)]
    }

    /// Where it goes on at a label.
    pub fn at(&self, label: Label) -> u8 {
        self.settled[self.position(label)]
    }

    /// Is this behind the last line?
    pub fn is_end(&self, at: u8) -> bool {
        usize::from(at) >= self.lines.len()
    }

    /// The position of a line as text, such as `lock:3`: the last label above it, and its number in the listing.
    pub fn name(&self, at: u8) -> String {
        let above = self.lines.iter().take(usize::from(at) + 1);
        let label = above.filter_map(|line| line.label).next_back().unwrap_or("line");
        format!("{label}:{}", usize::from(at) + 1)
    }

    fn position(&self, label: Label) -> usize {
        self.lines.iter().position(|line| line.label == Some(label)).unwrap_or(self.lines.len())
    }

    /// The first line from here on that is no jump. Jumps in a circle lead to the end.
    fn settle(&self, from: usize) -> usize {
        let mut at = from;
        for _ in &self.lines {
            match self.lines.get(at) {
                Some(Line { op: Op::Goto(label), .. }) => at = self.position(label),
                _ => return at,
            }
        }
        self.lines.len()
    }
}

impl Place {
    /// Where it is for a process.
    pub const fn address(self, process: u8) -> Address {
        match self {
            Self::X => 0,
            Self::Y => 1,
            Self::B => 2 + process,
        }
    }
}

impl Value {
    pub const fn of(self, process: u8) -> u8 {
        match self {
            Self::Is(number) => number,
            Self::I => process + 1,
        }
    }
}

/// The name of an address: `x`, `y`, `b[1]`.
pub fn name_of(address: Address) -> String {
    match address {
        0 => "x".to_owned(),
        1 => "y".to_owned(),
        b => format!("b[{}]", b - 1),
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.lines.iter().filter_map(|line| line.label);
        let widest = labels.map(|label| label.len() + 1).max().unwrap_or(0);
        for (at, line) in self.lines.iter().enumerate() {
            let label = line.label.map(|label| format!("{label}:")).unwrap_or_default();
            writeln!(f, "{:2}  {label:widest$} {}", at + 1, line.op)?;
        }
        Ok(())
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(place, value) => write!(f, "{place} = {value}"),
            Self::Fence => write!(f, "mfence"),
            Self::If(place, value, label) => write!(f, "if {place} == {value} goto {label}"),
            Self::Unless(place, value, label) => write!(f, "if {place} != {value} goto {label}"),
            Self::Wait(place, value) => write!(f, "wait until {place} == {value}"),
            Self::WaitForAll => write!(f, "wait until b[j] == 0 for each j"),
            Self::Goto(label) => write!(f, "goto {label}"),
            Self::Critical => write!(f, "critical section"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X => "x",
            Self::Y => "y",
            Self::B => "b[i]",
        })
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(number) => write!(f, "{number}"),
            Self::I => f.write_str("i"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(label: Option<Label>, op: Op) -> Line {
        Line { label, op }
    }

    #[test]
    fn jumps_take_no_step_and_lead_on_over_each_other() {
        let program = Program::new(vec![
            line(None, Op::Goto("b")),
            line(Some("a"), Op::Fence),
            line(Some("b"), Op::Goto("a")),
            line(Some("c"), Op::Goto("c")),
        ]);
        assert_eq!((program.first(), program.at("b"), program.after(0), program.after(1)), (1, 1, 1, 1));
        // A circle, and a label that is not there.
        assert!(program.is_end(program.at("c")) && program.is_end(program.at("d")));
        assert!(!program.is_end(3) && program.op(4).is_none());
    }

    #[test]
    fn it_is_shown_as_it_would_be_written() {
        let program = Program::new(vec![
            line(Some("lock"), Op::Store(Place::B, Value::Is(1))),
            line(None, Op::Unless(Place::Y, Value::I, "lock")),
        ]);
        assert_eq!(program.to_string(), " 1  lock: b[i] = 1\n 2        if y != i goto lock\n");
        assert_eq!((program.name(0), program.name(1)), ("lock:1".to_owned(), "lock:2".to_owned()));
    }
}
