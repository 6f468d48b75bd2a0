//! Reads programs from text: one sentence or instruction per line, labels before a colon.

use std::collections::HashMap;

use super::program::Whose;
use super::program::{Label, Line, Op, Place, Program, Value};
use super::pseudocode::{expanded, is_pseudocode, sentences};
use super::state::{Initial, MOST};
use super::study::Study;
use super::symbols::{Registers, Symbols, is_name, register_named};
use super::text_error::TextError;
use super::x86::{self, Draft, Scope};
use crate::subject::{Correction, Group, Setting, Subject};

/// Lines before their labels are resolved.
#[derive(Default)]
pub(super) struct Drafts {
    lines: Vec<(usize, Line, Option<String>)>,
    named: HashMap<String, usize>,
    numbered: Vec<(String, usize)>,
    /// Labels for the next line.
    waiting: Vec<String>,
}

impl Drafts {
    pub(super) fn add(&mut self, number: usize, text: &str, scope: &mut Scope<'_>) -> Result<(), TextError> {
        let at = |problem| TextError { line: number, problem };
        let mut rest = text.trim();
        while let Some((label, behind)) = rest.split_once(':') {
            self.label(label.trim()).map_err(at)?;
            rest = behind.trim();
        }
        if rest.is_empty() {
            return Ok(());
        }
        let is_sentence =
            !x86::is_mnemonic(rest.split_whitespace().next().unwrap_or("")) || rest.contains('=');
        let (op, to) =
            if is_sentence { sentence(rest, scope) } else { x86::instruction(rest, scope) }.map_err(at)?;
        let words = rest.split_whitespace().collect::<Vec<_>>().join(" ");
        self.push(
            number,
            Line { labels: String::new(), label: None, op, words, sentence: is_sentence || op == Op::Fence },
            to,
        );
        Ok(())
    }

    fn push(&mut self, number: usize, mut line: Line, to: Option<String>) {
        let waiting = std::mem::take(&mut self.waiting);
        line.labels = waiting.iter().map(|label| format!("{label}:")).collect::<Vec<_>>().join(" ");
        // A number does not name the lines below it.
        line.label = waiting.into_iter().rfind(|label| is_name(label));
        self.lines.push((number, line, to));
    }

    fn label(&mut self, label: &str) -> Result<(), String> {
        let position = self.lines.len();
        if is_number(label) {
            self.numbered.push((label.to_owned(), position));
        } else if !is_name(label) || label == "end" || register_named(label).is_some() {
            return Err(format!(
                "`{label}` is not a label; write a name or a number before the colon, but not `end` or a register"
            ));
        } else if self.named.insert(label.to_owned(), position).is_some() {
            return Err(format!("label `{label}` is already there; only numbers can be used again"));
        }
        self.waiting.push(label.to_owned());
        Ok(())
    }

    /// Returns the program, whose jumps must lead to steps.
    pub(super) fn program(self, last: usize) -> Result<Program, TextError> {
        let numbers: Vec<usize> = self.lines.iter().map(|(number, ..)| *number).collect();
        let program = self.resolved(last)?;
        match program.circle() {
            None => Ok(program),
            Some(at) => {
                let problem = "the jumps lead back to this one without a step between them".to_owned();
                Err(TextError { line: numbers.get(at).copied().unwrap_or(last), problem })
            }
        }
    }

    fn resolved(mut self, last: usize) -> Result<Program, TextError> {
        if !self.waiting.is_empty() {
            let behind = self.lines.len() as Label + 1;
            let line = Line {
                labels: String::new(),
                label: None,
                op: Op::Goto(behind),
                words: String::new(),
                sentence: true,
            };
            self.push(last, line, None);
        }
        if self.lines.len() > Program::MOST {
            let problem = format!(
                "this is line {} of the program; the model has room for {}",
                Program::MOST + 1,
                Program::MOST
            );
            return Err(TextError { line: self.lines[Program::MOST].0, problem });
        }
        let mut lines = Vec::new();
        for (at, (number, line, to)) in self.lines.iter().enumerate() {
            let mut line = line.clone();
            if let Some(to) = to {
                let position = self.position(to, at).ok_or_else(|| {
                    let problem = format!("there is no label `{to}`; `end` is after the last line");
                    TextError { line: *number, problem }
                })?;
                line.op = leading(line.op, position);
            }
            lines.push(line);
        }
        Ok(Program::new(lines))
    }

