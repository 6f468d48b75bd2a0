use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use tollgate_os::private::PrivateDirectory;
use tollgate_os::programs::find;
use tollgate_os::{paths, tool};

/// Limit of bytes of a file and of an assembler's output: programs include their symbols.
pub(super) const MOST: u64 = 64 << 20;
/// Links a program to the first address that it may have.
const PLACE: &str = "-Ttext-segment=0x40000000";
const MOST_LINES: usize = 100;
const LIMIT: Duration = Duration::from_secs(60);
/// Limit of bytes of its address space: a text may include a file without an end.
const MEMORY: u64 = 2 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    /// GNU as; the C preprocessor reads a `.S` file first.
    Gnu { preprocessed: bool },
    /// NASM.
    Nasm,
}

/// Why a text was not assembled; the text follows the file's name in a sentence.
#[expect(missing_docs, reason = "the message says what the fields are")]
#[derive(Debug, thiserror::Error)]
pub enum AssemblerError {
    #[error("needs {0} to be assembled, which is not in PATH")]
    Missing(&'static str),
    #[error("was refused by its assembler: {command} ({status})")]
    Refused { command: String, status: ExitStatus, said: Vec<String> },
    #[error("could not be assembled within 60 s: {command}")]
    Slow { command: String },
    #[error("{what} for the assembler: {}", tollgate_model::text::plainly(.why))]
    Io { what: &'static str, why: io::Error },
}

impl AssemblerError {
    /// Returns the assembler's own messages, one per line.
    pub fn said(&self) -> &[String] {
        match self {
            Self::Refused { said, .. } => said,
            _ => &[],
        }
    }
}

impl Syntax {
    pub(super) fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "s" => Some(Self::Gnu { preprocessed: false }),
            "S" => Some(Self::Gnu { preprocessed: true }),
            "asm" | "nasm" => Some(Self::Nasm),
            _ => None,
        }
    }

    fn commands(self, text: &Path, object: &Path, out: &Path) -> Result<Vec<Vec<OsString>>, AssemblerError> {
        let words = |words: &[&OsStr]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let [text, object, out] = [text, object, out].map(Path::as_os_str);
        let [dash_o, place] = [OsStr::new("-o"), OsStr::new(PLACE)];
        let link = || {
            let ld = find("ld").ok_or(AssemblerError::Missing("ld"))?;
            Ok(words(&[ld.as_os_str(), place, dash_o, out, object]))
        };
        if self == Self::Nasm {
            let nasm = find("nasm").ok_or(AssemblerError::Missing("nasm"))?;
            let [form, elf] = ["-f", "elf64"].map(OsStr::new);
            return Ok(vec![words(&[nasm.as_os_str(), form, elf, dash_o, object, text]), link()?]);
        }
        if let Some(cc) = find("cc") {
            let [nostdlib, is_static, no_pie, place] =
                ["-nostdlib", "-static", "-no-pie", "-Wl,-Ttext-segment=0x40000000"].map(OsStr::new);
            return Ok(vec![words(&[cc.as_os_str(), nostdlib, is_static, no_pie, place, dash_o, out, text])]);
        }
        if self == (Self::Gnu { preprocessed: true }) {
            return Err(AssemblerError::Missing("cc"));
        }
        let assembler = find("as").ok_or(AssemblerError::Missing("cc, or as and ld,"))?;
        Ok(vec![words(&[assembler.as_os_str(), dash_o, object, text]), link()?])
    }
}

pub(super) fn assemble(path: &Path, syntax: Syntax) -> Result<Vec<u8>, AssemblerError> {
    let io = |what| move |why| AssemblerError::Io { what, why };
    let own = PrivateDirectory::temporary().map_err(io("no directory"))?;
    let (object, out) = (own.path().join("object"), own.path().join("program"));
    // A name that begins with a dash would be an option.
    let text = if path.is_absolute() { path.to_owned() } else { Path::new(".").join(path) };
    for command in syntax.commands(&text, &object, &out)? {
        run(&own, &command)?;
    }
    paths::read_regular(&out, MOST).map_err(|why| io("no output")(why.into()))
}

