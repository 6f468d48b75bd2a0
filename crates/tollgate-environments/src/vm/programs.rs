//! Programs of the host for a guest, with the libraries that the program's own loader lists.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::commands;
use crate::error::{EnvironmentError, plainly, unusable};

/// Bytes of a program that are read for its headers; linkers put the loader's name in the first page.
pub(super) const MOST_HEADERS: u64 = 1 << 20;
/// An administrator's program has fewer files.
const MOST_FILES: usize = 256;
/// `PT_INTERP` in elf(5).
const INTERP: u32 = 3;

/// The files of a program: itself, its loader and its libraries, by their paths, which are the same on the host and in the
/// guest. Fails if the program is not installed (naming its Debian package) or its libraries cannot be found.
pub(super) fn files(
    name: &str,
    package: &str,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<PathBuf>, EnvironmentError> {
    let program = commands::find(name).ok_or_else(|| {
        unusable!("vm: there is no {name} on the host, which the guest needs (Debian package {package})")
    })?;
    let mut head = Vec::new();
    let read = File::open(&program).and_then(|file| file.take(MOST_HEADERS).read_to_end(&mut head));
    read.map_err(|error| unusable!("vm: {}: {}", program.display(), plainly(error)))?;
    let Some(loader) = loader(&head) else { return Ok(vec![program]) };
    let said = commands::output(&loader, &["--list".as_ref(), program.as_os_str()], stop);
    let said = said.map_err(|error| match error {
        EnvironmentError::Interrupted => error,
        error => unusable!("vm: the libraries of {} cannot be listed: {error}", program.display()),
    })?;
    let libraries = libraries(&said).map_err(|why| unusable!("vm: {}: {why}", program.display()))?;
    let mut all = vec![program, loader];
    for library in libraries {
        if !all.contains(&library) {
            all.push(library);
        }
    }
    Ok(all)
}

/// The machine of a program of 64 bits (`e_machine`, elf(5)).
pub(super) fn machine(head: &[u8]) -> Option<u16> {
    const CLASS_64: &[u8] = b"\x7fELF\x02\x01";
    let machine = head.get(18..20).filter(|_| head.starts_with(CLASS_64))?;
    Some(u16::from_le_bytes([machine[0], machine[1]]))
}

/// The loader that a program names; `None` if it names none, or is not a program of 64 bits.
pub(super) fn loader(head: &[u8]) -> Option<PathBuf> {
    machine(head)?;
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(head.get(at..at.checked_add(bytes)?)?);
        Some(u64::from_le_bytes(number))
    };
    let place = |at: u64| usize::try_from(at).ok();
    let (table, size, count) = (place(number(0x20, 8)?)?, place(number(0x36, 2)?)?, place(number(0x38, 2)?)?);
    let header = |n: usize| table.checked_add(n.checked_mul(size)?);
    let found = (0..count).filter_map(header).find(|&at| number(at, 4) == Some(INTERP.into()))?;
    let begins = place(number(found.checked_add(8)?, 8)?)?;
    let length = place(number(found.checked_add(0x20)?, 8)?)?;
    let name = head.get(begins..begins.checked_add(length)?)?.split(|byte| *byte == 0).next()?;
    let name = Path::new(std::str::from_utf8(name).ok()?);
    name.is_absolute().then(|| name.to_owned())
}

/// Parses the paths that a loader lists: `libc.so.6 => /lib/libc.so.6 (0x7f…)`, `/lib/libc.so.6 (0x7f…)`.
fn libraries(said: &str) -> Result<Vec<PathBuf>, String> {
    let mut all = Vec::new();
    for line in said.lines() {
        let named = line.split_once(" => ").map_or(line, |(_, path)| path).trim();
        if named == "not found" {
            return Err(format!("its library {} is not found", line.split_whitespace().next().unwrap_or("")));
        }
        let path = Path::new(named.rsplit_once(" (").map_or(named, |(path, _)| path));
        let is_plain = path.is_absolute() && !path.components().any(|part| part.as_os_str() == "..");
        if is_plain && all.len() < MOST_FILES {
            all.push(path.to_owned());
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_are_read_from_the_list() {
        let said = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x00007f)\n\t/lib64/ld.so (0x00007f)\n";
        assert_eq!(libraries(said).unwrap(), [Path::new("/lib/x/libc.so.6"), Path::new("/lib64/ld.so")]);
        let why = libraries("\tliba.so => not found\n").unwrap_err();
        assert_eq!(why, "its library liba.so is not found");
    }

    #[test]
    fn a_program_comes_with_its_libraries_and_one_that_is_not_there_with_its_package() {
        let files = files("sh", "dash", &|| false).unwrap();
        println!("{files:?}");
        assert!(files[0].ends_with("sh") && files.iter().all(|file| file.is_file()), "{files:?}");
        let why = super::files("tollgate-no-such-program", "none", &|| false).unwrap_err().to_string();
        assert!(
            why.contains("there is no tollgate-no-such-program") && why.ends_with("(Debian package none)")
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), said in "\\PC{0,200}") {
            let mut head = b"\x7fELF\x02\x01".to_vec();
            head.extend(&bytes);
            let _ = loader(&head);
            head.truncate(0x20);
            head.resize(0x20, 0);
            // A table that begins at these bytes.
            head.extend(0x40_u64.to_le_bytes());
            head.resize(0x36, 0);
            head.extend([0x38, 0, 2, 0]);
            head.resize(0x40, 0);
            head.extend([3, 0, 0, 0]);
            head.extend(&bytes);
            let _ = loader(&head);
            let _ = libraries(&said);
        }
    }
}