    fn position(&self, name: &str, from: usize) -> Option<Label> {
        let numbered = |label: &str, is: &dyn Fn(usize) -> bool| {
            let found = self.numbered.iter().filter(|(known, at)| known == label && is(*at));
            found.map(|(_, at)| *at).collect::<Vec<_>>()
        };
        let position = if let Some(label) = name.strip_suffix('f').filter(|label| is_number(label)) {
            numbered(label, &|at| at > from).first().copied()
        } else if let Some(label) = name.strip_suffix('b').filter(|label| is_number(label)) {
            numbered(label, &|at| at <= from).last().copied()
        } else if name == "end" {
            Some(self.lines.len())
        } else {
            self.named.get(name).copied()
        };
        position.map(|position| position as Label)
    }
}

fn leading(op: Op, position: Label) -> Op {
    match op {
        Op::If { place, equal, value, .. } => Op::If { place, equal, value, to: position },
        Op::Branch { condition, wanted, .. } => Op::Branch { condition, wanted, to: position },
        _ => Op::Goto(position),
    }
}

/// Returns whether a line has the form of a sentence or of an x86 instruction.
pub(crate) fn is_line(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or("");
    x86::is_mnemonic(word)
        || ["if", "wait", "goto", "critical"].contains(&word)
        || text.contains('=') && !text.starts_with('.')
}

fn is_number(label: &str) -> bool {
    !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit())
}

const SENTENCES: &str = "`x = 1`, `if x == 1 goto label`, `wait until x != 1`, `wait until b[j] == 0 for each j`, `goto label`, \
     `critical section`, or an instruction such as `mov [x],1`";

fn sentence(text: &str, scope: &mut Scope<'_>) -> Result<Draft, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let wrong = || format!("`{text}` is not a line of a program; write {SENTENCES}");
    match words[..] {
        ["critical"] | ["critical", "section"] => return Ok((Op::Critical, None)),
        ["goto", label] => return Ok((Op::Goto(0), Some(label.to_owned()))),
        _ => {}
    }
    if let Some(rest) = text.strip_prefix("if ") {
        let (asked, label) = rest.split_once(" goto ").ok_or_else(wrong)?;
        let (place, equal, value) = question(asked, scope)?.ok_or_else(wrong)?;
        return Ok((Op::If { place, equal, value, to: 0 }, Some(label.trim().to_owned())));
    }
    if let Some(rest) = text.strip_prefix("wait until ") {
        if let Some(all) = rest.strip_suffix("for each j") {
            let name = all.split_once("[j]").filter(|(_, rest)| rest.split_whitespace().eq(["==", "0"]));
            let (name, _) = name.ok_or_else(wrong)?;
            return Ok((Op::WaitForAll(scope.symbols.place(&format!("{}[i]", name.trim()))?), None));
        }
        let (place, equal, value) = question(rest, scope)?.ok_or_else(wrong)?;
        return Ok((Op::Wait { place, equal, value }, None));
    }
    let (place, value) =
        text.split_once('=').filter(|(_, value)| !value.starts_with('=')).ok_or_else(wrong)?;
    if place.trim().is_empty() || place.contains(['!', '<', '>', '+', '-']) {
        return Err(wrong());
    }
    let value = x86::value(value, scope)?;
    Ok((Op::Store(place_of(place, scope)?, value), None))
}

/// Parses `x == 1` or `x != i`.
fn question(text: &str, scope: &mut Scope<'_>) -> Result<Option<(Place, bool, Value)>, String> {
    let equal = text.contains("==");
    let Some((place, value)) = text.split_once(if equal { "==" } else { "!=" }) else { return Ok(None) };
    let value = x86::value(value, scope)?;
    Ok(Some((place_of(place, scope)?, equal, value)))
}

fn place_of(text: &str, scope: &mut Scope<'_>) -> Result<Place, String> {
    let text = text.trim();
    if register_named(text).is_some() {
        return Err(format!("`{text}` is a register; write `mov {text},…` and `cmp {text},…`"));
    }
    scope.symbols.place(text)
}

/// Directives, and their forms.
const DIRECTIVES: &str = ".machine x86, .processes 2 (1 to 4), .rounds 2 (1 to 4), .processors 2 (1 to 4), .preemption none (any, none) and .init x=1";

