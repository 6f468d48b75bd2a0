//! The symbols in an unstripped kernel image, `vmlinux`: elf(5). The image that boots is compressed and has none.

use std::{fs::File, os::unix::fs::FileExt};

use object::elf::{self, FileHeader64, SectionHeader64, Sym64};
use object::{LittleEndian as LE, pod};
use tollgate_arch::architecture::HERE;
use tollgate_model::Unknown;

use super::symbol::WHOLE;
use crate::aslr::MACHINES;
use crate::machine::{Answer, Machine, found};

pub(super) fn symbols(machine: &Machine, release: Option<&str>) -> Answer<String> {
    let release = release.ok_or_else(|| Unknown::Absent("the kernel's release is not known".to_owned()))?;
    let paths = [
        format!("/usr/lib/debug/boot/vmlinux-{release}"),
        format!("/usr/lib/debug/lib/modules/{release}/vmlinux"),
        format!("/usr/lib/modules/{release}/build/vmlinux"),
        format!("/boot/vmlinux-{release}"),
    ];
    let none = || Unknown::Absent(format!("none of {} exists", paths.join(", ")));
    let (path, file) =
        paths.iter().find_map(|path| Some((path, machine.open_file(path).ok()?))).ok_or_else(none)?;
    match read(&file) {
        Some(list) => found(list, path.clone()),
        None => Err(Unknown::Unreadable(format!("{path}: no ELF file of {HERE} with a list of symbols"))),
    }
}

fn read(file: &File) -> Option<String> {
    let bytes = part(file, 0, size_of::<FileHeader64<LE>>() as u64)?;
    let (header, _) = pod::from_bytes::<FileHeader64<LE>>(&bytes).ok()?;
    if header.e_ident.magic != elf::ELFMAG
        || header.e_ident.class != elf::ELFCLASS64
        || header.e_machine.get(LE).0 != MACHINES[0]
    {
        return None;
    }
    let count = usize::from(header.e_shnum.get(LE));
    let bytes = part(file, header.e_shoff.get(LE), (count * size_of::<SectionHeader64<LE>>()) as u64)?;
    let (sections, _) = pod::slice_from_bytes::<SectionHeader64<LE>>(&bytes, count).ok()?;
    let table = sections.iter().find(|section| section.sh_type.get(LE) == elf::SHT_SYMTAB)?;
    let names = sections.get(usize::try_from(table.sh_link.get(LE)).ok()?)?;
    let (table, names) = (content(file, table)?, content(file, names)?);
    let (symbols, _) =
        pod::slice_from_bytes::<Sym64<LE>>(&table, table.len() / size_of::<Sym64<LE>>()).ok()?;
    let mut list = String::new();
    for symbol in symbols {
        // Absolute values and undefined symbols are not addresses.
        if matches!(symbol.st_shndx.get(LE), elf::SHN_UNDEF | elf::SHN_ABS)
            || symbol.st_type() == elf::STT_FILE
        {
            continue;
        }
        let name =
            names.get(usize::try_from(symbol.st_name.get(LE)).ok()?..)?.split(|byte| *byte == 0).next()?;
        if !name.is_empty() && name.len() <= 512 && name.iter().all(u8::is_ascii_graphic) {
            list.push_str(&format!("{:016x} t {}\n", symbol.st_value.get(LE), String::from_utf8_lossy(name)));
        }
    }
    Some(list)
}

fn content(file: &File, section: &SectionHeader64<LE>) -> Option<Vec<u8>> {
    part(file, section.sh_offset.get(LE), section.sh_size.get(LE))
}

fn part(file: &File, offset: u64, length: u64) -> Option<Vec<u8>> {
    let end = offset.checked_add(length)?;
    if length > WHOLE || end > file.metadata().ok()?.len() {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_s_own_list_is_read_and_other_files_have_none() {
        let own = read(&File::open("/proc/self/exe").unwrap()).unwrap();
        let line = own.lines().find(|line| line.ends_with(" t main")).unwrap();
        assert!(u64::from_str_radix(&line[..16], 16).unwrap() > 0);
        let file = |bytes: &[u8]| {
            let directory = tempfile::tempdir().unwrap();
            std::fs::write(directory.path().join("file"), bytes).unwrap();
            read(&File::open(directory.path().join("file")).unwrap())
        };
        let header = std::fs::read("/proc/self/exe").unwrap()[..64].to_vec();
        for bytes in [&b""[..], b"\x7fELF", &header, &[0xff; 64]] {
            assert_eq!(file(bytes), None);
        }
    }
}
