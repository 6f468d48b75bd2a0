use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use tollgate_os::paths;

use super::functions::Functions;

/// A larger file is not read, so its functions have no names.
const MOST_BYTES: u64 = 512 << 20;
const PAGE: usize = 4096;

/// The code of programs and libraries, found by the contents of its pages: several programs have the same addresses.
pub struct UserCode {
    /// By a number for the contents of a page: its file, and its offset there.
    pages: HashMap<u64, (usize, u64)>,
    files: Vec<(String, Option<Functions>)>,
}

/// The name for the file of the command itself, since two builds of it have two names.
const PROGRAM: &str = "program";

/// A function of a program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserFunction {
    /// The last component of its path, or `program` for the command itself; `None` for code that is in no file.
    pub file: Option<String>,
    /// Its name in the source; `None` if the file has no symbol for it.
    pub name: Option<String>,
}

impl UserCode {
    /// Reads those files that are ELF files. `number` maps a page's contents to a number. A page that two files share belongs to the first.
    pub fn of(program: Option<&Path>, files: &[PathBuf], number: fn(&[u8; PAGE]) -> u64) -> Self {
        let mut code = Self { pages: HashMap::new(), files: Vec::new() };
        let program = program.and_then(|path| path.canonicalize().ok());
        let others: BTreeSet<PathBuf> = files.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let others = others.into_iter().filter(|path| Some(path) != program.as_ref());
        for path in program.clone().into_iter().chain(others) {
            let name = match path.file_name() {
                _ if Some(&path) == program.as_ref() => PROGRAM.to_owned(),
                Some(name) => name.to_string_lossy().into_owned(),
                None => continue,
            };
            code.add(&path, name, number);
        }
        code
    }

    fn add(&mut self, path: &Path, name: String, number: fn(&[u8; PAGE]) -> u64) {
        let Ok(bytes) = paths::read_regular(path, MOST_BYTES) else { return };
        if !bytes.starts_with(b"\x7fELF") {
            return;
        }
        for (offset, bytes) in (0..).step_by(PAGE).zip(bytes.chunks(PAGE)) {
            // A file's last page is filled up with zeros.
            let mut page = [0; PAGE];
            page[..bytes.len()].copy_from_slice(bytes);
            self.pages.entry(number(&page)).or_insert((self.files.len(), offset));
        }
        self.files.push((name, Functions::of_path(path.as_os_str().as_encoded_bytes())));
    }

    /// Returns the function at an address, in a page with this number.
    pub fn at(&self, address: u64, page: u64) -> UserFunction {
        let Some((file, offset)) = self.pages.get(&page) else {
            return UserFunction { file: None, name: None };
        };
        let (file, functions) = &self.files[*file];
        let name = functions.as_ref().and_then(|of| of.name(offset + address % PAGE as u64));
        UserFunction { file: Some(file.clone()), name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(page: &[u8; PAGE]) -> u64 {
        page.iter().fold(7, |number: u64, byte| number.wrapping_mul(31).wrapping_add(u64::from(*byte)))
    }

    #[test]
    fn a_page_belongs_to_the_file_that_has_its_contents() {
        // Its last page is filled up with zeros.
        let name = "a_page_belongs_to_the_file_that_has_its_contents";
        let own = std::env::current_exe().expect("a path");
        let bytes = std::fs::read(&own).expect("its bytes");
        let functions = |code: &UserCode| -> BTreeSet<(Option<String>, Option<String>)> {
            let pages = bytes.chunks(PAGE).map(|chunk| {
                let mut page = [0; PAGE];
                page[..chunk.len()].copy_from_slice(chunk);
                number(&page)
            });
            let all =
                pages.flat_map(|page| (0..PAGE as u64).step_by(64).map(move |at| (0x7000_0000 + at, page)));
            let all = all.map(|(address, page)| code.at(address, page));
            all.map(|UserFunction { file, name }| (file, name)).collect()
        };
        let found = functions(&UserCode::of(Some(&own), std::slice::from_ref(&own), number));
        assert!(found.iter().all(|(file, _)| file.as_deref() == Some(PROGRAM)), "{found:?}");
        assert!(
            found
                .iter()
                .any(|(_, function)| function.as_ref().is_some_and(|function| function.contains(name)))
        );
        // As a library it has its own name, and code of another file has none.
        let found = functions(&UserCode::of(None, std::slice::from_ref(&own), number));
        assert!(
            found.iter().all(|(file, _)| file.as_deref() == own.file_name().and_then(|name| name.to_str()))
        );
        let none = UserCode::of(None, &[], number).at(0x1000, 7);
        assert_eq!(none, UserFunction { file: None, name: None });
    }
}