/// Reads a user's lock for processors with store buffers.
///
/// # Errors
/// The first wrong line, and a correct form.
pub fn from_text(name: &str, text: &str) -> Result<Box<dyn Subject>, TextError> {
    let mut parsed = Parsed::of(text)?;
    if !parsed.program.lines().iter().any(|line| line.op == Op::Critical) {
        let problem =
            "the program has no line `critical section`; write it where the lock is held".to_owned();
        return Err(TextError { line: parsed.count, problem });
    }
    let registers = std::mem::take(&mut parsed.registers);
    let corrections = pointed(text, &parsed);
    Ok(Box::new(Study {
        name: name.to_owned(),
        about: "A program of your own on processors with store buffers.".to_owned(),
        group: Group::Own,
        expected: None,
        program: parsed.program,
        registers,
        symbols: parsed.symbols,
        corrections,
        initial: parsed.initial,
        setting: parsed.setting,
    }))
}

/// Lists the words whose addresses are in registers, if their initial values are not given.
fn pointed(text: &str, parsed: &Parsed) -> Vec<Correction> {
    let unknown = parsed.symbols.pointers().filter(|(_, at)| parsed.initial.memory[usize::from(*at)] == 0);
    let correction = |(register, at): (String, _)| {
        let line =
            text.lines().position(|line| line.to_ascii_lowercase().contains(&register)).unwrap_or(0) + 1;
        let word = parsed.symbols.name_of(at);
        let text = format!(
            "{register} holds the address of the word {word}, which begins with 0; `.init {word}=1` gives it another value"
        );
        Correction { line, text }
    };
    unknown.map(correction).collect()
}

pub(super) struct Parsed {
    pub(super) program: Program,
    pub(super) symbols: Symbols,
    pub(super) registers: Registers,
    pub(super) initial: Initial,
    pub(super) setting: Setting,
    count: usize,
}

impl Parsed {
    pub(super) fn of(text: &str) -> Result<Self, TextError> {
        let (mut symbols, mut registers) = (Symbols::default(), Registers::default());
        let mut setting = Setting::new(2, 2, 2);
        let mut initial = Initial::default();
        let mut drafts = Drafts::default();
        let count = text.lines().count().max(1);
        if let Some(line) = listing(text) {
            return Err(TextError { line, problem: LISTING.to_owned() });
        }
        let lines = if is_pseudocode(text) {
            sentences(text)?
        } else {
            let (is_gnu, mut lines, mut labels) = (is_gnu(text), Vec::new(), 0);
            for (number, line) in (1..).zip(text.lines()) {
                for statement in statements(line, is_gnu) {
                    let simple = expanded(number, &statement, &mut labels)?;
                    lines.extend(simple.into_iter().map(|simple| (number, simple)));
                }
            }
            lines
        };
        for (number, line) in lines {
            let line = line.as_str();
            if let Some((word, rest)) = directive(line) {
                let done = apply(word, rest, &mut setting, &mut initial, &mut symbols);
                done.map_err(|problem| TextError { line: number, problem })?;
                continue;
            }
            let mut scope =
                Scope { symbols: &mut symbols, registers: &mut registers, pointers: &[], numbered: true };
            drafts.add(number, line, &mut scope)?;
        }
        let program = drafts.program(count)?;
        let wrong = |problem| Err(TextError { line: count, problem });
        if let Some(register) = symbols.pointer_among(&registers) {
            return wrong(format!(
                "{register} holds an address and a number; the model has no addresses: write the variable, such as [x]"
            ));
        }
        if symbols.of_two && setting.processes > 2 {
            return wrong(format!(
                "j is the other process of two, and there are {}; write `.processes 2`",
                setting.processes
            ));
        }
        Ok(Self { program, symbols, registers, initial, setting, count })
    }
}

/// Allows cycles of jumps.
#[cfg(test)]
pub(super) fn resolved(text: &str) -> Result<Program, TextError> {
    let mut drafts = Drafts::default();
    let (mut symbols, mut registers) = (Symbols::default(), Registers::default());
    for (number, line) in (1..).zip(text.lines()) {
        let mut scope =
            Scope { symbols: &mut symbols, registers: &mut registers, pointers: &[], numbered: true };
        drafts.add(number, line, &mut scope)?;
    }
    drafts.resolved(1)
}

