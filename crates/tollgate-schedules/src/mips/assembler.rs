use super::instruction::Instruction;
use super::lines::{Labels, Lines, Statement, at, number};
use super::memory::{CODE, LOCK, PREEMPTED};
use super::program::Program;
use super::register::Register;
use super::text_error::{Problem, TextError, near};

const MNEMONICS: &[(&str, &str, &[usize])] = &[
    ("lw", "lw v0,(a0)", &[2]),
    ("sw", "sw t0,(k1)", &[2]),
    ("ll", "ll v0,(a0)", &[2]),
    ("sc", "sc t0,(a0)", &[2]),
    ("addu", "addu t0,t1,t2", &[3]),
    ("or", "or t0,t1,t2", &[3]),
    ("move", "move k1,a0", &[2]),
    ("addiu", "addiu t0,t1,-1", &[2, 3]),
    ("li", "li t0,1", &[2]),
    ("lui", "lui t0,%hi(preempted)", &[2]),
    ("sll", "sll t0,t1,2", &[3]),
    ("beq", "beq t0,t1,1f", &[3]),
    ("bne", "bne k1,a0,start", &[3]),
    ("beqz", "beqz v0,1f", &[2]),
    ("bnez", "bnez v0,1f", &[2]),
    ("b", "b 1b", &[1]),
    ("jr", "jr ra", &[1]),
    ("nop", "nop", &[0]),
    ("di", "di", &[0]),
    ("ei", "ei", &[0]),
    ("syscall", "syscall", &[0]),
    (".word", ".word 0x0080d821", &[1]),
];

const ALL: &str =
    "lw sw ll sc addu or move addiu li lui sll beq bne beqz bnez b jr nop di ei syscall and .word";

pub(crate) fn is_mnemonic(word: &str) -> bool {
    MNEMONICS.iter().any(|(name, ..)| *name == word)
}

/// Assembles a text.
///
/// # Errors
/// The first wrong line.
pub(super) fn assemble(lines: &Lines<'_>) -> Result<Program, TextError> {
    let mut instructions = Vec::new();
    for (index, statement) in lines.instructions.iter().enumerate() {
        let instruction =
            instruction(&lines.labels, index, statement).map_err(|problem| at(statement.line, problem))?;
        instructions.push(instruction);
    }
    Program::new(instructions).map_err(|(index, problem)| at(lines.line(index), problem))
}

fn instruction(labels: &Labels<'_>, index: usize, statement: &Statement<'_>) -> Result<Instruction, Problem> {
    use Instruction as I;
    use Register::Zero;
    let o = Operands::parse(labels, index, statement)?;
    let instruction = match o.mnemonic {
        "lw" => o.memory().and_then(|(base, offset)| Ok(I::Lw { rt: o.register(0)?, base, offset }))?,
        "sw" => o.stored().and_then(|(base, offset)| Ok(I::Sw { rt: o.register(0)?, base, offset }))?,
        "ll" => o.memory().and_then(|(base, offset)| Ok(I::Ll { rt: o.register(0)?, base, offset }))?,
        "sc" => o.stored().and_then(|(base, offset)| Ok(I::Sc { rt: o.register(0)?, base, offset }))?,
        "addu" => I::Addu { rd: o.register(0)?, rs: o.register(1)?, rt: o.register(2)? },
        "or" => I::Or { rd: o.register(0)?, rs: o.register(1)?, rt: o.register(2)? },
        "move" => I::Addu { rd: o.register(0)?, rs: o.register(1)?, rt: Zero },
        "addiu" => {
            // The last operand is the immediate. With two operands, the register is both read and written.
            let last = o.list.len() - 1;
            I::Addiu { rt: o.register(0)?, rs: o.register(last - 1)?, immediate: o.signed(last)? }
        }
        "li" => I::Addiu { rt: o.register(0)?, rs: Zero, immediate: o.signed(1)? },
        "lui" => I::Lui { rt: o.register(0)?, immediate: o.number(1, 0, 0xffff)? as u16 },
        "sll" => I::Sll { rd: o.register(0)?, rt: o.register(1)?, shift: o.number(2, 0, 31)? as u8 },
        "beq" => I::Beq { rs: o.register(0)?, rt: o.register(1)?, offset: o.target(2)? },
        "bne" => I::Bne { rs: o.register(0)?, rt: o.register(1)?, offset: o.target(2)? },
        "beqz" => I::Beq { rs: o.register(0)?, rt: Zero, offset: o.target(1)? },
        "bnez" => I::Bne { rs: o.register(0)?, rt: Zero, offset: o.target(1)? },
        "b" => I::Beq { rs: Zero, rt: Zero, offset: o.target(0)? },
        "jr" => I::Jr { rs: o.register(0)? },
        "di" => I::Di,
        "ei" => I::Ei,
        "syscall" => I::Syscall,
        ".word" => I::decode(o.word()?)?,
        _ => I::NOP,
    };
    if instruction.written() == Some(Register::Ra) { Err(Problem::WritesRa) } else { Ok(instruction) }
}

