//! The program of a guest: this one, or the same one for the guest's architecture.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use tollgate_engine::Architecture;
use tollgate_os::paths::open_regular;

use super::board::{self, board};
use super::settings::Vm;
use super::{kernel, programs};
use crate::agent::Agent;
use crate::error::{EnvironmentError, plainly, unusable};

/// Opens it. An error says how to get one.
pub(super) fn open(spec: &Vm) -> Result<File, EnvironmentError> {
    if let Some(file) = &spec.program {
        return read(file, spec.arch).map_err(|why| unusable!("vm: program={}: {why}", file.display()));
    }
    let own = Agent::with(&[])?;
    if spec.arch.is_here() {
        return Ok(own.open()?.0);
    }
    let places = places(own.program(), kernel::directory().as_deref(), spec.arch);
    let found = places.iter().find(|file| file.is_file()).ok_or_else(|| {
        let (arch, llvm) = (spec.arch, board(spec.arch).llvm);
        let [first, .., last] = places.each_ref().map(|file| file.display());
        unusable!(
            "vm: an {arch} guest needs tollgate for {arch}, and there is neither {first} nor {last}; `cargo build --release --target \
             {llvm}-unknown-linux-gnu` builds it, and program=FILE names it"
        )
    })?;
    read(found, spec.arch).map_err(|why| unusable!("vm: {}: {why}", found.display()))
}

/// Files where it is looked for: beside this program, where cargo puts it, and beside kernels.
fn places(own: &Path, kernels: Option<&Path>, arch: Architecture) -> [PathBuf; 3] {
    let llvm = board(arch).llvm;
    let (named, beside) = (format!("tollgate-{llvm}"), own.parent().unwrap_or(own));
    let profile = beside.file_name().unwrap_or_default();
    let target = beside.ancestors().nth(2).unwrap_or(beside).join(format!("{llvm}-unknown-linux-gnu"));
    [beside.join(&named), target.join(profile).join("tollgate"), kernels.unwrap_or(beside).join(&named)]
}

/// Opens a program that a guest can execute: it has no loader.
fn read(file: &Path, arch: Architecture) -> Result<File, String> {
    let mut opened = open_regular(file).map_err(plainly)?;
    let mut head = Vec::new();
    (&opened).take(programs::MOST_HEADERS).read_to_end(&mut head).map_err(plainly)?;
    opened.rewind().map_err(plainly)?;
    match programs::machine(&head) {
        None => Err("it is not a program; tollgate itself would be right".to_owned()),
        Some(machine) if machine != board(arch).elf => {
            let of = board::named(machine);
            Err(format!("it is a program for {of}, but the guest's processor is {arch}"))
        }
        _ => match programs::loader(&head) {
            Some(loader) => Err(format!(
                "it needs {}, which the guest does not have; link it with RUSTFLAGS='-C target-feature=+crt-static'",
                loader.display()
            )),
            None => Ok(opened),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::kinds::EnvironmentKind;

    fn elf(machine: u16) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(18, 0);
        bytes.extend(machine.to_le_bytes());
        bytes.resize(64, 0);
        bytes
    }

    #[test]
    fn a_program_for_another_processor_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("tollgate");
        let said = |bytes: &[u8], arch| {
            fs::write(&place, bytes).unwrap();
            read(&place, arch).map(|mut file| {
                let mut text = Vec::new();
                file.read_to_end(&mut text).unwrap();
                text.len()
            })
        };
        assert_eq!(
            (said(&elf(183), Architecture::Arm64), said(&elf(62), Architecture::X86_64)),
            (Ok(64), Ok(64))
        );
        let why = "it is a program for x86-64, but the guest's processor is arm64";
        assert_eq!(said(&elf(62), Architecture::Arm64), Err(why.to_owned()));
        assert!(said(&elf(243), Architecture::Arm64).unwrap_err().contains("machine 243 of elf(5)"));
        for wrong in [&elf(183)[..19], b"#!/bin/sh\n", b""] {
            assert!(said(wrong, Architecture::Arm64).unwrap_err().starts_with("it is not a program"));
        }
        // The machine's shell has a loader, if it is not static. A translator's machine is not of this program's architecture.
        let shell = fs::read("/bin/sh").unwrap();
        if programs::loader(&shell).is_some() {
            let of_shell = Architecture::ALL.map(|arch| said(&shell, arch).unwrap_err());
            assert!(of_shell.iter().any(|why| why.contains("crt-static")), "{of_shell:?}");
        }
    }

    #[test]
    fn where_there_is_none_an_error_says_how_to_get_one() {
        let [beside, of_cargo, kept] =
            places("/target/x86/debug/tollgate".as_ref(), Some("/kernels".as_ref()), Architecture::Arm64);
        assert_eq!(beside, Path::new("/target/x86/debug/tollgate-aarch64"));
        assert_eq!(of_cargo, Path::new("/target/aarch64-unknown-linux-gnu/debug/tollgate"));
        assert_eq!(kept, Path::new("/kernels/tollgate-aarch64"));
        let spec = Vm::read(Some("program=/nowhere,arch=arm64")).unwrap();
        assert_eq!(open(&spec).unwrap_err().to_string(), "vm: program=/nowhere: No such file or directory");
        let other = Architecture::ALL.into_iter().find(|arch| !arch.is_here()).unwrap();
        match open(&Vm { arch: other, ..Vm::default() }) {
            Ok(_) => println!("skipped: there is one"),
            Err(why) => assert!(why.to_string().contains("program=FILE"), "{why}"),
        }
    }
}
