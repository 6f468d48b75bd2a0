//! The functions of an ELF file by file offset: elf(5). Reads are bounded, since the file is untrusted.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64, Sym64};
use object::{LittleEndian as LE, pod};

use tollgate_os::paths;

use super::image::Image;
use super::source_name;

const MOST_BYTES: u64 = 64 << 20;

pub(super) struct Functions {
    loads: Vec<Load>,
    /// By address; functions at one address in order of preference.
    functions: Vec<Function>,
}

/// A loaded segment: its file offset, size and address.
struct Load {
    offset: u64,
    bytes: u64,
    address: u64,
}

struct Function {
    begin: u64,
    end: u64,
    name: Box<str>,
}

impl Functions {
    /// Reads the file of an image if it is still that file: the path is the process's, which may have another root.
    pub fn of(image: &Image) -> Option<Self> {
        let file = opened(&image.path)?;
        let stat = rustix::fs::fstat(&file).ok()?;
        let device = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
        let magic = rustix::fs::fstatfs(&file).ok()?.f_type;
        if is_mapped(image, device, stat.st_ino, magic) { Self::read(&file) } else { None }
    }

    pub fn of_path(path: &[u8]) -> Option<Self> {
        Self::read(&opened(path)?)
    }

    /// Returns `None` if the file is not a 64-bit ELF file or has no symbol table.
    fn read(file: &impl Bytes) -> Option<Self> {
        let start = file.at(0, size_of::<FileHeader64<LE>>() as u64)?;
        let (header, _) = pod::from_bytes::<FileHeader64<LE>>(&start).ok()?;
        let is_known = header.e_ident.magic == elf::ELFMAG
            && header.e_ident.class == elf::ELFCLASS64
            && header.e_ident.data == elf::ELFDATA2LSB;
        if !is_known {
            return None;
        }
        let table = table::<ProgramHeader64<LE>>(
            file,
            header.e_phoff.get(LE),
            header.e_phnum.get(LE),
            header.e_phentsize.get(LE),
        )?;
        let loads = entries::<ProgramHeader64<LE>>(&table)
            .iter()
            .filter(|segment| segment.p_type.get(LE) == elf::PT_LOAD)
            .map(|segment| Load {
                offset: segment.p_offset.get(LE),
                bytes: segment.p_filesz.get(LE),
                address: segment.p_vaddr.get(LE),
            })
            .collect();
        let table = self::table::<SectionHeader64<LE>>(
            file,
            header.e_shoff.get(LE),
            header.e_shnum.get(LE),
            header.e_shentsize.get(LE),
        )?;
        let sections = entries::<SectionHeader64<LE>>(&table);
        let of = |kind| sections.iter().find(|section| section.sh_type.get(LE) == kind);
        // The full symbol table has all functions; a stripped file has only those that it exports.
        let symbols = of(elf::SHT_SYMTAB).or_else(|| of(elf::SHT_DYNSYM))?;
        let names = sections.get(symbols.sh_link.get(LE) as usize)?;
        let contents =
            |section: &SectionHeader64<LE>| file.at(section.sh_offset.get(LE), section.sh_size.get(LE));
        let (symbols, names) = (contents(symbols)?, contents(names)?);
        let mut functions: Vec<Function> =
            entries::<Sym64<LE>>(&symbols).iter().filter_map(|symbol| function(symbol, &names)).collect();
        functions.sort_by(|a, b| {
            a.begin.cmp(&b.begin).then_with(|| preference(&a.name).cmp(&preference(&b.name)))
        });
        Some(Self { loads, functions })
    }

    /// Returns the source name of the function at this file offset.
    pub fn name(&self, offset: u64) -> Option<String> {
        let symbol = self.at(offset)?;
        Some(source_name::of(symbol).unwrap_or_else(|| symbol.to_owned()))
    }

    pub fn at(&self, offset: u64) -> Option<&str> {
        let load = self
            .loads
            .iter()
            .find(|load| offset.checked_sub(load.offset).is_some_and(|at| at < load.bytes))?;
        let address = (offset - load.offset).checked_add(load.address)?;
        let behind = self.functions.partition_point(|function| function.begin <= address);
        let begin = self.functions.get(behind.checked_sub(1)?)?.begin;
        let first = self.functions.partition_point(|function| function.begin < begin);
        let found = self.functions.get(first..behind)?.iter().find(|function| address < function.end)?;
        Some(&found.name)
    }
}

/// File systems on which a mapping may have another device than fstat(2) reports.
const OTHER_DEVICE: [libc::c_long; 2] = [libc::OVERLAYFS_SUPER_MAGIC, libc::BTRFS_SUPER_MAGIC];

/// Returns whether a file is that of an image, given its device and inode from stat(2) and its file system's magic number
/// from statfs(2).
///
/// On two file systems the mapping has the same inode but another device. An overlay has that of the layer with the file (in
/// proc_pid_maps(5) before Linux 6.8, longer in records of perf_event_open(2): file_user_inode() in include/linux/fs.h).
/// btrfs has that of the whole file system, not of the subvolume (Linux fs/btrfs/inode.c, btrfs_getattr()).
fn is_mapped(image: &Image, device: (u32, u32), inode: u64, magic: libc::c_long) -> bool {
    (device == image.device || OTHER_DEVICE.contains(&magic)) && inode == image.inode
}

fn opened(path: &[u8]) -> Option<File> {
    let path = path.starts_with(b"/").then(|| Path::new(OsStr::from_bytes(path)))?;
    paths::open_regular(path).ok()
}

/// Among several names of a function, the public one is preferred: `read`, not `__libc_read`.
fn preference(name: &str) -> (usize, usize) {
    (name.len() - name.trim_start_matches('_').len(), name.len())
}

