//! Reads x86 instructions, in the syntaxes of Intel and of AT&T.

use tollgate_output::figures;

use super::program::{Calculation, Condition, Op, Operand, Place, Register, Value};
use super::symbols::{Registers, Symbols, is_name, register_named};
use crate::mips::number;

/// The meaning of names in an instruction.
pub struct Scope<'a> {
    pub symbols: &'a mut Symbols,
    pub registers: &'a mut Registers,
    /// Registers that hold addresses, as the beginning of a litmus test says.
    pub pointers: &'a [(&'static str, Place)],
    /// Whether every process runs this program. Then `i` is the number of the process, `j` that of the other one of two,
    /// and a register may hold the address of a variable.
    pub numbered: bool,
}

/// An operation, and the label of its target.
pub type Draft = (Op, Option<String>);

pub const MNEMONICS: &str = "mov xchg cmpxchg xadd add sub and or xor cmp test inc dec mfence lfence sfence nop pause jmp ret je jne jb \
     jbe ja jae jl jle jg jge js jns and the prefix lock; rep stands before nop and ret";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mnemonic {
    Move,
    Exchange,
    CompareExchange,
    ExchangeAdd,
    Calculate(Calculation),
    ByOne(Calculation),
    Fence,
    Nothing,
    Jump,
    Return,
    Branch(Condition, bool),
}

fn mnemonic(word: &str) -> Option<Mnemonic> {
    use Calculation as C;
    use Mnemonic as M;
    Some(match word {
        "mov" => M::Move,
        "xchg" => M::Exchange,
        "cmpxchg" => M::CompareExchange,
        "xadd" => M::ExchangeAdd,
        "add" => M::Calculate(C::Add),
        "sub" => M::Calculate(C::Subtract),
        "and" => M::Calculate(C::And),
        "or" => M::Calculate(C::Or),
        "xor" => M::Calculate(C::ExclusiveOr),
        "cmp" => M::Calculate(C::Compare),
        "test" => M::Calculate(C::Test),
        "inc" => M::ByOne(C::Add),
        "dec" => M::ByOne(C::Subtract),
        "mfence" => M::Fence,
        "lfence" | "sfence" | "nop" | "pause" => M::Nothing,
        "jmp" => M::Jump,
        "ret" => M::Return,
        _ => return condition(word.strip_prefix('j')?),
    })
}

fn condition(code: &str) -> Option<Mnemonic> {
    use Condition as C;
    let (condition, wanted) = match code {
        "e" | "z" => (C::Equal, true),
        "ne" | "nz" => (C::Equal, false),
        "b" | "c" | "nae" => (C::Below, true),
        "ae" | "nc" | "nb" => (C::Below, false),
        "be" | "na" => (C::BelowOrEqual, true),
        "a" | "nbe" => (C::BelowOrEqual, false),
        "l" | "nge" => (C::Less, true),
        "ge" | "nl" => (C::Less, false),
        "le" | "ng" => (C::LessOrEqual, true),
        "g" | "nle" => (C::LessOrEqual, false),
        "s" => (C::Sign, true),
        "ns" => (C::Sign, false),
        _ => return None,
    };
    Some(Mnemonic::Branch(condition, wanted))
}

/// Looks up a mnemonic in either case, with or without a size suffix.
fn sized(word: &str) -> Option<Mnemonic> {
    let word = word.to_ascii_lowercase();
    mnemonic(&word).or_else(|| mnemonic(word.strip_suffix(['b', 'w', 'l', 'q'])?))
}

pub fn is_mnemonic(word: &str) -> bool {
    is_prefix(word) || sized(word).is_some()
}

/// Returns whether this is a prefix, which belongs to the instruction after it.
pub fn is_prefix(word: &str) -> bool {
    is_repeat(word) || word.eq_ignore_ascii_case("lock")
}

fn is_repeat(word: &str) -> bool {
    ["rep", "repe", "repz"].iter().any(|prefix| word.eq_ignore_ascii_case(prefix))
}

