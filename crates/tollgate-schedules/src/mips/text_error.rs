use thiserror::Error;
use tollgate_output::figures::count;

pub use super::instruction::DecodeError;

/// Why a text is not a program, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct TextError {
    /// Line number, from 1.
    pub line: usize,
    /// The error.
    pub problem: Problem,
}

/// The error of a line, and a correct form.
#[expect(missing_docs, reason = "the message of a problem says what it is")]
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// An unknown mnemonic, and the similar ones.
    #[error("`{word}` is not an instruction of the model; {}", or_list(.near, "it has", .all))]
    Mnemonic { word: String, near: Vec<&'static str>, all: &'static str },
    #[error("`{mnemonic}` is written `{example}`; this has {}", count(*.found, "operand", "operands"))]
    Operands { mnemonic: &'static str, example: &'static str, found: usize },
    #[error("`{0}` is not a register of the model, which keeps zero v0 a0 k1 t0 t1 t2 ra")]
    Register(String),
    #[error("ra holds the caller's return address and cannot be written; write to v0 or t0 to t2")]
    WritesRa,
    #[error("`{0}` is not a number; write 10, -10, 0x10, %hi(preempted) or %lo(preempted)")]
    Number(String),
    #[error("{value} is out of range: `{mnemonic}` takes {least} to {most} here")]
    Range { mnemonic: &'static str, value: i64, least: i64, most: i64 },
    #[error("`{0}` is not a place in memory; write offset(register), such as 4(a0) or (k1)")]
    Memory(String),
    #[error(
        "`{0}` is not an address of the model, which has lock, preempted, tst and the labels of the program"
    )]
    Symbol(String),
    #[error("`{0}` is in the page of tst(), which can be executed and not written")]
    StoreToCode(String),
    #[error(
        "`{0}` is not a label; write a name or a number before the colon, but not the name of a register"
    )]
    Label(String),
    #[error("label `{name}` is already on line {first}; only numbers can be used again")]
    Duplicate { name: String, first: usize },
    #[error("there is no label `{name}`{}", direction(.name))]
    Undefined { name: String },
    #[error("{target} is outside of the program, whose last instruction is {last}")]
    Target { target: String, last: String },
    #[error(transparent)]
    Word(#[from] DecodeError),
    #[error("a branch or jump is followed by its delay slot; write a nop after it")]
    NoSlot,
    #[error("`{found}` is in the delay slot of the line before; write a nop between them")]
    Slot { found: String },
    #[error("there is no instruction; the shortest program is `jr ra` and `nop`")]
    Empty,
    #[error("this is instruction {} of {count}; the model has room for {most}", .most + 1)]
    TooLong { count: usize, most: usize },
    #[error("the program can run on past this instruction; end it with `jr ra` and `nop`")]
    FallsOff,
    /// An unknown directive, and the similar ones.
    #[error("`{word}` is not a directive; {}", or_list(.near, "there are", .all))]
    Directive { word: String, near: Vec<&'static str>, all: &'static str },
    #[error("`{directive}` is written `{example}`, not with `{found}`")]
    Value { directive: &'static str, example: &'static str, found: String },
}

/// Returns the words that differ from `word` by one letter: another, one more, one less, or two exchanged.
pub(super) fn near(word: &str, words: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    // The cost of a distance is the product of the lengths.
    let is_short = word.len() <= 32;
    words.filter(|other| is_short && strsim::osa_distance(word, other) == 1).collect()
}

/// `near: lw, ll`, or the whole list.
fn or_list(near: &[&'static str], has: &str, all: &str) -> String {
    if near.is_empty() { format!("{has} {all}") } else { format!("did you mean {}?", near.join(" or ")) }
}

fn direction(name: &str) -> &'static str {
    let numbered = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if name.strip_suffix('f').is_some_and(numbered) {
        " further on; backwards it would be written with b"
    } else if name.strip_suffix('b').is_some_and(numbered) {
        " before; forwards it would be written with f"
    } else {
        ""
    }
}
