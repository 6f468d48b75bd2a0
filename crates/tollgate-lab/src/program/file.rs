use std::path::Path;

use super::assembler::{self, AssemblerError, MOST, Syntax};
use super::elf::{self, ElfError};
use super::{MAX_MEMORY, Program};
use crate::host::plainly;

/// Why a file is not run; the text follows the file's name in a sentence.
#[expect(missing_docs, reason = "the message says what the fields are")]
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error(transparent)]
    Elf(#[from] ElfError),
    #[error(transparent)]
    Assembler(#[from] AssemblerError),
    #[error("cannot be read: {0}")]
    Unreadable(String),
    #[error("is larger than {} MiB", MOST >> 20)]
    TooLarge,
    #[error("is a flat binary of {0} bytes; the limit is {MAX_MEMORY}")]
    LargeFlat(usize),
    #[error("is empty")]
    Empty,
    #[error("is source code, not a program: build it first, {0}")]
    Source(&'static str),
    #[error("is text; assembly needs a name that ends with .s, .S or .asm")]
    Text,
}

impl Program {
    /// Reads a program: assembly text by its file name, an ELF file by its first bytes, and anything else as a flat binary.
    ///
    /// # Errors
    /// [`FileError`] if the file cannot be read, or is not a program that the lab's kernel could run.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let bytes = read(path)?;
        if let Some(syntax) = Syntax::from_path(path) {
            return Ok(elf::read(&name, &assembler::assemble(path, syntax)?)?);
        }
        if elf::is_elf(&bytes) {
            return Ok(elf::read(&name, &bytes)?);
        }
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("c") => {
                return Err(FileError::Source("with cc -mgeneral-regs-only (docs/lab.md has the rest)"));
            }
            Some("rs") => return Err(FileError::Source("with rustc (docs/lab.md has the command)")),
            _ if bytes.is_empty() => return Err(FileError::Empty),
            _ if is_text(&bytes) => return Err(FileError::Text),
            _ => {}
        }
        Self::flat(&name, &bytes).ok_or(FileError::LargeFlat(bytes.len()))
    }

    /// Returns whether a file is assembly, by its name.
    pub fn is_assembly(path: &Path) -> bool {
        Syntax::from_path(path).is_some()
    }

    /// Assembles a program, and returns it with the values of the symbols that it defines.
    pub(crate) fn with_symbols<const N: usize>(
        path: &Path,
        names: [&str; N],
    ) -> Result<(Self, [Option<u64>; N]), FileError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        read(path)?;
        let file = assembler::assemble(path, Syntax::from_path(path).ok_or(FileError::Text)?)?;
        Ok((elf::read(&name, &file)?, names.map(|name| elf::symbol(&file, name))))
    }

    /// Reads a program from the bytes of an ELF file.
    ///
    /// # Errors
    /// Those of [`Program::open`].
    pub fn elf(name: &str, bytes: &[u8]) -> Result<Self, ElfError> {
        elf::read(name, bytes)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let unreadable = |why: std::io::Error| FileError::Unreadable(plainly(why));
    let file = std::fs::File::open(path).map_err(unreadable)?;
    tollgate_model::bounded::whole(file, MOST).map_err(unreadable)?.ok_or(FileError::TooLarge)
}

fn is_text(bytes: &[u8]) -> bool {
    let is_readable = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t' | 0x80..);
    bytes.contains(&b'\n') && bytes.iter().all(is_readable) && std::str::from_utf8(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(name: &str, bytes: &[u8]) -> Result<Program, FileError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        Program::open(&path)
    }

    #[test]
    fn a_file_is_taken_for_what_it_is() {
        let flat = open("hello.bin", &[0xf4, 0]).unwrap();
        assert_eq!((flat.name.as_str(), flat.entry), ("hello.bin", 0x4000_0000));
        assert_eq!(
            open("ünïcode-and-much-too-long-a-name", &[0xf4]).unwrap().name,
            "?n?code-and-much-too-lo"
        );
        let refused = |name, bytes: &[u8]| open(name, bytes).unwrap_err().to_string();
        assert_eq!(refused("x", b""), "is empty");
        assert!(refused("x.c", b"int main;\n").contains("-mgeneral-regs-only"));
        assert!(refused("x", b"#!/bin/sh\nexit\n").contains("is text"));
        assert_eq!(refused("x", b"\x7fELF"), "ends within its ELF header");
        assert_eq!(
            refused("x", &vec![1; (4 << 20) + 1]),
            "is a flat binary of 4194305 bytes; the limit is 4194304"
        );
        let own = std::env::current_exe().unwrap();
        let refused = match Program::open(&own) {
            Err(FileError::Elf(ElfError::Machine(_))) => !cfg!(target_arch = "x86_64"),
            Err(FileError::Elf(ElfError::Pie)) => cfg!(target_arch = "x86_64"),
            _ => false,
        };
        assert!(refused, "this test itself");
        assert!(
            Program::open(Path::new("/no/such"))
                .unwrap_err()
                .to_string()
                .starts_with("cannot be read: No such file")
        );
        assert!(Program::open(Path::new("/")).is_err(), "a directory");
    }
}
