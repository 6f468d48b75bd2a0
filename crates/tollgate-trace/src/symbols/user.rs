use std::collections::BTreeMap;

use tollgate_model::traced::{Code, CodeMap};

use super::functions::Functions;
use super::images::mappings;

pub(crate) fn code_of(pid: u32) -> impl Iterator<Item = Code> {
    mappings(pid).map(|mapping| Code {
        begin: mapping.begin,
        end: mapping.begin.saturating_add(mapping.bytes),
        offset: mapping.offset,
        file: String::from_utf8_lossy(&mapping.path).into_owned(),
    })
}

/// The code of one program and its libraries.
pub struct UserCode {
    /// By start address, each with the index of its file's functions.
    mapped: BTreeMap<u64, (Code, usize)>,
    functions: Vec<Option<Functions>>,
    program: Option<String>,
}

/// The name for the file of the command itself, since two builds of it have two names.
const PROGRAM: &str = "program";

/// A function of a program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserFunction {
    /// The last component of its path, or `program` for the command itself; `None` for code that was in no file at the end.
    pub file: Option<String>,
    /// Its name in the source; `None` if the file has no symbol for it.
    pub name: Option<String>,
}

impl UserCode {
    /// Reads the symbols of the mapped files.
    ///
    /// # Errors
    /// A clause, if an address would be ambiguous or has no mapping.
    pub fn of(CodeMap { programs, program, has_conflict, code }: &CodeMap) -> Result<Self, String> {
        match programs {
            0 => return Err("its mappings are not known".to_owned()),
            1 if !has_conflict => {}
            1 => return Err("it maps several files at one address".to_owned()),
            _ => {
                return Err(format!(
                    "it executes {programs} programs, which lie at the same addresses; -N executes a command without a shell"
                ));
            }
        }
        let mut files: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut mapped, mut functions) = (BTreeMap::new(), Vec::new());
        for code in code {
            let at = *files.entry(&code.file).or_insert_with(|| {
                functions.push(Functions::of_path(code.file.as_bytes()));
                functions.len() - 1
            });
            mapped.insert(code.begin, (code.clone(), at));
        }
        Ok(Self { mapped, functions, program: program.clone() })
    }

    /// Returns the function at an address.
    pub fn at(&self, address: u64) -> UserFunction {
        let nearest = self.mapped.range(..=address).next_back();
        let Some((code, functions)) = nearest.map(|(_, of)| of).filter(|(code, _)| address < code.end) else {
            return UserFunction { file: None, name: None };
        };
        let offset = (address - code.begin).saturating_add(code.offset);
        let functions = self.functions.get(*functions).and_then(Option::as_ref);
        let name = functions.and_then(|functions| functions.name(offset));
        let file = if Some(&code.file) == self.program.as_ref() {
            PROGRAM
        } else {
            code.file.rsplit('/').next().unwrap_or(&code.file)
        };
        UserFunction { file: Some(file.to_owned()), name }
    }
}