/// Removes the comment, and the number that a listing has before a line.
pub(crate) fn code(line: &str) -> &str {
    let end = ["//", "#", ";"].iter().filter_map(|mark| line.find(mark)).min().unwrap_or(line.len());
    let code = line[..end].trim();
    let bare = code.trim_start_matches(|c: char| c.is_ascii_digit());
    if bare.len() < code.len() && bare.starts_with(char::is_whitespace) { bare.trim_start() } else { code }
}

/// Returns whether a text has the syntax of the GNU assembler, where a semicolon separates instructions. Elsewhere it
/// begins a comment.
fn is_gnu(text: &str) -> bool {
    text.lines().any(|line| code(line).contains(['%', '$']))
}

/// Splits a line into statements. `lock; decl x` is one, even if a semicolon begins a comment.
fn statements(line: &str, is_gnu: bool) -> Vec<String> {
    let end = ["//", "#"].iter().filter_map(|mark| line.find(mark)).min().unwrap_or(line.len());
    let mut statements: Vec<String> = Vec::new();
    for part in line[..end].split(';') {
        let words = part.rsplit(':').next().unwrap_or(part);
        let first = words.split_whitespace().next().unwrap_or("");
        match statements.last_mut() {
            None => statements.push(code(part).to_owned()),
            Some(last) if x86::is_prefix(last.rsplit(':').next().unwrap_or(last).trim()) => {
                last.push(' ');
                last.push_str(part.trim());
            }
            Some(_) if is_gnu && (x86::is_mnemonic(first) || words.len() < part.len()) => {
                statements.push(part.trim().to_owned());
            }
            Some(_) => break,
        }
    }
    statements
}

const LISTING: &str = "a listing of objdump for x86 is not read; write the instructions alone, with labels for the addresses of jumps, \
     names for memory, and a line `critical section` where the lock is held";

/// Returns the first line of an objdump listing for x86: an address, bytes and an instruction. Words of MIPS have eight
/// digits.
pub(crate) fn listing(text: &str) -> Option<usize> {
    let is_hex =
        |word: &str, least: usize| word.len() >= least && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_of_listing = |line: &&str| {
        let Some((address, rest)) = line.trim_start().split_once(":\t") else { return false };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let bytes = words.iter().take_while(|word| word.len() == 2 && is_hex(word, 2)).count();
        // Without bytes (`--no-show-raw-insn`) an address must be longer than a label.
        is_hex(address, if bytes > 0 { 1 } else { 4 })
            && words.get(bytes).is_some_and(|word| x86::is_mnemonic(word))
    };
    text.lines().position(|line| is_of_listing(&line)).map(|at| at + 1)
}

/// Splits a directive from its arguments.
fn directive(line: &str) -> Option<(&str, &str)> {
    if !line.starts_with('.') || line.contains(':') {
        return None;
    }
    Some(line.split_once(char::is_whitespace).map_or((line, ""), |(word, rest)| (word, rest.trim())))
}

fn apply(
    word: &str,
    rest: &str,
    setting: &mut Setting,
    initial: &mut Initial,
    symbols: &mut Symbols,
) -> Result<(), String> {
    let number = || match rest.parse::<u8>() {
        Ok(number) if (1..=MOST as u8).contains(&number) => Ok(number),
        _ => Err(format!("`{word}` is written `{word} 2` (1 to {MOST}), not with `{rest}`")),
    };
    match word {
        ".processes" => setting.processes = number()?,
        ".rounds" => setting.rounds = number()?,
        ".processors" => setting.processors = number()?,
        ".preemption" if matches!(rest, "any" | "none") => setting.preempted = rest == "any",
        ".preemption" => {
            return Err(format!(
                "`.preemption` is written `.preemption none` or `.preemption any`, not with `{rest}`"
            ));
        }
        ".machine" if rest == "x86" => {}
        ".machine" => {
            return Err(format!(
                "`.machine` is written `.machine x86` or `.machine mips`, not with `{rest}`"
            ));
        }
        ".init" => {
            let (name, value) = rest.split_once('=').ok_or("`.init` is written `.init x=1`")?;
            let name = name.trim();
            let pointed = match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                Some(inner) => symbols.pointed(inner)?,
                None => None,
            };
            let place = pointed.map_or_else(|| symbols.place(name), Ok)?;
            let cells = if place.of == Whose::All { 1 } else { MOST as u8 };
            for process in 0..cells {
                initial.memory[usize::from(place.address(process))] = x86::byte(value)?;
            }
        }
        _ => return Err(format!("`{word}` is not a directive; there are {DIRECTIVES}")),
    }
    Ok(())
}
