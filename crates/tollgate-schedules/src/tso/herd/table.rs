//! Turns the parts of a litmus test into programs.

use super::super::formula::{Formula, Goal, Term};
use super::super::program::{Place, Program};
use super::super::state::{Initial, MOST};
use super::super::symbols::{Registers, Symbols, register_named};
use super::super::text::Drafts;
use super::super::text_error::TextError;
use super::super::x86::{Scope, byte};
use super::condition::formula;
use super::parts::{Part, Parts, without_comments};
use super::{Question, Test};

#[derive(Default)]
struct Threads {
    symbols: Symbols,
    registers: Vec<Registers>,
    /// For each thread, the registers that hold the address of a variable.
    pointers: Vec<Vec<(&'static str, Place)>>,
    initial: Initial,
}

pub(super) fn test(file: &str, text: &str) -> Result<Test, TextError> {
    let text = without_comments(text);
    let parts = Parts::parse(&text)?;
    let at = |part: Part<'_>| move |problem| TextError { line: part.line, problem };
    let (names, code) =
        parts.rows.split_first().map_or((&[][..], &[][..]), |(names, code)| (&names[..], code));
    let first = names.first().copied().unwrap_or_default();
    check_names(names).map_err(at(first))?;
    let mut threads = Threads {
        registers: vec![Registers::default(); names.len()],
        pointers: vec![vec![]; names.len()],
        ..Threads::default()
    };
    threads.read_init(parts.init)?;
    let mut programs = Vec::new();
    for (thread, name) in names.iter().enumerate() {
        programs.push(threads.program(thread, *name, code)?);
    }
    let mut shown = Vec::new();
    if let Some(locations) = parts.locations {
        let inside = locations.text.trim().strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let (inside, _) = inside
            .ok_or_else(|| at(locations)("locations are written `locations [x; 0:EAX;]`".to_owned()))?;
        for name in inside.split(';').map(str::trim).filter(|name| !name.is_empty()) {
            threads.shown(name, &mut shown).map_err(at(locations))?;
        }
    }
    let (question, condition, asked) = question(parts.question).map_err(at(parts.question))?;
    let mut asked = formula(asked, |name| threads.shown(name, &mut shown)).map_err(at(parts.question))?;
    if let Some(filter) = parts.filter {
        let filter =
            Box::new(formula(filter.text, |name| threads.shown(name, &mut shown)).map_err(at(filter))?);
        asked = match question {
            Question::ForAll => Formula::Or(Box::new(Formula::Not(filter)), Box::new(asked)),
            _ => Formula::And(filter, Box::new(asked)),
        };
    }
    threads.pointers_are_addresses(&names[0])?;
    shown.sort_by_key(|(term, _)| match *term {
        Term::Register(process, register) => (process, register),
        Term::Cell(address) => (u8::MAX, address),
    });
    Ok(Test {
        name: file.to_owned(),
        about: format!("The litmus test {} on processors with store buffers (x86-TSO).", parts.name),
        listing: listing(&parts, &condition),
        condition,
        question,
        goal: Goal { formula: asked, wanted: question != Question::ForAll },
        shown,
        programs,
        registers: threads.registers,
        symbols: threads.symbols,
        initial: threads.initial,
    })
}

/// Checks that the threads are P0, P1, … in this order.
fn check_names(names: &[Part<'_>]) -> Result<(), String> {
    if names.len() > MOST {
        return Err(format!("the test has {} threads; the model has room for {MOST}", names.len()));
    }
    for (at, name) in names.iter().enumerate() {
        if name.text.split(':').next().map(str::trim) != Some(&format!("P{at}")) {
            return Err(format!(
                "`{}` is not the name of thread {at}; threads are written `P0 | P1 ;`",
                name.text
            ));
        }
    }
    Ok(())
}

fn question(part: Part<'_>) -> Result<(Question, String, &str), String> {
    let text = part.text.trim();
    let (kind, question, rest) = if let Some(rest) = text.strip_prefix("exists") {
        ("exists", Question::Exists, rest)
    } else if let Some(rest) = text.strip_prefix("forall") {
        ("forall", Question::ForAll, rest)
    } else {
        let rest = text.find("exists").map_or("", |at| &text[at + "exists".len()..]);
        ("~exists", Question::NotExists, rest)
    };
    // Later lines, as in a log of herd7, are not part of it.
    let asked = balanced(rest);
    let words: Vec<&str> = asked.split_whitespace().collect();
    if words.is_empty() {
        return Err(format!("`{kind}` asks for nothing; write `{kind} (0:EAX=0)`"));
    }
    Ok((question, format!("{kind} {}", words.join(" ")), asked))
}

/// Returns the lines up to the one in which all parentheses are closed and no operator is left open.
fn balanced(text: &str) -> &str {
    let mut end = 0;
    let mut open = 0_usize;
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        end += line.len();
        open = (open + line.matches('(').count()).saturating_sub(line.matches(')').count());
        let goes_on =
            |line: &str, is: fn(&str, &str) -> bool| ["/\\", "\\/", "=>"].iter().any(|sign| is(line, sign));
        let more = goes_on(line.trim_end(), |line, sign| line.ends_with(sign))
            || lines
                .peek()
                .is_some_and(|next| goes_on(next.trim_start(), |line, sign| line.starts_with(sign)));
        if open == 0 && !more && !text[..end].trim().is_empty() {
            break;
        }
    }
    &text[..end]
}

impl Threads {
    /// Reads `x=0; int y=1; 0:EAX=2; 1:rdi=x;`.
    fn read_init(&mut self, init: Part<'_>) -> Result<(), TextError> {
        let mut line = init.line;
        for entry in init.text.split(';') {
            let blank = entry.len() - entry.trim_start().len();
            let number = line + entry[..blank].matches('\n').count();
            line += entry.matches('\n').count();
            let entry = entry.trim();
            if !entry.is_empty() {
                self.initialise(entry).map_err(|problem| TextError { line: number, problem })?;
            }
        }
        Ok(())
    }

