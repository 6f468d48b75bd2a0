//! Generated C functions with known results: each statement can be printed as C and evaluated here.

use std::fmt::Write;

use super::vocabulary;
use crate::prelude::*;

pub(super) const FIELDS: usize = 6;

pub(super) type State = [u32; FIELDS];

pub(super) struct Names<'a> {
    pub structure: &'a str,
    /// A pointer to the structure.
    pub variable: &'a str,
    pub fields: [&'a str; FIELDS],
    /// A function of another module that depends only on its argument, see [`exported`].
    pub exported: &'a str,
}

/// A statement on the sum that a function finally returns, and on the state.
#[derive(Debug, Clone, Copy)]
enum Statement {
    /// Rotates the sum to the left.
    Rotate { by: u32, with: u32 },
    /// Adds a field, `times` times.
    Add { field: usize, times: u32 },
    /// Changes a field.
    Store { field: usize, by: u32 },
    /// Depends on some bits of the sum.
    Branch { mask: u32, value: u32, field: usize, add: u32, with: u32 },
    /// Multiplies and adds, `times` times.
    Loop { times: u32, factor: u32 },
    /// A switch with four cases.
    Switch { by: u32, field: usize, with: [u32; 3] },
    /// A rare early return.
    Leave { field: usize, mask: u32 },
    /// Calls an earlier function of the module, by its number.
    Call { number: usize, add: u32 },
    /// Calls the function of another module.
    Fold { add: u32 },
}

#[derive(Debug, Clone)]
pub(super) struct Function {
    pub name: String,
    comment: Vec<String>,
    begin: u32,
    statements: Vec<Statement>,
    last: usize,
    /// True if it calls no other function, so that others may call it.
    is_leaf: bool,
}

/// The exported function of a module, the same in all versions.
pub(super) fn exported(factor: u32, value: u32) -> u32 {
    let mut sum = value;
    for at in 0..4 {
        sum = sum.wrapping_mul(factor).wrapping_add(at) ^ (sum >> 15);
    }
    sum
}

pub(super) fn write_exported(text: &mut String, name: &str, factor: u32) {
    let _ = write!(
        text,
        "\n/*\n * Mixes a value. It is the same in every release: others store what it returns.\n */\n\
         uint32_t {name}(uint32_t value)\n{{\n\tuint32_t sum = value;\n\n\
         \tfor (uint32_t at = 0; at < 4u; at++)\n\t\tsum = (sum * {factor:#010x}u + at) ^ (sum >> 15);\n\
         \treturn sum;\n}}\n"
    );
}

impl Function {
    /// Makes a random function of this name. It may call earlier leaves unless it is one.
    pub fn any(random: &mut Random, name: String, noun: &str, is_leaf: bool, earlier: &[Self]) -> Self {
        let leaves: Vec<usize> = (0..earlier.len()).filter(|&at| earlier[at].is_leaf).collect();
        let number = 3 + (random.next_u64() % 6) as usize;
        let mut statements: Vec<Statement> = (0..number).map(|_| Statement::any(random)).collect();
        if !is_leaf && !leaves.is_empty() {
            let number = leaves[(random.next_u64() % leaves.len() as u64) as usize];
            let at = (random.next_u64() % statements.len() as u64) as usize;
            statements.insert(at, Statement::Call { number, add: constant(random) });
        }
        Self {
            comment: comment(random, &name, noun),
            name,
            begin: constant(random),
            statements,
            last: field(random),
            is_leaf,
        }
    }

    /// Evaluates the function: returns its result and updates the state.
    pub fn execute(&self, state: &mut State, value: u32, all: &[Self], factor: u32) -> u32 {
        let mut sum = value ^ self.begin;
        for statement in &self.statements {
            match *statement {
                Statement::Rotate { by, with } => sum = sum.rotate_left(by) ^ with,
                Statement::Add { field, times } => sum = sum.wrapping_add(state[field].wrapping_mul(times)),
                Statement::Store { field, by } => state[field] ^= sum >> by,
                Statement::Branch { mask, value, field, add, with } => {
                    if sum & mask == value {
                        sum = sum.wrapping_add(add);
                        state[field] = state[field].wrapping_add(1);
                    } else {
                        sum ^= with;
                    }
                }
                Statement::Loop { times, factor } => {
                    for at in 0..times {
                        sum = sum.wrapping_mul(factor).wrapping_add(at);
                    }
                }
                Statement::Switch { by, field, with } => match sum >> by & 3 {
                    0 => sum = sum.wrapping_add(with[0]),
                    1 => sum ^= with[1],
                    2 => {
                        state[field] = state[field].wrapping_add(sum);
                        sum = sum.rotate_left(9);
                    }
                    _ => sum = sum.wrapping_sub(with[2]),
                },
                Statement::Leave { field, mask } => {
                    if state[field] & mask == mask {
                        return sum;
                    }
                }
                Statement::Call { number, add } => {
                    sum ^= all[number].execute(state, sum.wrapping_add(add), all, factor);
                }
                Statement::Fold { add } => sum = exported(factor, sum.wrapping_add(add)),
            }
        }
        sum.wrapping_add(state[self.last])
    }

