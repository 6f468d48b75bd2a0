use std::collections::HashMap;

use super::instruction::Place;
use super::register::Register;
use super::text_error::{Problem, TextError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Statement<'a> {
    pub(super) line: usize,
    pub(super) word: &'a str,
    pub(super) rest: &'a str,
    pub(super) slots: Slots,
}

/// The treatment of delay slots at a statement: `.set` of GNU as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Slots {
    #[default]
    NotSaid,
    /// `.set noreorder`: the instruction after a branch is its delay slot.
    AsWritten,
    /// `.set reorder`: the assembler inserts a `nop` there.
    Filled,
}

const IDLE: &[&str] = &[
    ".align", ".balign", ".end", ".ent", ".file", ".fmask", ".frame", ".globl", ".global", ".ident", ".mask",
    ".p2align", ".section", ".size", ".text", ".type",
];

#[derive(Debug, Default)]
pub(super) struct Lines<'a> {
    pub(super) instructions: Vec<Statement<'a>>,
    pub(super) directives: Vec<Statement<'a>>,
    pub(super) labels: Labels<'a>,
    pub(super) count: usize,
    slots: Slots,
}

/// Labels, with the number of the instruction after each.
#[derive(Debug, Default)]
pub(super) struct Labels<'a> {
    named: HashMap<&'a str, (usize, usize)>,
    numbered: Vec<(&'a str, usize)>,
}

impl<'a> Lines<'a> {
    /// Parses a text.
    ///
    /// # Errors
    /// A label is invalid or defined twice.
    pub(super) fn parse(text: &'a str) -> Result<Self, TextError> {
        let mut lines = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            lines.count = number;
            let mut rest = line.split(['#', ';']).next().unwrap_or("").trim();
            while let Some((label, behind)) = rest.split_once(':') {
                let index = lines.instructions.len();
                lines.labels.add(label.trim(), number, index).map_err(|problem| at(number, problem))?;
                rest = behind.trim();
            }
            lines.add(number, rest);
        }
        Ok(lines)
    }

    fn add(&mut self, line: usize, text: &'a str) {
        if text.is_empty() {
            return;
        }
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        if word == ".set" {
            self.slots = match rest {
                "reorder" => Slots::Filled,
                "noreorder" => Slots::AsWritten,
                _ => self.slots,
            };
            return;
        }
        if IDLE.contains(&word) {
            return;
        }
        let (word, rest) = if is_word(word) { (".word", word) } else { (word, rest) };
        let statement = Statement { line, word, rest, slots: self.slots };
        if word.starts_with('.') && word != ".word" {
            self.directives.push(statement);
        } else {
            self.instructions.push(statement);
        }
    }

    /// Puts a `nop` before the instruction with this number, after the one before it.
    pub(super) fn insert_nop(&mut self, index: usize) {
        let line = self.line(index.saturating_sub(1));
        let nop = Statement { line, word: "nop", rest: "", slots: Slots::AsWritten };
        self.instructions.insert(index.min(self.instructions.len()), nop);
        self.labels.shift(index);
    }

    /// Returns the line of an instruction, or the last line if there is no such instruction.
    pub(super) fn line(&self, index: usize) -> usize {
        self.instructions.get(index).map_or(self.count.max(1), |statement| statement.line)
    }
}

impl<'a> Labels<'a> {
    fn add(&mut self, label: &'a str, line: usize, index: usize) -> Result<(), Problem> {
        if is_number(label) {
            self.numbered.push((label, index));
            return Ok(());
        }
        // `tst` is the first instruction, and may be written before it.
        let taken = matches!(label, "lock" | "preempted") || label == "tst" && index != 0;
        if taken || !is_name(label) || Register::named(label).is_some() {
            return Err(Problem::Label(label.to_owned()));
        }
        match self.named.insert(label, (index, line)) {
            Some((_, first)) => Err(Problem::Duplicate { name: label.to_owned(), first }),
            None => Ok(()),
        }
    }

    pub(super) fn name_first(&mut self, label: &'a str) {
        self.named.insert(label, (0, 1));
    }