/// Parses an instruction.
///
/// # Errors
/// The error, and a correct form.
pub fn instruction(text: &str, scope: &mut Scope<'_>) -> Result<Draft, String> {
    let (mut first, mut rest) = split(text);
    // `rep nop` is pause; before `ret` the prefix does nothing.
    if is_repeat(first) {
        (first, rest) = split(rest);
        if !["nop", "ret", "retq"].iter().any(|known| first.eq_ignore_ascii_case(known)) {
            return Err(format!(
                "rep cannot stand before `{first}` here; the model has no string instructions"
            ));
        }
    }
    let (locked, first, rest) = if first.eq_ignore_ascii_case("lock") {
        let (word, behind) = split(rest);
        (true, word, behind)
    } else {
        (false, first, rest)
    };
    let mnemonic = sized(first)
        .ok_or_else(|| format!("`{first}` is not an instruction of the model; it has {MNEMONICS}"))?;
    let mut operands = operands(rest);
    if is_att(&operands) {
        operands.reverse();
    }
    let counted = |count: usize, example: &str| {
        if operands.len() == count {
            Ok(())
        } else {
            let found = figures::count(operands.len(), "operand", "operands");
            Err(format!("`{first}` is written `{example}`; this has {found}"))
        }
    };
    let op = match mnemonic {
        Mnemonic::Jump | Mnemonic::Branch(..) => {
            counted(1, &format!("{first} label"))?;
            let to = Some(operands[0].clone());
            let op = match mnemonic {
                Mnemonic::Branch(condition, wanted) => Op::Branch { condition, wanted, to: 0 },
                _ => Op::Goto(0),
            };
            return unlocked(locked, first).map(|()| (op, to));
        }
        Mnemonic::Return => {
            counted(0, first)?;
            return unlocked(locked, first).map(|()| (Op::Goto(0), Some("end".to_owned())));
        }
        Mnemonic::Fence | Mnemonic::Nothing => {
            counted(0, first)?;
            if mnemonic == Mnemonic::Fence { Op::Fence } else { Op::Nothing }
        }
        Mnemonic::ByOne(what) => {
            counted(1, &format!("{first} [x]"))?;
            let target = target(&operands[0], scope)?;
            Op::Calculate { what, target, source: Operand::Value(Value::Is(1)), locked }
        }
        _ => {
            counted(2, &format!("{first} {}", example(mnemonic)))?;
            let (to, from) = (operand(&operands[0], scope)?, operand(&operands[1], scope)?);
            pair(mnemonic, first, to, from, locked, scope)?
        }
    };
    let in_memory = matches!(
        op,
        Op::Calculate { target: Operand::Memory(_), .. }
            | Op::CompareExchange { target: Operand::Memory(_), .. }
            | Op::ExchangeAdd { target: Operand::Memory(_), .. }
            | Op::Exchange(Operand::Memory(_), _)
    );
    let reads_only = matches!(op, Op::Calculate { what, .. } if !what.writes());
    if locked && (!in_memory || reads_only) {
        return Err(format!(
            "lock cannot stand before `{}`; it needs an instruction that changes memory",
            text.trim()
        ));
    }
    Ok((op, None))
}

fn example(mnemonic: Mnemonic) -> &'static str {
    match mnemonic {
        Mnemonic::Move => "[x],1` or `mov eax,[x]",
        _ => "[x],eax",
    }
}

fn unlocked(locked: bool, first: &str) -> Result<(), String> {
    if locked { Err(format!("lock cannot stand before `{first}`")) } else { Ok(()) }
}

fn pair(
    mnemonic: Mnemonic,
    word: &str,
    to: Operand,
    from: Operand,
    locked: bool,
    scope: &mut Scope<'_>,
) -> Result<Op, String> {
    if let (Operand::Memory(_), Operand::Memory(_)) = (to, from) {
        return Err(format!("`{word}` has two memory operands; an instruction takes one"));
    }
    let register = |operand: Operand| match operand {
        Operand::Value(Value::Register(register)) => Ok(register),
        _ => Err(format!("`{word}` needs a register as one operand, such as eax")),
    };
    let constant = |operand| matches!(operand, Operand::Value(Value::Is(_) | Value::I | Value::J));
    if constant(to) && !matches!(mnemonic, Mnemonic::Calculate(what) if !what.writes()) {
        return Err(format!("`{word}` writes to a number; write the register or the variable first"));
    }
    Ok(match mnemonic {
        Mnemonic::Move => match (to, from) {
            (Operand::Memory(place), Operand::Value(value)) => Op::Store(place, value),
            (_, Operand::Memory(place)) => Op::Load(register(to)?, place),
            (_, Operand::Value(value)) => Op::Set(register(to)?, value),
        },
        Mnemonic::Exchange => match (to, from) {
            (Operand::Value(_), Operand::Memory(_)) => Op::Exchange(from, register(to)?),
            _ => Op::Exchange(to, register(from)?),
        },
        Mnemonic::CompareExchange => {
            let accumulator = scope.registers.number("eax")?;
            Op::CompareExchange { target: to, source: register(from)?, accumulator, locked }
        }
        Mnemonic::ExchangeAdd => Op::ExchangeAdd { target: to, source: register(from)?, locked },
        Mnemonic::Calculate(what) => Op::Calculate { what, target: to, source: from, locked },
        _ => Op::Nothing,
    })
}

/// Splits off the first word.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim()))
}

fn operands(text: &str) -> Vec<String> {
    let mut operands = Vec::new();
    let mut depth = 0_usize;
    // The papers on x86-TSO print `MOV [EAX]←1`.
    for c in text.replace('←', ",").chars() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c == ',' && depth == 0 {
            operands.push(String::new());
        } else {
            if operands.is_empty() {
                operands.push(String::new());
            }
            if let Some(last) = operands.last_mut() {
                last.push(c);
            }
        }
    }
    operands.iter().map(|operand| operand.trim().to_owned()).collect()
}

