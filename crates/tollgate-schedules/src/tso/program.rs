//! The programs that the machine runs: sentences such as `if y != 0 goto late`, and x86 instructions.

use std::fmt;

use super::buffer::Address;
use super::state::REGISTERS;

/// A word of memory: one for all processes, or one for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The address; for `b[i]`, that of `b[1]`.
    pub base: Address,
    pub of: Whose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    All,
    /// `b[i]`: `i` is the number of the process that runs the program, from 1.
    Own,
    /// `b[j]`: `j` is the other one of two processes.
    Other,
}

const fn other(process: u8) -> u8 {
    process ^ 1
}

pub type Register = u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Is(u8),
    I,
    /// The number of the other one of two processes.
    J,
    Register(Register),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    Memory(Place),
    Value(Value),
}

/// The position of a line; the end of the program comes after the last one.
pub type Label = u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `x = i`, `mov [x],1`.
    Store(Place, Value),
    /// `mov eax,[x]`.
    Load(Register, Place),
    /// `mov eax,1`.
    Set(Register, Value),
    /// `mfence`.
    Fence,
    /// `if x == i goto label`, or with `!=` unless `equal`.
    If { place: Place, equal: bool, value: Value, to: Label },
    /// `wait until y == 0`, by reading again and again.
    Wait { place: Place, equal: bool, value: Value },
    /// `wait until b[j] == 0 for each j`, one process after the other.
    WaitForAll(Place),
    /// `goto label`, `jmp label`: not a step of its own.
    Goto(Label),
    /// The critical section: one step, in which the process holds the lock.
    Critical,
    /// `add [x],1`, `cmp eax,0`.
    Calculate { what: Calculation, target: Operand, source: Operand, locked: bool },
    /// `xchg [x],eax`, which locks memory even without a prefix.
    Exchange(Operand, Register),
    /// `lock cmpxchg [x],ecx`, which compares the accumulator.
    CompareExchange { target: Operand, source: Register, accumulator: Register, locked: bool },
    /// `lock xadd [x],eax`.
    ExchangeAdd { target: Operand, source: Register, locked: bool },
    /// `jne label`.
    Branch { condition: Condition, wanted: bool, to: Label },
    /// `nop`, `pause`, `lfence`, `sfence`: they do not change the order of ordinary memory accesses.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calculation {
    Add,
    Subtract,
    And,
    Or,
    ExclusiveOr,
    Compare,
    Test,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Equal,
    Below,
    BelowOrEqual,
    Less,
    LessOrEqual,
    Sign,
}

/// The flags of a process that [`Condition`] needs.
pub mod flags {
    pub const ZERO: u8 = 1;
    pub const CARRY: u8 = 2;
    /// Sign differs from overflow: less, for signed numbers.
    pub const LESS: u8 = 4;
    pub const SIGN: u8 = 8;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub labels: String,
    /// The last of its labels that is a name.
    pub label: Option<String>,
    pub op: Op,
    /// The text as written.
    pub words: String,
    /// Whether it is a sentence, not an instruction.
    pub sentence: bool,
}

#[derive(Clone, Debug)]
pub struct Program {
    lines: Vec<Line>,
    /// For each line and the end, the first line from there that takes a step.
    settled: Vec<Label>,
}

impl Program {
    pub const MOST: usize = 200;

