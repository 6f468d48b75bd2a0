//! Finding a function of the vDSO by its own symbol table, so that no C library's wrapper or cache
//! answers in its place.

use std::ffi::CStr;

use crate::bench::Refusal;

// ELF64, System V ABI.
const PROGRAM_HEADER: usize = 56;
const SYMBOL: usize = 24;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;

/// The address of the first of `names` that the vDSO of this process has.
pub(super) fn find(names: &[&CStr]) -> Result<u64, Refusal> {
    // SAFETY: getauxval(3) has no preconditions.
    let base = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    if base == 0 {
        return Err(Refusal::Skip("this process has no vDSO (AT_SYSINFO_EHDR)".to_owned()));
    }
    // SAFETY: the kernel mapped an ELF image there, for as long as the process lives.
    let image = unsafe { Image::new(base as usize) };
    let wanted = names.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    image
        .and_then(|image| names.iter().find_map(|name| image.symbol(name)))
        .ok_or_else(|| Refusal::Skip(format!("the vDSO here has no {wanted}")))
}

/// The mapped vDSO: bytes, and where its addresses begin.
struct Image {
    bytes: &'static [u8],
    base: u64,
    /// Addresses in the file are relative to this one.
    linked_at: u64,
}

impl Image {
    /// # Safety
    /// An ELF image must be mapped at `base`, whole, for as long as the process lives.
    unsafe fn new(base: usize) -> Option<Self> {
        const FIRST_PAGE: usize = 4096;
        // SAFETY: the image is at least one page long.
        let first = unsafe { std::slice::from_raw_parts(base as *const u8, FIRST_PAGE) };
        if first.get(..5)? != b"\x7fELF\x02" {
            return None;
        }
        let headers = Headers { bytes: first };
        let load = headers.of(PT_LOAD)?;
        let size = usize::try_from(load.file_offset.checked_add(load.file_size)?).ok()?;
        // Real ones have two to four pages; a size beyond any reason is not believed.
        if size > 1 << 20 {
            return None;
        }
        // SAFETY: the loaded segment is this long.
        let bytes = unsafe { std::slice::from_raw_parts(base as *const u8, size) };
        Some(Self { bytes, base: base as u64, linked_at: load.address.checked_sub(load.file_offset)? })
    }

    fn symbol(&self, name: &CStr) -> Option<u64> {
        let dynamic = Headers { bytes: self.bytes }.of(PT_DYNAMIC)?;
        let strings = self.dynamic(&dynamic, DT_STRTAB)?;
        let symbols = self.dynamic(&dynamic, DT_SYMTAB)?;
        let count = self.symbol_count(&dynamic)?;
        (0..count).find_map(|index| {
            let at = symbols.checked_add(index.checked_mul(SYMBOL)?)?;
            let text = strings.checked_add(word(self.bytes, at)? as usize)?;
            let found = CStr::from_bytes_until_nul(self.bytes.get(text..)?).ok()?;
            let section = half(self.bytes, at + 6)?;
            let value = long(self.bytes, at + 8)?;
            (found == name && section != 0)
                .then(|| self.base.wrapping_add(value.wrapping_sub(self.linked_at)))
        })
    }

    /// The offset in the image that the dynamic entry `tag` points to.
    fn dynamic(&self, dynamic: &Header, tag: u64) -> Option<usize> {
        let start = usize::try_from(dynamic.file_offset).ok()?;
        let entries = self.bytes.get(start..)?.chunks_exact(16).take(64);
        let found = entries
            .take_while(|entry| long(entry, 0) != Some(0))
            .find(|entry| long(entry, 0) == Some(tag))?;
        // Nobody relocates it: addresses are as linked, which some kernels put high up, or already moved.
        let address = long(found, 8)?;
        let inside = |origin: u64| {
            let relative = usize::try_from(address.checked_sub(origin)?).ok()?;
            (relative < self.bytes.len()).then_some(relative)
        };
        inside(self.linked_at).or_else(|| inside(self.base))
    }

    /// Entries of the symbol table: the chain count of the System V hash table, or what the GNU hash
    /// table's buckets and chains reach.
    fn symbol_count(&self, dynamic: &Header) -> Option<usize> {
        if let Some(hash) = self.dynamic(dynamic, DT_HASH) {
            return Some((word(self.bytes, hash + 4)? as usize).min(4096));
        }
        let hash = self.dynamic(dynamic, DT_GNU_HASH)?;
        let buckets = word(self.bytes, hash)? as usize;
        let first = word(self.bytes, hash + 4)? as usize;
        let bloom = word(self.bytes, hash + 8)? as usize;
        let table = hash + 16 + bloom.min(4096) * 8;
        let chains = table + buckets.min(4096) * 4;
        let highest =
            (0..buckets.min(4096)).filter_map(|bucket| word(self.bytes, table + 4 * bucket)).max()? as usize;
        let mut last = highest.max(first);
        // A chain ends at the entry whose lowest bit is set.
        while word(self.bytes, chains + 4 * last.checked_sub(first)?)? & 1 == 0 && last < 4096 {
            last += 1;
        }
        Some(last + 1)
    }
}

struct Header {
    file_offset: u64,
    address: u64,
    file_size: u64,
}

struct Headers<'a> {
    bytes: &'a [u8],
}

impl Headers<'_> {
    fn of(&self, kind: u32) -> Option<Header> {
        let table = usize::try_from(long(self.bytes, 32)?).ok()?;
        let count = usize::from(half(self.bytes, 56)?).min(16);
        (0..count).filter_map(|index| table.checked_add(index * PROGRAM_HEADER)).find_map(|at| {
            (word(self.bytes, at)? == kind).then_some(())?;
            Some(Header {
                file_offset: long(self.bytes, at + 8)?,
                address: long(self.bytes, at + 16)?,
                file_size: long(self.bytes, at + 32)?,
            })
        })
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_found_and_tells_the_time() {
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
    fn what_is_not_there_is_not_found() {
        assert!(matches!(find(&[c"__vdso_no_such_thing"]), Err(Refusal::Skip(_))));
    }
}
