//! One module of the project: a structure, its functions, and a header.

use std::fmt::Write;

use super::code::{self, FIELDS, Function, Names, State};
use super::{Version, seed, vocabulary};
use crate::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub directory: usize,
    /// Number in its directory. The others use the first one's exported function.
    pub number: usize,
}

pub(super) struct Module {
    identity: Identity,
    directory: String,
    noun: &'static str,
    functions: Vec<Function>,
    fields: [&'static str; FIELDS],
    /// The constant of the directory's exported function.
    factor: u32,
    lines: usize,
}

impl Identity {
    fn seed(self, what: u64) -> u64 {
        seed(&[self.directory as u64, self.number as u64, what])
    }

    pub fn is_in(self, version: Version, first_ones: usize) -> bool {
        let is_new = self.number >= first_ones;
        let is_removed = self.number > 0 && self.seed(1) % 100 < 8;
        match version {
            Version::First => !is_new,
            Version::Second => is_new || !is_removed,
        }
    }

    fn is_changed(self) -> bool {
        self.seed(2) % 100 < 45
    }

    /// Each directory has its own order of nouns.
    fn noun(self) -> &'static str {
        // 7 is coprime to their number.
        vocabulary::NOUNS[(seed(&[self.directory as u64]) as usize % vocabulary::NOUNS.len()
            + 7 * self.number)
            % vocabulary::NOUNS.len()]
    }
}

impl Module {
    pub fn new(identity: Identity, version: Version) -> Self {
        const LINES: std::ops::Range<u64> = 660..2540;
        /// Lines outside its functions, in both files.
        const FRAME: usize = 70;
        let mut own = Random::new(identity.seed(3));
        let wanted = (LINES.start + own.next_u64() % (LINES.end - LINES.start)) as usize;
        let first_field = own.next_u64() as usize;
        let fields =
            std::array::from_fn(|at| vocabulary::FIELDS[(first_field + at) % vocabulary::FIELDS.len()]);
        let mut module = Self {
            identity,
            directory: vocabulary::directory(identity.directory),
            noun: identity.noun(),
            functions: Vec::new(),
            fields,
            factor: seed(&[identity.directory as u64, u64::MAX]) as u32 | 1,
            lines: FRAME,
        };
        // The number of functions is that of the first version: changes add none.
        let mut lines = FRAME;
        let mut first = Vec::new();
        while lines < wanted {
            let number = first.len();
            let function = module.function(number, 0, &first);
            lines += 2 + module.text(&function, &first).lines().count();
            first.push(function);
        }
        let is_changed = version == Version::Second && identity.is_changed();
        for number in 0..first.len() {
            let revision =
                u64::from(is_changed && seed(&[identity.seed(4), number as u64]).is_multiple_of(3));
            let function = match revision {
                0 => first[number].clone(),
                _ => module.function(number, revision, &first[..number]),
            };
            module.functions.push(function);
        }
        module.lines = lines;
        module
    }

    fn function(&self, number: usize, revision: u64, earlier: &[Function]) -> Function {
        let (verbs, nouns) = (vocabulary::VERBS.len(), vocabulary::NOUNS.len());
        // Distinct for as many numbers as there are pairs.
        let pair = number * 17 % (verbs * nouns);
        let name = format!(
            "{}_{}",
            vocabulary::VERBS[pair % verbs],
            vocabulary::NOUNS[(pair / verbs + number) % nouns]
        );
        let is_leaf = seed(&[self.identity.seed(5), number as u64]).is_multiple_of(3);
        let mut random = Random::new(seed(&[self.identity.seed(6), number as u64, revision]));
        Function::any(&mut random, name, self.noun, is_leaf, earlier)
    }

    fn text(&self, function: &Function, all: &[Function]) -> String {
        let exported = self.exported();
        let structure = self.prefix();
        let names =
            Names { structure: &structure, variable: self.noun, fields: self.fields, exported: &exported };
        let mut text = String::new();
        function.write(&mut text, &names, all);
        text
    }

    /// The path of its files without extension, such as `net/queue`.
    pub fn path(&self) -> String {
        format!("{}/{}", self.directory, self.noun)
    }

    fn prefix(&self) -> String {
        format!("{}_{}", self.directory, self.noun)
    }

    pub fn entry(&self) -> String {
        format!("{}_run", self.prefix())
    }

    fn exported(&self) -> String {
        format!("{}_mix", self.directory)
    }

    pub fn definitions(&self) -> usize {
        self.functions.len() + 1 + usize::from(self.identity.number == 0)
    }

    pub fn execute(&self, value: u32) -> u32 {
        let mut state: State = std::array::from_fn(|field| value.wrapping_add(field as u32));
        let mut sum = value;
        for function in &self.functions {
            sum ^= function.execute(&mut state, sum, &self.functions, self.factor);
        }
        sum
    }

    pub fn header(&self) -> String {
        let (noun, prefix, guard) = (self.noun, self.prefix(), self.prefix().to_uppercase());
        let mut text = format!(
            "/* {noun}.h - the {noun} of the part {}. */\n#ifndef {guard}_H\n#define {guard}_H\n\n\
             #include <stdint.h>\n\n/* Objects that the {noun} may hold. */\n#define {guard}_MOST {}u\n\n\
             struct {prefix} {{\n",
            self.directory,
            16 + self.identity.seed(7) % 4096
        );
        for (at, field) in self.fields.iter().enumerate() {
            let quality = vocabulary::QUALITIES
                [(self.identity.seed(8) as usize % 12 + at) % vocabulary::QUALITIES.len()];
            let _ = writeln!(text, "\tuint32_t {field};\t/* of the {quality} ones */");
        }
        let _ = write!(
            text,
            "}};\n\n/* Passes a value through every operation that there is on the {noun}. */\n\
             uint32_t {prefix}_run(uint32_t value);\n"
        );
        if self.identity.number == 0 {
            let _ = write!(
                text,
                "\n/* Mixes a value, for all of this part. */\nuint32_t {}(uint32_t value);\n",
                self.exported()
            );
        }
        let _ = write!(text, "\n#endif /* {guard}_H */\n");
        text
    }

    pub fn source(&self) -> String {
        let noun = self.noun;
        let mut text = String::with_capacity(self.lines * 40);
        let _ = write!(
            text,
            "/*\n * {noun}.c - operations on the {noun} of the part {}.\n *\n * Made by tollgate to have something to \
             work on; it computes nothing that anybody needs.\n */\n\
             #include \"{}.h\"\n",
            self.directory,
            self.path()
        );
        if self.identity.number > 0 {
            let _ = writeln!(
                text,
                "#include \"{}/{}.h\"",
                self.directory,
                Identity { number: 0, ..self.identity }.noun()
            );
        } else {
            code::write_exported(&mut text, &self.exported(), self.factor);
        }
        for function in &self.functions {
            text.push_str(&self.text(function, &self.functions));
        }
        let _ = write!(
            text,
            "\nuint32_t {}(uint32_t value)\n{{\n\tstruct {} {noun} = {{\n",
            self.entry(),
            self.prefix()
        );
        for (at, field) in self.fields.iter().enumerate() {
            let _ = writeln!(text, "\t\t.{field} = value + {at}u,");
        }
        let _ = write!(text, "\t}};\n\tuint32_t sum = value;\n\n");
        for function in &self.functions {
            let _ = writeln!(text, "\tsum ^= {}(&{noun}, sum);", function.name);
        }
        let _ = write!(text, "\treturn sum;\n}}\n");
        text
    }
}
