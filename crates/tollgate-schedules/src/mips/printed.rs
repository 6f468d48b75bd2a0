//! Listings as printed: restores what a paper, a slide or a page omits or spells differently.
//!
//! A program that an assembler accepts is taken unchanged. Everything that is read differently from how it is written is a
//! correction, which is listed with the result.

use crate::subject::Correction;

use super::lines::{Lines, Slots, Statement, is_name, is_word};
use super::program::Program;
use super::prose::{is_prose, without_dot, without_number};

#[derive(Debug, Default)]
pub(super) struct Cleaned {
    pub(super) text: String,
    pub(super) corrections: Vec<Correction>,
}

/// Removes comments, captions, sentences around the listing and line numbers, narrows the wide characters of East Asian
/// text, and names an address given only as halves. Lines keep their numbers.
pub(super) fn cleaned(text: &str) -> Cleaned {
    let mut cleaned = Cleaned::default();
    let mut in_comment = false;
    let mut prose: Vec<usize> = Vec::new();
    for (line, printed) in (1..).zip(text.lines()) {
        let narrow: String = printed.chars().map(narrow).collect();
        let mut code = without_comments(&narrow, &mut in_comment);
        let mut correct = |text: String| cleaned.corrections.push(Correction { line, text });
        if is_caption(&code) {
            correct(format!("`{}` is a caption and is left out", code.trim()));
            code.clear();
        }
        if let Some(at) = code.find(|c: char| !c.is_ascii()) {
            // No instruction has such characters: this is a remark without a comment sign.
            correct(format!("`{}` is not an instruction and is left out", code[at..].trim_end()));
            code.truncate(at);
        }
        code = without_address(without_number(&code)).to_owned();
        if code.contains(|c: char| c.is_ascii_uppercase()) && !code.contains(|c: char| c.is_ascii_lowercase())
        {
            code = code.to_ascii_lowercase();
        }
        if is_prose(&code) {
            prose.push(line);
            code.clear();
        }
        if let Some(bare) = without_dot(&code) {
            correct(format!("`{}` is read as `{}`", code.trim(), bare.trim()));
            code = bare;
        }
        for half in ["%hi", "%lo"] {
            code = code.replace(&format!("{half} ("), &format!("{half}("));
            let empty = format!("{half}()");
            if code.contains(&empty) {
                correct(format!("`{empty}` names no address and is read as `{half}(preempted)`"));
                code = code.replace(&empty, &format!("{half}(preempted)"));
            }
        }
        cleaned.text.push_str(&code);
        cleaned.text.push('\n');
    }
    cleaned.corrections.extend(skipped(&prose));
    name_flag(&mut cleaned);
    cleaned
}

fn skipped(prose: &[usize]) -> Vec<Correction> {
    let stretches = prose.chunk_by(|line, next| line + 1 == *next);
    let correction = |stretch: &[usize]| {
        let (line, last) = (stretch[0], stretch[stretch.len() - 1]);
        let text = match last - line {
            0 => "it is not assembly and is skipped".to_owned(),
            _ => format!("lines {line} to {last} are not assembly and are skipped"),
        };
        Correction { line, text }
    };
    stretches.map(correction).collect()
}

/// Removes the address and the word that a listing by this program has before an instruction.
fn without_address(line: &str) -> &str {
    let Some((place, rest)) = line.trim_start().split_once(char::is_whitespace) else { return line };
    match rest.trim_start().split_once(char::is_whitespace) {
        Some((word, instruction)) if is_word(word) && (place == "tst" || place.starts_with("tst+0x")) => {
            instruction
        }
        _ => line,
    }
}

/// A listing takes only one word's address by halves, that of the word that the kernel sets, so any name means that word.
fn name_flag(cleaned: &mut Cleaned) {
    let halves = |half: &str| -> Vec<(usize, String)> {
        let lines = (1..).zip(cleaned.text.lines());
        let named = lines.filter_map(|(line, code)| {
            let name = code.split_once(half)?.1.split_once(')')?.0.trim();
            Some((line, name.to_owned()))
        });
        named.collect()
    };
    let (high, low) = (halves("%hi("), halves("%lo("));
    let Some((line, name)) = high.first().cloned() else { return };
    let is_only = high.iter().chain(&low).all(|(_, other)| *other == name) && !low.is_empty();
    let is_known = ["preempted", "lock", "tst"].contains(&name.as_str());
    let is_label = cleaned.text.lines().any(|code| code.split(':').any(|label| label.trim() == name));
    if is_only && !is_known && !is_label && is_name(&name) {
        for half in ["%hi(", "%lo("] {
            cleaned.text = cleaned.text.replace(&format!("{half}{name})"), &format!("{half}preempted)"));
        }
        let text = format!("`{name}` is read as `preempted`, the word that the kernel sets");
        cleaned.corrections.push(Correction { line, text });
    }
}

fn narrow(c: char) -> char {
    match c {
        '\u{3000}' | '\u{a0}' | '\u{2002}'..='\u{2009}' => ' ',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{2212}' | '\u{2010}'..='\u{2013}' => '-',
        _ => c,
    }
}

fn without_comments(line: &str, in_comment: &mut bool) -> String {
    let mut code = String::new();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        match (*in_comment, c, next) {
            (true, '*', Some('/')) => {
                chars.next();
                *in_comment = false;
                code.push(' ');
            }
            (true, ..) => {}
            (false, '/', Some('*')) => {
                chars.next();
                *in_comment = true;
            }
            (false, '/', Some('/')) | (false, '#' | ';', _) => break,
            (false, ..) => code.push(c),
        }
    }
    code
}

