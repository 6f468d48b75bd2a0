//! One module of the project: a structure, its functions, and the header by which others know them.

use std::fmt::Write;

use tollgate_engine::Random;

use super::code::{self, FIELDS, Function, Names, State};
use super::{Version, seed, words};

/// Which module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    /// Of its directory.
    pub directory: usize,
    /// In its directory. The first is the one whose exported function the others use.
    pub place: usize,
}

/// A module in one version.
pub(super) struct Module {
    identity: Identity,
    directory: String,
    noun: &'static str,
    functions: Vec<Function>,
    fields: [&'static str; FIELDS],
    /// Of the directory's exported function.
    factor: u32,
    lines: usize,
}

impl Identity {
    fn seed(self, what: u64) -> u64 {
        seed(&[self.directory as u64, self.place as u64, what])
    }

    /// Whether a module of the first version is there, and those that only the second has.
    pub fn is_in(self, version: Version, first_ones: usize) -> bool {
        let is_new = self.place >= first_ones;
        let is_removed = self.place > 0 && self.seed(1) % 100 < 8;
        match version {
            Version::First => !is_new,
            Version::Second => is_new || !is_removed,
        }
    }

    /// Whether the second version changed it.
    fn is_changed(self) -> bool {
        self.seed(2) % 100 < 45
    }

    /// Nouns of a directory are in an order of its own.
    fn noun(self) -> &'static str {
        // 7 has no divisor in common with their number.
        words::NOUNS[(seed(&[self.directory as u64]) as usize % words::NOUNS.len() + 7 * self.place)
            % words::NOUNS.len()]
    }
}

impl Module {
    /// It, as it is in a version.
    pub fn new(identity: Identity, version: Version) -> Self {
        /// Lines of a module.
        const LINES: std::ops::Range<u64> = 660..2540;
        /// Lines around its functions, in both files.
        const FRAME: usize = 70;
        let mut own = Random::new(identity.seed(3));
        let wanted = (LINES.start + own.next() % (LINES.end - LINES.start)) as usize;
        let first_field = own.next() as usize;
        let fields = std::array::from_fn(|at| words::FIELDS[(first_field + at) % words::FIELDS.len()]);
        let mut module = Self {
            identity,
            directory: words::directory(identity.directory),
            noun: identity.noun(),
            functions: Vec::new(),
            fields,
            factor: seed(&[identity.directory as u64, u64::MAX]) as u32 | 1,
            lines: FRAME,
        };
        // The number of functions is that of the first version: changing some adds none.
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
        let (verbs, nouns) = (words::VERBS.len(), words::NOUNS.len());
        // Different for as many numbers as there are pairs.
        let pair = number * 17 % (verbs * nouns);
        let name =
            format!("{}_{}", words::VERBS[pair % verbs], words::NOUNS[(pair / verbs + number) % nouns]);
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

    /// `net/queue`: where its files are, without their ends.
    pub fn path(&self) -> String {
        format!("{}/{}", self.directory, self.noun)
    }

    /// What its functions that others may call begin with.
    fn prefix(&self) -> String {
        format!("{}_{}", self.directory, self.noun)
    }

    /// The function by which the whole module is run.
    pub fn entry(&self) -> String {
        format!("{}_run", self.prefix())
    }

    /// The function that all modules of the directory use.
    fn exported(&self) -> String {
        format!("{}_mix", self.directory)
    }

    fn exporter(&self) -> Identity {
        Identity { place: 0, ..self.identity }
    }

    /// Functions that its source defines.
    pub fn definitions(&self) -> usize {
        self.functions.len() + 1 + usize::from(self.identity.place == 0)
    }

    /// What its entry returns.
    pub fn execute(&self, value: u32) -> u32 {
        let mut state: State = std::array::from_fn(|field| value.wrapping_add(field as u32));
        let mut sum = value;
        for function in &self.functions {
            sum ^= function.execute(&mut state, sum, &self.functions, self.factor);
        }
        sum
    }

    /// Its header.
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
            let quality =
                words::QUALITIES[(self.identity.seed(8) as usize % 12 + at) % words::QUALITIES.len()];
            let _ = writeln!(text, "\tuint32_t {field};\t/* of the {quality} ones */");
        }
        let _ = write!(
            text,
            "}};\n\n/* Passes a value through every operation that there is on the {noun}. */\n\
             uint32_t {prefix}_run(uint32_t value);\n"
        );
        if self.identity.place == 0 {
            let _ = write!(
                text,
                "\n/* Mixes a value, for all of this part. */\nuint32_t {}(uint32_t value);\n",
                self.exported()
            );
        }
        let _ = write!(text, "\n#endif /* {guard}_H */\n");
        text
    }

    /// Its source.
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
        if self.identity.place > 0 {
            let _ = writeln!(text, "#include \"{}/{}.h\"", self.directory, self.exporter().noun());
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