fn run(own: &PrivateDirectory, words: &[OsString]) -> Result<(), AssemblerError> {
    let (program, arguments) = words.split_first().ok_or(AssemblerError::Missing("an assembler"))?;
    let mut command = own.command(program);
    // cc looks for as and ld in PATH.
    command.args(arguments).env("LC_ALL", "C").env("PATH", tollgate_os::programs::search_path());
    tool::limit(&mut command, MEMORY, MOST);
    let ended = tool::attend(&mut command, LIMIT, &|| false)
        .map_err(|why| AssemblerError::Io { what: "no process", why })?;
    let command = shown(words);
    match ended.status {
        Some(status) if status.success() => Ok(()),
        Some(status) => {
            let said = ended.said.lines().take(MOST_LINES).map(str::to_owned).collect();
            Err(AssemblerError::Refused { command, status, said })
        }
        None => Err(AssemblerError::Slow { command }),
    }
}

fn shown(words: &[OsString]) -> String {
    let program = words.first().map(PathBuf::from);
    let name = program.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let rest = words.iter().skip(1).map(|word| word.to_string_lossy());
    std::iter::once(name).chain(rest).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    fn is_there(program: &str) -> bool {
        let is_there = find(program).is_some();
        if !is_there {
            println!("skipped: there is no {program}");
        }
        is_there
    }

    #[test]
    fn the_name_says_which_assembler() {
        let of = |name: &str| Syntax::from_path(Path::new(name));
        assert_eq!(of("a.s"), Some(Syntax::Gnu { preprocessed: false }));
        assert_eq!(of("a.S"), Some(Syntax::Gnu { preprocessed: true }));
        assert_eq!(of("dir.s/a.asm"), Some(Syntax::Nasm));
        assert_eq!([of("a.c"), of("s"), of(".s")], [None, None, None]);
    }

    #[cfg(target_arch = "x86_64")] // cc assembles for its own machine.
    #[test]
    fn a_text_becomes_a_program() {
        if !is_there("cc") {
            return;
        }
        let (_folder, path) = file("x.s", ".globl _start\n_start: mov $7, %edi\nxor %eax, %eax\nsyscall\n");
        let bytes = assemble(&path, Syntax::Gnu { preprocessed: false }).unwrap();
        let program = super::super::elf::read("x", &bytes).unwrap();
        assert_eq!(program.bytes_at(program.entry, 5), [0xbf, 7, 0, 0, 0]);
        let (_folder, path) = file("x.S", "#define SEVEN 7\n.globl _start\n_start: mov $SEVEN, %edi\n");
        let bytes = assemble(&path, Syntax::Gnu { preprocessed: true }).unwrap();
        assert_eq!(
            super::super::elf::read("x", &bytes).unwrap().bytes_at(program.entry, 5),
            [0xbf, 7, 0, 0, 0]
        );
    }

    #[test]
    fn nasm_makes_one_as_well() {
        if !is_there("nasm") || !is_there("ld") {
            return;
        }
        let (_folder, path) = file("x.asm", "global _start\nsection .text\n_start: mov edi, 7\n");
        let bytes = assemble(&path, Syntax::Nasm).unwrap();
        let program = super::super::elf::read("x", &bytes).unwrap();
        assert_eq!(program.bytes_at(program.entry, 5), [0xbf, 7, 0, 0, 0]);
    }

    #[test]
    fn a_refusal_has_the_command_and_the_messages() {
        if !is_there("cc") {
            return;
        }
        let (_folder, path) = file("wrong.s", "nop\nno such instruction\n");
        let error = assemble(&path, Syntax::Gnu { preprocessed: false }).unwrap_err();
        let sentence = error.to_string();
        assert!(
            sentence.contains("cc -nostdlib -static -no-pie -Wl,-Ttext-segment=0x40000000 -o "),
            "{sentence}"
        );
        assert!(error.said().iter().any(|line| line.contains("wrong.s:2")), "{error:?}");
    }
}