fn is_caption(line: &str) -> bool {
    let line = line.trim_start();
    let rest =
        ["Figure", "figure", "FIGURE", "Fig.", "fig.", "図"].iter().find_map(|word| line.strip_prefix(word));
    rest.is_some_and(|rest| rest.trim_start().starts_with(|first: char| first.is_ascii_digit()))
}

/// Replaces misprinted instructions, and inserts a `nop` into each missing delay slot.
pub(super) fn correct(lines: &mut Lines<'_>, corrections: &mut Vec<Correction>) {
    // A program that is too long for the model is refused later, so misprints are not searched for.
    if lines.instructions.len() > Program::MOST {
        return;
    }
    let printed = corrections.len();
    for statement in &mut lines.instructions {
        if let Some(text) = respell(statement) {
            corrections.push(Correction { line: statement.line, text });
        }
    }
    name_start(lines, corrections);
    add_slots(lines, corrections, printed);
    corrections.sort_by_key(|correction| correction.line);
}

/// Spells an instruction as the model's assembler does. Returns the change if it is more than a spelling of GNU as.
fn respell(statement: &mut Statement<'_>) -> Option<String> {
    let (word, rest) = (statement.word, statement.rest);
    let to_ra = matches!(rest, "ra" | "$ra" | "$31" | "(ra)" | "($31)");
    let spelt = match word {
        "j" | "jp" | "jr" if to_ra => ("jr", "ra"),
        "j" | "jp" if !rest.is_empty() => ("b", rest),
        "addui" => ("addiu", rest),
        "sync" | "sync.l" | "sync.p" => ("nop", ""),
        _ => return None,
    };
    (statement.word, statement.rest) = spelt;
    let shown = |word: &str, rest: &str| format!("{word} {rest}").trim_end().to_owned();
    let (was, is) = (shown(word, rest), shown(spelt.0, spelt.1));
    // GNU as itself accepts these two.
    let known = to_ra && (word == "jr" || word == "j" && rest.starts_with('$'));
    (!known && was != is).then(|| format!("`{was}` is read as `{is}`"))
}

fn name_start(lines: &mut Lines<'_>, corrections: &mut Vec<Correction>) {
    let asks = |statement: &&Statement<'_>| statement.rest.rsplit(',').next().map(str::trim) == Some("start");
    let Some(line) = lines.instructions.iter().find(asks).map(|statement| statement.line) else { return };
    if lines.labels.find("start", 0).is_none() {
        lines.labels.name_first("start");
        corrections.push(Correction {
            line,
            text: "no line has the label `start`; it is the first instruction".to_owned(),
        });
    }
}

fn add_slots(lines: &mut Lines<'_>, corrections: &mut Vec<Correction>, printed: usize) {
    // Hand-counted addresses would no longer match the instructions.
    let counted = lines.instructions.iter().any(|statement| statement.rest.contains("tst+"));
    let misprinted = corrections.len() > printed
        || (0..lines.instructions.len())
            .any(|index| jumps(&lines.instructions[index]) && cannot_be(lines, index));
    let mut index = 0;
    while index < lines.instructions.len() {
        let statement = lines.instructions[index];
        let why = match statement.slots {
            _ if !jumps(&statement) => None,
            Slots::AsWritten => None,
            Slots::Filled => Some(String::new()),
            Slots::NotSaid if counted => None,
            Slots::NotSaid => missing(lines, index, misprinted),
        };
        if let Some(why) = why {
            lines.insert_nop(index + 1);
            if !why.is_empty() {
                let branch = format!("{} {}", statement.word, statement.rest);
                corrections.push(Correction {
                    line: statement.line,
                    text: format!("a `nop` is put into the delay slot of `{branch}`: {why}"),
                });
            }
        }
        index += 1;
    }
}

/// Says why the instruction after a branch is not its delay slot; `None` if it is.
fn missing(lines: &Lines<'_>, index: usize, misprinted: bool) -> Option<String> {
    let Some(next) = lines.instructions.get(index + 1) else {
        return Some("the listing ends with it".to_owned());
    };
    let shown = format!("{} {}", next.word, next.rest).trim_end().to_owned();
    if cannot_be(lines, index) {
        return Some(format!("`{shown}` cannot be there"));
    }
    if lines.labels.leads_to(index + 1) {
        return Some(format!("`{shown}` has a label"));
    }
    let conditional = matches!(lines.instructions[index].word, "beq" | "bne" | "beqz" | "bnez");
    if !conditional || next.word == "nop" {
        return None;
    }
    let others = lines.instructions.windows(2).enumerate().filter(|(at, _)| *at != index);
    let all_written = others.clone().all(|(_, pair)| !jumps(&pair[0]) || pair[1].word == "nop");
    let stores = matches!(next.word, "sw" | "sc");
    if misprinted {
        Some(format!("`{shown}` is for one path only"))
    } else if stores && all_written {
        Some(format!("all others have one, and `{shown}` would store on both paths"))
    } else {
        None
    }
}

/// Returns whether the instruction after a branch cannot be in a delay slot, or is missing.
fn cannot_be(lines: &Lines<'_>, index: usize) -> bool {
    lines.instructions.get(index + 1).is_none_or(|next| jumps(next) || next.word == "syscall")
}

/// Returns whether a statement has a delay slot. Instruction words follow the listing that they are from.
fn jumps(statement: &Statement<'_>) -> bool {
    matches!(statement.word, "b" | "beq" | "bne" | "beqz" | "bnez" | "jr")
}