    pub fn write(&self, text: &mut String, names: &Names, all: &[Self]) {
        let Names { structure, variable, fields, exported } = names;
        // Writing to a string does not fail.
        let _ = write!(text, "\n/*\n");
        for line in &self.comment {
            let _ = writeln!(text, " * {line}");
        }
        let _ = write!(
            text,
            " */\nstatic uint32_t {}(struct {structure} *{variable}, uint32_t value)\n{{\n\
             \tuint32_t sum = value ^ {:#010x}u;\n\n",
            self.name, self.begin
        );
        for statement in &self.statements {
            let of = |field: usize| format!("{variable}->{}", fields[field]);
            let _ = match *statement {
                Statement::Rotate { by, with } => {
                    writeln!(text, "\tsum = ((sum << {by}) | (sum >> {})) ^ {with:#010x}u;", 32 - by)
                }
                Statement::Add { field, times } => writeln!(text, "\tsum += {} * {times}u;", of(field)),
                Statement::Store { field, by } => writeln!(text, "\t{} ^= sum >> {by};", of(field)),
                Statement::Branch { mask, value, field, add, with } => write!(
                    text,
                    "\tif ((sum & {mask:#x}u) == {value:#x}u) {{\n\t\tsum += {add:#010x}u;\n\t\t{}++;\n\
                     \t}} else {{\n\t\tsum ^= {with:#010x}u;\n\t}}\n",
                    of(field)
                ),
                Statement::Loop { times, factor } => write!(
                    text,
                    "\tfor (uint32_t at = 0; at < {times}u; at++)\n\t\tsum = sum * {factor:#010x}u + at;\n"
                ),
                Statement::Switch { by, field, with: [first, second, third] } => write!(
                    text,
                    "\tswitch ((sum >> {by}) & 3u) {{\n\tcase 0:\n\t\tsum += {first:#010x}u;\n\t\tbreak;\n\
                     \tcase 1:\n\t\tsum ^= {second:#010x}u;\n\t\tbreak;\n\tcase 2:\n\t\t{} += sum;\n\
                     \t\tsum = (sum << 9) | (sum >> 23);\n\t\tbreak;\n\tdefault:\n\t\tsum -= {third:#010x}u;\n\
                     \t\tbreak;\n\t}}\n",
                    of(field)
                ),
                Statement::Leave { field, mask } => {
                    write!(text, "\tif (({} & {mask:#x}u) == {mask:#x}u)\n\t\treturn sum;\n", of(field))
                }
                Statement::Call { number, add } => {
                    writeln!(text, "\tsum ^= {}({variable}, sum + {add:#010x}u);", all[number].name)
                }
                Statement::Fold { add } => writeln!(text, "\tsum = {exported}(sum + {add:#010x}u);"),
            };
        }
        let _ = write!(text, "\n\treturn sum + {variable}->{};\n}}\n", fields[self.last]);
    }
}

impl Statement {
    fn any(random: &mut Random) -> Self {
        let rotation = |random: &mut Random| 1 + (random.next_u64() % 31) as u32;
        match random.next_u64() % 16 {
            0..3 => Self::Rotate { by: rotation(random), with: constant(random) },
            3..5 => Self::Add { field: field(random), times: 3 + (random.next_u64() % 60) as u32 },
            5..8 => Self::Store { field: field(random), by: rotation(random) },
            8..11 => {
                let mask = 1 + (random.next_u64() % 15) as u32;
                let value = mask & random.next_u64() as u32;
                Self::Branch {
                    mask,
                    value,
                    field: field(random),
                    add: constant(random),
                    with: constant(random),
                }
            }
            11..13 => Self::Loop { times: 2 + (random.next_u64() % 7) as u32, factor: constant(random) | 1 },
            13 => Self::Switch {
                by: rotation(random) % 30,
                field: field(random),
                with: [constant(random), constant(random), constant(random)],
            },
            14 => Self::Leave { field: field(random), mask: 0x100f << (random.next_u64() % 8) },
            _ => Self::Fold { add: constant(random) },
        }
    }
}

fn constant(random: &mut Random) -> u32 {
    (random.next_u64() >> 16) as u32
}

fn field(random: &mut Random) -> usize {
    (random.next_u64() % FIELDS as u64) as usize
}

fn comment(random: &mut Random, name: &str, noun: &str) -> Vec<String> {
    let pick = |random: &mut Random, words: &[&'static str]| {
        words[(random.next_u64() % words.len() as u64) as usize]
    };
    let (verb, _) = name.split_once('_').unwrap_or((name, ""));
    let quality = pick(random, &vocabulary::QUALITIES);
    let mut lines = vec![format!("{name}: {verb} the {quality} part of the {noun}, and account for it.")];
    if random.next_u64().is_multiple_of(2) {
        let (quality, other) = (pick(random, &vocabulary::QUALITIES), pick(random, &vocabulary::NOUNS));
        lines.push(format!("The {quality} {other} must not change meanwhile; the caller sees to that."));
    }
    if random.next_u64().is_multiple_of(3) {
        let (person, other) = (pick(random, &vocabulary::PEOPLE), pick(random, &vocabulary::NOUNS));
        lines.push(format!("{}({person}): this is done twice where the {other} is shared.", super::MARK));
    }
    lines
}