/// Returns whether the operands are in AT&T order, with the target last. That syntax has `%` before registers and
/// parentheses around memory, and a number can only be the source.
fn is_att(operands: &[String]) -> bool {
    if operands.iter().any(|operand| operand.contains('[') && !operand.contains('(')) {
        return false;
    }
    operands.iter().any(|operand| operand.contains(['%', '(']))
        || operands.first().is_some_and(|first| first.starts_with('$'))
}

/// Parses an operand that is written.
fn target(text: &str, scope: &mut Scope<'_>) -> Result<Operand, String> {
    match operand(text, scope)? {
        Operand::Value(Value::Is(_) | Value::I | Value::J) => {
            Err(format!("`{text}` is a number and cannot be written"))
        }
        operand => Ok(operand),
    }
}

fn operand(text: &str, scope: &mut Scope<'_>) -> Result<Operand, String> {
    let text = without_size(text);
    if let Some(immediate) = text.strip_prefix('$') {
        return value(immediate, scope).map(Operand::Value);
    }
    if let Some(register) = register_named(text) {
        return scope.registers.number(register).map(|register| Operand::Value(Value::Register(register)));
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address(inner, scope).map(Operand::Memory);
    }
    if let Some((name, inner)) =
        text.split_once('(').and_then(|(name, rest)| Some((name, rest.strip_suffix(')')?)))
    {
        let inner = match name {
            "" => inner.to_owned(),
            _ if inner.eq_ignore_ascii_case("%rip") => name.to_owned(),
            distance => format!("{inner}+{distance}"),
        };
        return address(&inner, scope).map(Operand::Memory);
    }
    if matches!(text, "i" | "j") && scope.numbered
        || text.starts_with(|first: char| first.is_ascii_digit() || first == '-')
    {
        return value(text, scope).map(Operand::Value);
    }
    address(text, scope).map(Operand::Memory)
}

/// Removes `dword ptr` and the like.
fn without_size(text: &str) -> &str {
    let mut rest = text.trim();
    loop {
        let (word, behind) = split(rest);
        let is_size =
            ["byte", "word", "dword", "qword", "ptr"].iter().any(|size| word.eq_ignore_ascii_case(size));
        if behind.is_empty() || !is_size {
            return rest;
        }
        rest = behind;
    }
}

/// Resolves the text between brackets or parentheses.
fn address(text: &str, scope: &mut Scope<'_>) -> Result<Place, String> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let text = ["rip+", "rel "]
        .iter()
        .find_map(|prefix| lower.strip_prefix(prefix).map(|rest| &text[text.len() - rest.len()..]))
        .unwrap_or(text);
    if scope.numbered
        && let Some(place) = scope.symbols.pointed(text)?
    {
        return Ok(place);
    }
    match register_named(text) {
        Some(register) => {
            let pointer = scope.pointers.iter().find(|(name, _)| *name == register);
            pointer.map(|(_, place)| *place).ok_or_else(|| {
                format!("`{text}` does not hold the address of a variable; write the variable, such as [x]")
            })
        }
        None if is_name(text.split('[').next().unwrap_or(text).trim()) => scope.symbols.place(text.trim()),
        None => Err(format!("`{text}` is not a place in memory; write [x], b[i], (x), [rdi] or 4(%rdi)")),
    }
}

/// Parses a number of one byte, `i`, or a register.
pub fn value(text: &str, scope: &mut Scope<'_>) -> Result<Value, String> {
    let text = text.trim();
    match text {
        "i" if scope.numbered => return Ok(Value::I),
        "j" if scope.numbered => {
            scope.symbols.of_two = true;
            return Ok(Value::J);
        }
        _ => {}
    }
    if let Some(register) = register_named(text) {
        return scope.registers.number(register).map(Value::Register);
    }
    byte(text).map(Value::Is)
}

/// Parses a number from -128 to 255 as a byte.
pub fn byte(text: &str) -> Result<u8, String> {
    match number(text.trim()) {
        Some(number @ -128..=255) => Ok(number as u8),
        Some(number) => Err(format!("{number} is out of range; the model keeps bytes, -128 to 255")),
        None => Err(format!("`{text}` is not a number; write 1, -1 or 0x10")),
    }
}

pub fn written(op: Op) -> Vec<Register> {
    let register = |operand| match operand {
        Operand::Value(Value::Register(register)) => Some(register),
        _ => None,
    };
    match op {
        Op::Load(to, _) | Op::Set(to, _) => vec![to],
        Op::Calculate { what, target, .. } if what.writes() => register(target).into_iter().collect(),
        Op::Exchange(target, with) => register(target).into_iter().chain([with]).collect(),
        Op::CompareExchange { target, accumulator, .. } => {
            register(target).into_iter().chain([accumulator]).collect()
        }
        Op::ExchangeAdd { target, source, .. } => register(target).into_iter().chain([source]).collect(),
        _ => vec![],
    }
}
