//! Reads a user's program: assembler text, with directives for its machine and its checks.

use crate::search::Harm;
use crate::subject::{Group, Subject};

use super::assembler::assemble;
use super::kernel::{Handler, Kernel};
use super::lines::{Lines, Statement, at};
use super::printed::{self, Cleaned};
use super::state::{PROCESSES, PROCESSORS};
use super::study::{ROUNDS, Study, TWO};
use super::text_error::{Problem, TextError, near};

const DIRECTIVES: &[(&str, &str)] = &[
    (".machine", ".machine mips (mips, x86)"),
    (".processes", ".processes 2 (1 to 4)"),
    (".rounds", ".rounds 1 (1 to 4)"),
    (".processors", ".processors 1 (1 to 3)"),
    (".preemption", ".preemption none (any, none)"),
    (".locks", ".locks 1 (1 or 2)"),
    (".kernel", ".kernel k1=set (set, unset, unset-on-refill)"),
    (".handler", ".handler restart (restart, resume, none)"),
    (".check", ".check exclusion lost-lock crash finish (one or more of these)"),
];

const ALL: &str = ".word .machine .processes .rounds .processors .preemption .locks .kernel .handler .check";

/// Reads a subject of the user's own.
///
/// The text is MIPS assembler: one instruction per line, labels before a colon, comments from `#`, `;` or `//` to the end of
/// the line. Omissions of a printed listing are restored (`printed.rs`). It is the body of `tst()`: a0 holds the address of the
/// lock, and v0 is 0 if the lock was taken. Directives describe the machine:
///
/// ```text
/// .processes 2           # 1 to 4
/// .rounds 1              # how often each takes the lock, 1 to 4
/// .processors 1          # 1 to 3
/// .preemption any        # between any two instructions, or none in tst()
/// .locks 1               # words that are taken one after the other, 1 or 2
/// .kernel k1=set         # or unset, or unset-on-refill
/// .handler restart       # or resume, or none
/// .check exclusion lost-lock crash finish
/// ```
///
/// # Errors
/// The first wrong line, and a correct form.
pub fn from_text(name: &str, text: &str) -> Result<Box<dyn Subject>, TextError> {
    let Cleaned { text, mut corrections } = printed::cleaned(text);
    let mut lines = Lines::parse(&text)?;
    printed::correct(&mut lines, &mut corrections);
    let mut study = Study {
        name: name.to_owned(),
        about: "A program of your own.".to_owned(),
        group: Group::Own,
        expected: None,
        program: assemble(&lines)?,
        kernel: Kernel::PUBLISHED,
        checks: Harm::ALL.to_vec(),
        locks: 1,
        setting: TWO,
        corrections,
    };
    let mut checks = vec![];
    for statement in &lines.directives {
        apply(statement, &mut study, &mut checks).map_err(|problem| at(statement.line, problem))?;
    }
    if !checks.is_empty() {
        study.checks = checks;
    }
    Ok(Box::new(study))
}

fn apply(statement: &Statement<'_>, study: &mut Study, checks: &mut Vec<Harm>) -> Result<(), Problem> {
    let Some(&(directive, example)) = DIRECTIVES.iter().find(|(name, _)| *name == statement.word) else {
        let near = near(statement.word, DIRECTIVES.iter().map(|(name, _)| *name));
        return Err(Problem::Directive { word: statement.word.to_owned(), near, all: ALL });
    };
    let given = statement.rest;
    let done = match directive {
        ".check" => add_checks(given, checks),
        ".kernel" => kernel(given).map(|kernel| {
            study.kernel = Kernel { handler: study.kernel.handler, ..kernel };
        }),
        ".machine" => (given == "mips").then_some(()),
        ".preemption" => preemption(given).map(|preempted| study.setting.preempted = preempted),
        ".handler" => handler(given).map(|handler| study.kernel.handler = handler),
        ".locks" => count(given, super::memory::LOCKS as u8).map(|count| study.locks = count),
        ".processes" => count(given, PROCESSES as u8).map(|count| study.setting.processes = count),
        ".rounds" => count(given, ROUNDS).map(|count| study.setting.rounds = count),
        _ => count(given, PROCESSORS).map(|count| study.setting.processors = count),
    };
    done.ok_or_else(|| Problem::Value { directive, example, found: given.to_owned() })
}

fn count(given: &str, most: u8) -> Option<u8> {
    given.parse().ok().filter(|count| (1..=most).contains(count))
}

fn preemption(given: &str) -> Option<bool> {
    match given {
        "any" => Some(true),
        "none" => Some(false),
        _ => None,
    }
}

fn kernel(given: &str) -> Option<Kernel> {
    let (sets_k1, refill_sets_k1) = match given {
        "k1=set" => (true, true),
        "k1=unset" => (false, true),
        "k1=unset-on-refill" => (true, false),
        _ => return None,
    };
    Some(Kernel { sets_k1, refill_sets_k1, ..Kernel::PUBLISHED })
}

fn handler(given: &str) -> Option<Handler> {
    match given {
        "restart" => Some(Handler::Restart),
        "resume" => Some(Handler::Resume),
        "none" => Some(Handler::None),
        _ => None,
    }
}

fn add_checks(given: &str, checks: &mut Vec<Harm>) -> Option<()> {
    for word in given.split_whitespace() {
        checks.push(match word {
            "exclusion" => Harm::Exclusion,
            "lost-lock" => Harm::LostLock,
            "crash" => Harm::Crash,
            "finish" => Harm::Stuck,
            _ => return None,
        });
    }
    (!given.is_empty()).then_some(())
}

#[cfg(test)]
mod tests;