    pub fn new(lines: Vec<Line>) -> Self {
        let mut program = Self { settled: Vec::new(), lines };
        program.settled = (0..=program.lines.len()).map(|at| program.settle(at) as Label).collect();
        program
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    pub fn line(&self, at: Label) -> Option<&Line> {
        self.lines.get(usize::from(at))
    }

    pub fn op(&self, at: Label) -> Option<Op> {
        self.line(at).map(|line| line.op)
    }

    pub fn first(&self) -> Label {
        self.settled[0]
    }

    pub fn after(&self, at: Label) -> Label {
        self.at(at.saturating_add(1))
    }

    pub fn at(&self, label: Label) -> Label {
        self.settled[self.lines.len().min(usize::from(label))]
    }

    pub fn is_end(&self, at: Label) -> bool {
        usize::from(at) >= self.lines.len()
    }

    /// Names a line, such as `lock:3`: the last label above it, and its number in the listing.
    pub fn name(&self, at: Label) -> String {
        let above = self.lines.iter().take(usize::from(at) + 1);
        let label = above.filter_map(|line| line.label.as_deref()).next_back().unwrap_or("line");
        format!("{label}:{}", usize::from(at) + 1)
    }

    /// Returns the first line from here on that is not a jump. A cycle of jumps leads to the end.
    fn settle(&self, from: usize) -> usize {
        let mut at = from;
        for _ in 0..=self.lines.len() {
            match self.lines.get(at) {
                Some(Line { op: Op::Goto(label), .. }) => at = usize::from(*label),
                _ => return at.min(self.lines.len()),
            }
        }
        self.lines.len()
    }

    /// Returns a jump that leads back to itself, so that a process would never take another step.
    pub fn circle(&self) -> Option<usize> {
        (0..self.lines.len()).find(|&at| {
            let mut to = at;
            (0..=self.lines.len()).all(|_| match self.lines.get(to) {
                Some(Line { op: Op::Goto(label), .. }) => {
                    to = usize::from(*label);
                    true
                }
                _ => false,
            })
        })
    }
}

impl Place {
    pub const fn address(self, process: u8) -> Address {
        match self.of {
            Whose::All => self.base,
            Whose::Own => self.base + process,
            Whose::Other => self.base + other(process),
        }
    }
}

impl Value {
    pub const fn number(self, process: u8, registers: &[u8; REGISTERS]) -> u8 {
        match self {
            Self::Is(number) => number,
            Self::I => process + 1,
            Self::J => other(process) + 1,
            Self::Register(register) => registers[register as usize],
        }
    }
}

impl Calculation {
    /// Returns the result of bytes, and the flags.
    pub fn result(self, target: u8, source: u8) -> (u8, u8) {
        let (signed, other) = (i16::from(target.cast_signed()), i16::from(source.cast_signed()));
        let (result, carry, wide) = match self {
            Self::Add => {
                let (result, carry) = target.overflowing_add(source);
                (result, carry, signed + other)
            }
            Self::Subtract | Self::Compare => (target.wrapping_sub(source), target < source, signed - other),
            Self::And | Self::Test => (target & source, false, signed & other),
            Self::Or => (target | source, false, signed | other),
            Self::ExclusiveOr => (target ^ source, false, signed ^ other),
        };
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        let flags = flag(result == 0, flags::ZERO)
            | flag(carry, flags::CARRY)
            | flag(wide < 0, flags::LESS)
            | flag(result.cast_signed() < 0, flags::SIGN);
        (result, flags)
    }

    pub const fn writes(self) -> bool {
        !matches!(self, Self::Compare | Self::Test)
    }
}

impl Condition {
    pub const fn holds(self, flags: u8) -> bool {
        let asked = match self {
            Self::Equal => flags::ZERO,
            Self::Below => flags::CARRY,
            Self::BelowOrEqual => flags::CARRY | flags::ZERO,
            Self::Less => flags::LESS,
            Self::LessOrEqual => flags::LESS | flags::ZERO,
            Self::Sign => flags::SIGN,
        };
        flags & asked != 0
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest = self.lines.iter().map(|line| line.labels.chars().count()).max().unwrap_or(0);
        for (at, Line { labels, words, .. }) in self.lines.iter().enumerate() {
            let line = format!("{:2}  {labels:widest$} {words}", at + 1);
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::resolved;
    use super::*;

    #[test]
    fn jumps_take_no_step_and_lead_on_over_each_other() {
        let program = resolved("goto b\na: mfence\nb: goto a\nc: goto c\nlast: goto end").unwrap();
        assert_eq!((program.first(), program.at(2), program.after(0), program.after(1)), (1, 1, 1, 1));
        // A cycle.
        assert!(program.is_end(program.at(3)) && program.is_end(program.at(4)));
        assert!(!program.is_end(3) && program.op(5).is_none());
        assert_eq!(program.circle(), Some(3));
    }

    #[test]
    fn it_is_shown_as_it_would_be_written() {
        let program = resolved("lock: b[i] = 1\nif y != i goto lock").unwrap();
        assert_eq!(program.to_string(), " 1  lock: b[i] = 1\n 2        if y != i goto lock\n");
        assert_eq!((program.name(0), program.name(1)), ("lock:1".to_owned(), "lock:2".to_owned()));
    }

    #[test]
    fn flags_are_those_of_bytes() {
        use Calculation::{Add, And, Compare, Subtract};
        use Condition::{Below, Equal, Less, LessOrEqual, Sign};
        assert_eq!(Add.result(255, 1), (0, flags::ZERO | flags::CARRY));
        assert_eq!(Subtract.result(0, 1).0, 255);
        for (a, b, condition, holds) in [
            (1, 1, Equal, true),
            (1, 2, Equal, false),
            (1, 2, Below, true),
            (255, 2, Below, false),
            (255, 2, Less, true),
            (127, 128, Less, false),
            (2, 2, LessOrEqual, true),
            (1, 2, Sign, true),
        ] {
            assert_eq!(condition.holds(Compare.result(a, b).1), holds, "{a} {b} {condition:?}");
        }
        assert!(Equal.holds(And.result(1, 2).1));
    }
}
