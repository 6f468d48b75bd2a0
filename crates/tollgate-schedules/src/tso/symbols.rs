use super::buffer::Address;
use super::program::{Place, Register, Whose};
use super::state::{CELLS, MOST, REGISTERS};
use crate::mips::number;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// Name, address, and whether it is an array `b[1]`, `b[2]`, …, with one word for each process.
    names: Vec<(String, Address, bool)>,
    used: Address,
    /// Whether the program uses `j`, the other one of two processes.
    pub of_two: bool,
}

/// Registers by all of their names; the first one is shown.
const FAMILIES: &[&[&str]] = &[
    &["eax", "rax", "ax", "al"],
    &["ebx", "rbx", "bx", "bl"],
    &["ecx", "rcx", "cx", "cl"],
    &["edx", "rdx", "dx", "dl"],
    &["esi", "rsi", "si", "sil"],
    &["edi", "rdi", "di", "dil"],
    &["ebp", "rbp", "bp", "bpl"],
    &["r8", "r8d", "r8w", "r8b"],
    &["r9", "r9d", "r9w", "r9b"],
    &["r10", "r10d", "r10w", "r10b"],
    &["r11", "r11d", "r11w", "r11b"],
    &["r12", "r12d", "r12w", "r12b"],
    &["r13", "r13d", "r13w", "r13b"],
    &["r14", "r14d", "r14w", "r14b"],
    &["r15", "r15d", "r15w", "r15b"],
];

/// Returns the first name of a register, given any of its names in either case, with or without `%`.
pub fn register_named(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix('%').unwrap_or(name).to_ascii_lowercase();
    FAMILIES.iter().find(|family| family.contains(&name.as_str())).map(|family| family[0])
}

/// The registers that a program uses, in order of first use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    names: Vec<&'static str>,
}

impl Registers {
    /// Returns the number of the register with this first name.
    ///
    /// # Errors
    /// The program uses more registers than a process has.
    pub fn number(&mut self, name: &'static str) -> Result<Register, String> {
        let at = self.find(name).unwrap_or(self.names.len() as Register);
        if usize::from(at) == self.names.len() {
            if self.names.len() == REGISTERS {
                return Err(format!("{name} is one register too many; a process has {REGISTERS}"));
            }
            self.names.push(name);
        }
        Ok(at)
    }

    pub fn find(&self, name: &str) -> Option<Register> {
        self.names.iter().position(|&known| known == name).map(|at| at as Register)
    }

    pub fn name(&self, register: Register) -> &'static str {
        self.names.get(usize::from(register)).copied().unwrap_or("?")
    }
}

impl Symbols {
    /// Returns the place that `x`, `b[i]` or `b[2]` names.
    ///
    /// # Errors
    /// It is not a valid name, or memory is full.
    pub fn place(&mut self, text: &str) -> Result<Place, String> {
        let (name, index) = match text.split_once('[').map(|(name, rest)| (name, rest.strip_suffix(']'))) {
            None => (text, None),
            Some((name, Some(index))) => (name.trim(), Some(index.trim())),
            Some((_, None)) => return Err(format!("`{text}` is not a variable; write x, b[i] or b[1]")),
        };
        if !is_name(name) {
            return Err(format!("`{text}` is not a variable; write x, b[i] or b[1]"));
        }
        let base = self.base(name, index.is_some())?;
        match index {
            None => Ok(Place { base, of: Whose::All }),
            Some("i") => Ok(Place { base, of: Whose::Own }),
            Some("j") => {
                self.of_two = true;
                Ok(Place { base, of: Whose::Other })
            }
            Some(index) => match index.parse::<u8>() {
                Ok(number @ 1..=4) => Ok(Place { base: base + number - 1, of: Whose::All }),
                _ => Err(format!(
                    "`{text}` does not name a process; write [i], [1] to [{MOST}], or with two processes [j] for the other one"
                )),
            },
        }
    }

    /// Returns the place at a register's address, named as written: `[eax]`, `[rdi+4]`. `None` if it is not a register and
    /// a distance.
    ///
    /// # Errors
    /// Memory is full.
    pub fn pointed(&mut self, text: &str) -> Result<Option<Place>, String> {
        let Some((register, distance)) = pointer(text) else { return Ok(None) };
        let name = if distance == "0" { format!("[{register}]") } else { format!("[{register}+{distance}]") };
        Ok(Some(Place { base: self.base(&name, false)?, of: Whose::All }))
    }

    /// Returns the registers that hold addresses, each with its word.
    pub fn pointers(&self) -> impl Iterator<Item = (String, Address)> {
        let inside = |name: &str| pointer(name.strip_prefix('[')?.strip_suffix(']')?);
        self.names.iter().filter_map(move |(name, at, _)| Some((inside(name)?.0, *at)))
    }

    /// Returns a register that holds an address and also a number: the model has no address values.
    pub fn pointer_among(&self, registers: &Registers) -> Option<String> {
        let is_number =
            |name: &str| register_named(name).is_some_and(|first| registers.find(first).is_some());
        self.pointers().map(|(register, _)| register).find(|register| is_number(register))
    }

    fn base(&mut self, name: &str, each: bool) -> Result<Address, String> {
        match self.names.iter().find(|(known, ..)| known == name) {
            Some(&(_, base, known)) if known == each => Ok(base),
            Some((.., true)) => Err(format!("`{name}` is one word for each process here; write {name}[i]")),
            Some(_) => Err(format!("`{name}` is one word for all processes here; write {name}")),
            None => {
                let cells = if each { MOST as u8 } else { 1 };
                if usize::from(self.used + cells) > CELLS {
                    return Err(format!(
                        "`{name}` is one variable too many; there are {CELLS} words of memory, of which b[i] takes {MOST}"
                    ));
                }
                self.names.push((name.to_owned(), self.used, each));
                self.used += cells;
                Ok(self.used - cells)
            }
        }
    }

    pub fn name_of(&self, address: Address) -> String {
        let found = self.names.iter().rfind(|(_, base, _)| *base <= address);
        match found {
            Some((name, base, true)) => format!("{name}[{}]", address - base + 1),
            Some((name, ..)) => name.clone(),
            None => format!("word {address}"),
        }
    }
}

/// Splits `RDI + 4` or `rdi+0x4` into the register, in lower case, and the distance.
fn pointer(text: &str) -> Option<(String, String)> {
    let (register, distance) = text.split_once('+').unwrap_or((text, "0"));
    let register = register.trim();
    register_named(register)?;
    let distance = u32::try_from(number(distance.trim())?).ok()?;
    Some((register.trim_start_matches('%').to_ascii_lowercase(), distance.to_string()))
}

/// Returns whether this can be the name of a variable or label.
pub fn is_name(text: &str) -> bool {
    let begins = |first: char| first.is_ascii_alphabetic() || first == '_' || first == '.';
    let goes_on = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    text.starts_with(begins) && text.bytes().all(goes_on)
}