    pub(super) fn leads_to(&self, index: usize) -> bool {
        self.named.values().any(|&(at, _)| at == index) || self.numbered.iter().any(|&(_, at)| at == index)
    }

    fn shift(&mut self, index: usize) {
        let named = self.named.values_mut().map(|(at, _)| at);
        named
            .chain(self.numbered.iter_mut().map(|(_, at)| at))
            .filter(|at| **at >= index)
            .for_each(|at| *at += 1);
    }

    /// Resolves `start`, `1f`, `1b` or `tst+0x8` in instruction number `from`.
    pub(super) fn find(&self, name: &str, from: usize) -> Option<i64> {
        let of = |label: &str| {
            let numbered = self.numbered.iter().filter(|(other, _)| *other == label);
            numbered.map(|&(_, index)| index).collect::<Vec<_>>().into_iter()
        };
        let index = if let Some(label) = name.strip_suffix('f').filter(|label| is_number(label)) {
            of(label).find(|&index| index > from)
        } else if let Some(label) = name.strip_suffix('b').filter(|label| is_number(label)) {
            of(label).take_while(|&index| index <= from).last()
        } else if let Some(&(index, _)) = self.named.get(name) {
            Some(index)
        } else {
            return place(name);
        };
        index.map(|index| index as i64)
    }
}

fn place(name: &str) -> Option<i64> {
    let bytes = match name.strip_prefix("tst")? {
        "" => 0,
        rest => number(rest.strip_prefix('+').unwrap_or(rest))?,
    };
    let index = (bytes % 4 == 0).then_some(bytes / 4)?;
    // Targets outside the program are refused later, with their position.
    (Place::NEAR.contains(&index)).then_some(index)
}

pub(crate) fn number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        // `from_str_radix` would accept a sign here.
        Some(digits) if digits.starts_with(['+', '-']) => return None,
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { -value } else { value })
}

pub(super) fn is_word(text: &str) -> bool {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_number(label: &str) -> bool {
    !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn is_name(label: &str) -> bool {
    let begins = |first: char| first.is_ascii_alphabetic() || first == '_';
    label.starts_with(begins) && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

pub(super) fn at(line: usize, problem: Problem) -> TextError {
    TextError { line, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        let texts = ["10", "-10", "0x1f", "-0x10", "0XfF", "9223372036854775807"];
        assert_eq!(texts.map(number), [10, -10, 31, -16, 255, i64::MAX].map(Some));
        let others = ["", "-", "x", "0x", "0x-1", "0x+1", "--1", "+1", "1x", "9223372036854775808", "é"];
        assert_eq!(others.map(number), [None; 11]);
    }

    #[test]
    fn a_numbered_label_is_the_next_or_the_last() {
        let lines = Lines::parse("1: nop\n1: nop\nend: b 1b\n nop\n1: 2: nop # 3: nop\n;4: nop").unwrap();
        assert_eq!(lines.instructions.len(), 5);
        let find = |name| lines.labels.find(name, 2);
        assert_eq!((find("1b"), find("1f"), find("2f"), find("end")), (Some(1), Some(4), Some(4), Some(2)));
        assert_eq!((find("2b"), find("3f"), find("1"), find("4f")), (None, None, None, None));
        assert_eq!((find("tst"), find("tst+0x8"), find("tst-4")), (Some(0), Some(2), Some(-1)));
        assert_eq!((find("tst+2"), find("tstx"), find("tst+0x7fffffffffffffff")), (None, None, None));
    }

    #[test]
    fn labels_that_cannot_be() {
        let problem = |text| Lines::parse(text).unwrap_err().problem;
        assert_eq!(problem("a: nop\na: nop"), Problem::Duplicate { name: "a".into(), first: 1 });
        for label in ["t0", "lock", "", "a b", "é", "-1"] {
            let text = format!("{label}: nop");
            assert_eq!(Lines::parse(&text).unwrap_err().problem, Problem::Label(label.into()));
        }
        assert!(Lines::parse("tst: start: nop").is_ok());
        assert_eq!(problem("nop\ntst: nop"), Problem::Label("tst".into()));
    }
}