    fn initialise(&mut self, entry: &str) -> Result<(), String> {
        let (left, value) = entry.split_once('=').map_or((entry, "0"), |(left, value)| (left, value.trim()));
        // `int x`, `uint64_t 0:rax`: types make no difference to a byte.
        let name = left.split_whitespace().next_back().unwrap_or("").trim_start_matches('*');
        let (place, register) = (name, name.split_once(':'));
        match register {
            Some((thread, register)) => {
                let (thread, register) = self.register(thread, register)?;
                let is_number = value.starts_with(|first: char| first.is_ascii_digit() || first == '-');
                if is_number {
                    let number = self.registers[thread].number(register)?;
                    self.initial.registers[thread][usize::from(number)] = byte(value)?;
                } else {
                    let pointed = self.symbols.place(bare(value.trim_start_matches('&')))?;
                    self.pointers[thread].retain(|(known, _)| *known != register);
                    self.pointers[thread].push((register, pointed));
                }
            }
            None => {
                let place = self.symbols.place(bare(place))?;
                self.initial.memory[usize::from(place.base)] = byte(value)?;
            }
        }
        Ok(())
    }

    fn register(&self, thread: &str, register: &str) -> Result<(usize, &'static str), String> {
        let thread = thread.trim().trim_start_matches('P');
        let number = thread.parse().ok().filter(|&number: &usize| number < self.registers.len());
        let number = number.ok_or_else(|| {
            format!(
                "there is no thread {thread}; the threads are 0 to {}",
                self.registers.len().saturating_sub(1)
            )
        })?;
        let name = register_named(register.trim()).ok_or_else(|| {
            format!("`{register}` is not a register of the model, which has EAX, RAX and the like")
        })?;
        Ok((number, name))
    }

    /// Resolves a name in a condition, and shows it under that name.
    fn shown(&mut self, name: &str, shown: &mut Vec<(Term, String)>) -> Result<Term, String> {
        let term = match name.split_once(':') {
            Some((thread, register)) => {
                let (thread, register) = self.register(thread, register)?;
                Term::Register(thread as u8, self.registers[thread].number(register)?)
            }
            None => Term::Cell(self.symbols.place(bare(name))?.base),
        };
        if !shown.iter().any(|(known, _)| *known == term) {
            shown.push((term, bare(name).to_owned()));
        }
        Ok(term)
    }

    fn program(
        &mut self,
        thread: usize,
        name: Part<'_>,
        rows: &[Vec<Part<'_>>],
    ) -> Result<Program, TextError> {
        let mut drafts = Drafts::default();
        let mut scope = Scope {
            symbols: &mut self.symbols,
            registers: &mut self.registers[thread],
            pointers: &self.pointers[thread],
            numbered: false,
        };
        drafts.add(name.line, &format!("P{thread}:"), &mut scope)?;
        let mut last = name.line;
        for row in rows {
            if let Some(cell) = row.get(thread) {
                last = cell.line;
                drafts.add(cell.line, cell.text, &mut scope)?;
            }
            if row.len() > self.pointers.len() {
                let problem = format!(
                    "this row has {} cells, and there are {} threads",
                    row.len(),
                    self.pointers.len()
                );
                return Err(TextError { line: row[0].line, problem });
            }
        }
        drafts.program(last)
    }

    /// Checks that a register with an address is used only as an address: the model has no address values.
    fn pointers_are_addresses(&self, first: &Part<'_>) -> Result<(), TextError> {
        for (thread, pointers) in self.pointers.iter().enumerate() {
            if let Some((register, _)) =
                pointers.iter().find(|(name, _)| self.registers[thread].find(name).is_some())
            {
                let problem = format!(
                    "P{thread} uses {register} as a number, but it begins with the address of a variable; the model has no addresses"
                );
                return Err(TextError { line: first.line, problem });
            }
        }
        Ok(())
    }
}

/// Removes the brackets that a variable may have in a condition.
fn bare(name: &str) -> &str {
    let name = name.trim().trim_start_matches('*');
    name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name).trim()
}

fn listing(parts: &Parts<'_>, condition: &str) -> String {
    let columns = parts.rows.iter().map(Vec::len).max().unwrap_or(0);
    let cell = |row: &[Part<'_>], at: usize| {
        let words: Vec<&str> = row.get(at).map_or("", |cell| cell.text).split_whitespace().collect();
        words.join(" ")
    };
    let width = |at: usize| parts.rows.iter().map(|row| cell(row, at).chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let values: Vec<&str> = parts.init.text.split_whitespace().collect();
    let values = if values.is_empty() { String::new() } else { format!(" {} ", values.join(" ")) };
    let mut text = format!("{} {}\n{{{values}}}\n", parts.arch, parts.name);
    for row in &parts.rows {
        let cells: Vec<String> =
            widths.iter().enumerate().map(|(at, width)| format!("{:width$}", cell(row, at))).collect();
        text.push_str(&format!("{} ;\n", cells.join(" | ")));
    }
    text.push_str(condition);
    text.push('\n');
    text
}