struct Operands<'a> {
    labels: &'a Labels<'a>,
    index: usize,
    mnemonic: &'static str,
    list: Vec<&'a str>,
}

impl<'a> Operands<'a> {
    fn parse(labels: &'a Labels<'a>, index: usize, statement: &Statement<'a>) -> Result<Self, Problem> {
        let found = MNEMONICS.iter().find(|(name, ..)| *name == statement.word);
        let Some(&(mnemonic, example, operands)) = found else {
            let near = near(statement.word, MNEMONICS.iter().map(|(name, ..)| *name));
            return Err(Problem::Mnemonic { word: statement.word.to_owned(), near, all: ALL });
        };
        let list: Vec<_> = match statement.rest {
            "" => vec![],
            rest => rest.split(',').map(str::trim).collect(),
        };
        if !operands.contains(&list.len()) {
            return Err(Problem::Operands { mnemonic, example, found: list.len() });
        }
        Ok(Self { labels, index, mnemonic, list })
    }

    fn register(&self, at: usize) -> Result<Register, Problem> {
        register(self.list[at])
    }

    fn memory(&self) -> Result<(Register, i16), Problem> {
        let text = self.list[1];
        let wrong = || Problem::Memory(text.to_owned());
        let inside = text.strip_suffix(')').ok_or_else(wrong)?;
        let (offset, base) = inside.rsplit_once('(').ok_or_else(wrong)?;
        let offset = offset.trim();
        if offset == "%lo" || offset == "%hi" {
            return Err(wrong());
        }
        let offset = if offset.is_empty() { 0 } else { self.in_range(offset, -0x8000, 0x7fff)? };
        Ok((register(base.trim())?, offset as i16))
    }

    /// `offset(base)` of a store; refused if the target is visibly in the program itself.
    fn stored(&self) -> Result<(Register, i16), Problem> {
        let text = self.list[1];
        let symbol = text.split_once("%lo(").and_then(|(_, rest)| rest.split_once(')'));
        let name = symbol.map_or(text, |(name, _)| name).trim();
        if self.labels.find(name, self.index).is_some() {
            return Err(Problem::StoreToCode(name.to_owned()));
        }
        self.memory()
    }

    /// A word: a number, or eight hexadecimal digits as in a listing.
    fn word(&self) -> Result<u32, Problem> {
        let bare = self.list[0];
        match u32::from_str_radix(bare, 16) {
            Ok(word) if bare.len() == 8 => Ok(word),
            _ => Ok(self.number(0, 0, 0xffff_ffff)? as u32),
        }
    }

    fn signed(&self, at: usize) -> Result<i16, Problem> {
        Ok(self.number(at, -0x8000, 0x7fff)? as i16)
    }

    fn number(&self, at: usize, least: i64, most: i64) -> Result<i64, Problem> {
        self.in_range(self.list[at], least, most)
    }

    fn in_range(&self, text: &str, least: i64, most: i64) -> Result<i64, Problem> {
        let value = self.value(text)?;
        if (least..=most).contains(&value) {
            Ok(value)
        } else {
            Err(Problem::Range { mnemonic: self.mnemonic, value, least, most })
        }
    }

    /// A number, or one half of an address. `%hi` is rounded up if needed, so that adding the signed `%lo` gives the
    /// address.
    fn value(&self, text: &str) -> Result<i64, Problem> {
        let half = |prefix| text.strip_prefix(prefix).and_then(|rest: &str| rest.strip_suffix(')'));
        if let Some(name) = half("%hi(") {
            Ok(i64::from(self.address(name.trim())?.wrapping_add(0x8000) >> 16))
        } else if let Some(name) = half("%lo(") {
            Ok(i64::from((self.address(name.trim())? as u16).cast_signed()))
        } else {
            number(text).ok_or_else(|| Problem::Number(text.to_owned()))
        }
    }

    fn address(&self, name: &str) -> Result<u32, Problem> {
        match name {
            "preempted" => Ok(PREEMPTED),
            "lock" => Ok(LOCK),
            _ => match self.labels.find(name, self.index) {
                Some(index) => Ok(CODE.wrapping_add_signed(4 * index as i32)),
                None => Err(Problem::Symbol(name.to_owned())),
            },
        }
    }

    /// The offset of a branch. Whether the program reaches that far is checked when it is complete.
    fn target(&self, at: usize) -> Result<i16, Problem> {
        let name = self.list[at];
        let target =
            self.labels.find(name, self.index).ok_or_else(|| Problem::Undefined { name: name.to_owned() })?;
        let value = target - self.index as i64 - 1;
        i16::try_from(value).map_err(|_| Problem::Range {
            mnemonic: self.mnemonic,
            value,
            least: i64::from(i16::MIN),
            most: i64::from(i16::MAX),
        })
    }
}

fn register(name: &str) -> Result<Register, Problem> {
    Register::named(name).ok_or_else(|| Problem::Register(name.to_owned()))
}