fn function(symbol: &Sym64<LE>, names: &[u8]) -> Option<Function> {
    let kind = symbol.st_info.st_type();
    let is_function = kind == elf::STT_FUNC || kind == elf::STT_GNU_IFUNC;
    let (begin, size) = (symbol.st_value.get(LE), symbol.st_size.get(LE));
    if !is_function || symbol.st_shndx.get(LE) == elf::SHN_UNDEF || size == 0 {
        return None;
    }
    let name = names.get(symbol.st_name.get(LE) as usize..)?;
    let end = name.iter().position(|byte| *byte == 0)?;
    let name = String::from_utf8_lossy(&name[..end]);
    (!name.is_empty()).then(|| Function { begin, end: begin.saturating_add(size), name: name.into() })
}

/// Reads a table of headers; `None` if the file declares another size for them.
fn table<T>(file: &impl Bytes, offset: u64, count: u16, size: u16) -> Option<Vec<u8>> {
    if usize::from(size) != size_of::<T>() {
        return None;
    }
    file.at(offset, u64::from(count) * u64::from(size))
}

fn entries<T: object::Pod>(bytes: &[u8]) -> &[T] {
    pod::slice_from_bytes(bytes, bytes.len() / size_of::<T>()).map_or(&[], |(entries, _)| entries)
}

trait Bytes {
    /// Reads `length` bytes; `None` if there are fewer, or the length is above the limit for a table.
    fn at(&self, offset: u64, length: u64) -> Option<Vec<u8>>;
}

impl Bytes for File {
    fn at(&self, offset: u64, length: u64) -> Option<Vec<u8>> {
        // A false header must not cause a large allocation.
        let end = offset.checked_add(length)?;
        if length > MOST_BYTES || end > self.metadata().ok()?.len() {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Bytes for Vec<u8> {
        fn at(&self, offset: u64, length: u64) -> Option<Vec<u8>> {
            let begin = usize::try_from(offset).ok()?;
            self.get(begin..begin.checked_add(usize::try_from(length).ok()?)?).map(<[u8]>::to_vec)
        }
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    const NAMES: &[u8] = b"\0__read\0read\0tail\0";
    const CODE: u64 = 0x400;

    /// A library with code at offset 0x400, loaded at 0x1400: `read` and `__read` of 16 bytes, and after a gap a `tail` of 8.
    fn library() -> Vec<u8> {
        let symbol = |name: u64, value: u64, size: u64| words(&[name | 0x12 << 32 | 1 << 48, value, size]);
        let symbols =
            [words(&[0, 0, 0]), symbol(1, 0x1400, 16), symbol(8, 0x1400, 16), symbol(13, 0x1418, 8)].concat();
        let (at_segments, at_sections, at_symbols, at_names) = (64, 128, 512, 640);
        let mut ident = [0; 16];
        ident[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        let mut bytes = [
            ident.to_vec(),
            words(&[3 | 62 << 16 | 1 << 32, 0, at_segments, at_sections]),
            words(&[64 << 32 | 56 << 48, 1 | 64 << 16 | 2 << 32]),
        ]
        .concat();
        bytes.extend(words(&[1 | 5 << 32, CODE, 0x1400, 0, 0x100, 0x100, 0x1000]));
        bytes.resize(128, 0);
        bytes.extend(words(&[11 << 32, 0, 0, at_symbols, symbols.len() as u64, 1, 0, 24]));
        bytes.extend(words(&[3 << 32, 0, 0, at_names, NAMES.len() as u64, 0, 0, 0]));
        bytes.resize(at_symbols as usize, 0);
        bytes.extend(symbols);
        bytes.resize(at_names as usize, 0);
        bytes.extend(NAMES);
        bytes.resize(CODE as usize + 0x100, 0xcc);
        bytes
    }

    #[test]
    fn a_mapped_file_has_its_inode_and_on_most_file_systems_its_device() {
        let image = Image { path: b"/bin/true"[..].into(), device: (254, 0), inode: 7 };
        assert!(
            is_mapped(&image, (254, 0), 7, libc::EXT4_SUPER_MAGIC)
                && !is_mapped(&image, (0, 30), 7, libc::EXT4_SUPER_MAGIC)
        );
        for magic in OTHER_DEVICE {
            assert!(is_mapped(&image, (0, 30), 7, magic) && !is_mapped(&image, (0, 30), 8, magic));
        }
    }

    #[test]
    fn a_place_in_the_file_has_the_name_of_the_interface() {
        let functions = Functions::read(&library()).unwrap();
        let names = [0, 15, 16, 0x17, 0x18, 0x1f, 0x20].map(|at| functions.at(CODE + at));
        assert_eq!(names, [Some("read"), Some("read"), None, None, Some("tail"), Some("tail"), None]);
        assert_eq!((functions.at(0), functions.at(u64::MAX)), (None, None));
    }

    #[test]
    fn a_path_that_is_another_file_now_has_no_names() {
        let image = |inode| Image { path: (*b"/proc/self/exe").into(), device: (0, 0), inode };
        assert!(Functions::of(&image(1)).is_none());
        assert!(Functions::of(&Image { path: (*b"[vdso]").into(), device: (0, 0), inode: 0 }).is_none());
    }

    proptest! {
        #[test]
        fn any_damage_is_taken(at in 0usize..1300, byte: u8, offset: u64) {
            let mut bytes = library();
            let length = bytes.len();
            bytes[at % length] = byte;
            if let Some(functions) = Functions::read(&bytes) {
                let _ = (functions.at(offset), functions.at(offset % 2048));
            }
        }

        #[test]
        fn any_bytes_are_taken(bytes: Vec<u8>) {
            let _ = Functions::read(&bytes);
        }
    }
}
