//! Finds a function in the symbol table of the vDSO, so that no wrapper or cache of the C library is measured.

use std::ffi::CStr;

use object::elf::{self, Dyn64, FileHeader64, ProgramHeader64, Sym64};
use object::read::elf::{FileHeader, GnuHashTable, HashTable, ProgramHeader};
use object::{LittleEndian as LE, pod};

use crate::prelude::*;

pub(super) fn find(names: &[&CStr]) -> Result<u64> {
    // SAFETY: getauxval(3) has no preconditions.
    let base = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    if base == 0 {
        return Err(skip!("this process has no vDSO (AT_SYSINFO_EHDR)"));
    }
    // SAFETY: the kernel mapped an ELF image there, for as long as the process lives.
    let image = unsafe { Image::new(base as usize) };
    let wanted = names.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    image
        .and_then(|image| names.iter().find_map(|name| image.symbol(name)))
        .ok_or_else(|| skip!("the vDSO here has no {wanted}"))
}

/// The mapped vDSO.
struct Image {
    bytes: &'static [u8],
    base: u64,
    /// The address that addresses in the file are relative to.
    linked_at: u64,
}

impl Image {
    /// # Safety
    /// An ELF image must be mapped at `base`, whole, for as long as the process lives.
    unsafe fn new(base: usize) -> Option<Self> {
        const FIRST_PAGE: usize = 4096;
        // SAFETY: the image is at least one page long.
        let first = unsafe { std::slice::from_raw_parts(base as *const u8, FIRST_PAGE) };
        let load = segment(first, elf::PT_LOAD)?;
        let (offset, length) = load.file_range(LE);
        let size = usize::try_from(offset.checked_add(length)?).ok()?;
        // Real images have two to four pages; a huge size is rejected.
        if size > 1 << 20 {
            return None;
        }
        // SAFETY: the loaded segment is this long.
        let bytes = unsafe { std::slice::from_raw_parts(base as *const u8, size) };
        Some(Self { bytes, base: base as u64, linked_at: load.p_vaddr.get(LE).checked_sub(offset)? })
    }

    fn symbol(&self, name: &CStr) -> Option<u64> {
        let dynamic = segment(self.bytes, elf::PT_DYNAMIC)?.dynamic(LE, self.bytes).ok()??;
        let strings = self.behind(dynamic, elf::DT_STRTAB)?;
        let symbols = self.behind(dynamic, elf::DT_SYMTAB)?;
        let count = (self.symbol_count(dynamic)? as usize).min(symbols.len() / size_of::<Sym64<LE>>());
        let (symbols, _) = pod::slice_from_bytes::<Sym64<LE>>(symbols, count).ok()?;
        let is_it = |symbol: &&Sym64<LE>| {
            let text = strings.get(symbol.st_name.get(LE) as usize..);
            let its_name = text.and_then(|text| CStr::from_bytes_until_nul(text).ok());
            its_name == Some(name) && symbol.st_shndx.get(LE) != elf::SHN_UNDEF
        };
        let symbol = symbols.iter().find(is_it)?;
        Some(self.base.wrapping_add(symbol.st_value.get(LE).wrapping_sub(self.linked_at)))
    }

    /// Returns the image from the address in dynamic entry `tag` to its end.
    fn behind(&self, dynamic: &[Dyn64<LE>], tag: elf::DynamicTag) -> Option<&'static [u8]> {
        let entries = dynamic.iter().take_while(|entry| entry.d_tag.get(LE) != elf::DT_NULL);
        let found = { entries }.find(|entry| entry.d_tag.get(LE) == tag)?;
        // The kernel does not relocate the image. Addresses are as linked (on some kernels high), or already relocated.
        let address = found.d_val.get(LE);
        let inside = |origin: u64| {
            let relative = usize::try_from(address.checked_sub(origin)?).ok()?;
            (relative < self.bytes.len()).then_some(relative)
        };
        self.bytes.get(inside(self.linked_at).or_else(|| inside(self.base))?..)
    }

    fn symbol_count(&self, dynamic: &[Dyn64<LE>]) -> Option<u32> {
        if let Some(hash) = self.behind(dynamic, elf::DT_HASH) {
            return Some(HashTable::<FileHeader64<LE>>::parse(LE, hash).ok()?.symbol_table_length());
        }
        let hash = self.behind(dynamic, elf::DT_GNU_HASH)?;
        GnuHashTable::<FileHeader64<LE>>::parse(LE, hash).ok()?.symbol_table_length(LE)
    }
}

fn segment(bytes: &'static [u8], kind: elf::ProgramType) -> Option<&'static ProgramHeader64<LE>> {
    let header = FileHeader64::<LE>::parse(bytes).ok()?;
    header.program_headers(LE, bytes).ok()?.iter().find(|segment| segment.p_type.get(LE) == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vdso_clock_is_found_and_works() {
        match find(&[c"__vdso_clock_gettime", c"clock_gettime"]) {
            Ok(address) => {
                // SAFETY: the vDSO's clock_gettime has this signature (vdso(7)).
                let clock_gettime: extern "C" fn(i32, *mut libc::timespec) -> i32 =
                    unsafe { std::mem::transmute(address as usize) };
                let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
                assert_eq!(clock_gettime(libc::CLOCK_REALTIME, &mut time), 0);
                assert!(time.tv_sec > 1_600_000_000);
            }
            Err(refusal) => eprintln!("skipped: {refusal:?}"),
        }
    }

    #[test]
    fn a_missing_function_is_not_found() {
        assert!(matches!(find(&[c"__vdso_no_such_thing"]), Err(Refusal::Skip(_))));
    }
}
