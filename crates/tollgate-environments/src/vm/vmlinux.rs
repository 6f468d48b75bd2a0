//! The vmlinux in a bzImage, if LZ4 compressed it and it has the entry of PVH guests. QEMU boots that without most of the firmware and
//! without the kernel's own decompressor, which take a tenth of a translated boot. Its instructions are counted the same.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use object::LittleEndian;
use object::elf::{FileHeader64, NoteType, PT_NOTE};
use object::read::elf::{FileHeader, ProgramHeader};
use tollgate_os::memfd;
use tollgate_os::paths::read_regular;

/// The most bytes of a bzImage, and of what it unpacks to: at least twice the sizes of any distribution's.
const MOST: u64 = 64 << 20;
const MOST_UNPACKED: usize = 256 << 20;
/// LZ4's legacy format: its magic number, then blocks, each with its size in front. All but the last unpack to 8 MiB
/// (lz4, doc/lz4_Frame_format.md).
const MAGIC: &[u8] = &0x184c_2102_u32.to_le_bytes();
const BLOCK: usize = 8 << 20;
/// The note with the entry (Xen, xen/include/public/elfnote.h, XEN_ELFNOTE_PHYS32_ENTRY).
const ENTRY: (&[u8], NoteType) = (b"Xen", NoteType(18));

/// Device, inode, size and change of a file.
type Named = [i64; 5];
/// The vmlinux that was unpacked last, and the file that it is from.
static LAST: Mutex<Option<(Named, File)>> = Mutex::new(None);

/// Returns the vmlinux in memory, or `None` if there is none. It is unpacked once for several guests.
pub(super) fn of(file: &Path) -> Option<File> {
    let about = std::fs::metadata(file).ok()?;
    let [device, inode, size] = [about.dev(), about.ino(), about.size()].map(u64::cast_signed);
    let named = [device, inode, size, about.ctime(), about.ctime_nsec()];
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.as_ref().is_none_or(|(of, _)| *of != named) {
        let bytes = read_regular(file, MOST).ok()?;
        let vmlinux = unpacked(&bytes).filter(|vmlinux| has_entry(vmlinux).unwrap_or(false))?;
        let mut unpacked = memfd::create("vmlinux").ok()?;
        unpacked.write_all(&vmlinux).ok()?;
        *last = Some((named, unpacked));
    }
    last.as_ref()?.1.try_clone().ok()
}

/// Unpacks what the setup header of a bzImage describes (Documentation/arch/x86/boot.rst: `setup_sects` at 1F1h, `payload_offset` and
/// `payload_length` at 248h). The payload ends with its unpacked size.
fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    let number = |bytes: &[u8], at: usize| {
        bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize)
    };
    let start = (usize::from(*bytes.get(0x1f1)?) + 1) * 512;
    let start = start.checked_add(number(bytes, 0x248)?)?;
    let payload = bytes.get(start..start.checked_add(number(bytes, 0x24c)?)?)?;
    let (blocks, size) = payload.split_last_chunk()?;
    let size = Some(u32::from_le_bytes(*size) as usize).filter(|size| *size <= MOST_UNPACKED)?;
    let mut blocks = blocks.strip_prefix(MAGIC)?;
    let mut all = vec![0; size];
    for block in all.chunks_mut(BLOCK) {
        let packed = number(blocks, 0)?;
        let (one, others) = blocks.get(4..)?.split_at_checked(packed)?;
        (lz4_flex::block::decompress_into(one, block).ok()? == block.len()).then_some(())?;
        blocks = others;
    }
    blocks.is_empty().then_some(all)
}

fn has_entry(vmlinux: &[u8]) -> object::Result<bool> {
    let header = FileHeader64::<LittleEndian>::parse(vmlinux)?;
    for segment in header.program_headers(LittleEndian, vmlinux)? {
        let notes = (segment.p_type(LittleEndian) == PT_NOTE).then(|| segment.notes(LittleEndian, vmlinux));
        let Some(mut notes) = notes.transpose()?.flatten() else { continue };
        while let Some(note) = notes.next()? {
            if (note.name(), note.n_type(LittleEndian)) == ENTRY {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Literals alone (lz4, doc/lz4_Block_format.md).
    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut block = vec![0xf0];
        let rest = bytes.len() - 15;
        block.extend(std::iter::repeat_n(0xff, rest / 0xff));
        block.push((rest % 0xff) as u8);
        block.extend(bytes);
        block
    }

    fn bzimage(blocks: &[Vec<u8>], size: usize) -> Vec<u8> {
        let mut payload = MAGIC.to_vec();
        for block in blocks {
            payload.extend((block.len() as u32).to_le_bytes());
            payload.extend(block);
        }
        payload.extend((size as u32).to_le_bytes());
        let mut bytes = vec![0; 0x600];
        bytes[0x1f1] = 1;
        bytes[0x248..0x24c].copy_from_slice(&0x200_u32.to_le_bytes());
        bytes[0x24c..0x250].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    /// An ELF file whose one segment is a note.
    fn with_note(kind: u32) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0".to_vec();
        bytes.resize(32, 0);
        bytes.extend(64_u64.to_le_bytes());
        bytes.resize(52, 0);
        bytes.extend([64, 56, 1, 0, 0, 0, 0].into_iter().flat_map(u16::to_le_bytes));
        bytes.truncate(64);
        bytes.extend([PT_NOTE.0, 4].into_iter().flat_map(u32::to_le_bytes));
        bytes.extend([120_u64, 0, 0, 20, 20, 4].into_iter().flat_map(u64::to_le_bytes));
        bytes.extend([4, 4, kind].into_iter().flat_map(u32::to_le_bytes));
        bytes.extend(b"Xen\0\0\0\0\x01");
        bytes
    }

    #[test]
    fn a_vmlinux_with_the_entry_is_unpacked_from_all_blocks() {
        let mut vmlinux = with_note(ENTRY.1.0);
        vmlinux.resize(BLOCK + 100, 7);
        let blocks: Vec<_> = vmlinux.chunks(BLOCK).map(packed).collect();
        let file = bzimage(&blocks, vmlinux.len());
        assert!(unpacked(&file).is_some_and(|all| all == vmlinux));
        assert!(has_entry(&vmlinux).is_ok_and(|has| has));
        assert!(has_entry(&with_note(5)).is_ok_and(|has| !has));
        // A block more or less than its size says, another size, and another format.
        for (blocks, size) in [(&blocks[..1], vmlinux.len()), (&blocks, vmlinux.len() - 1), (&blocks, BLOCK)]
        {
            assert!(unpacked(&bzimage(blocks, size)).is_none());
        }
        let mut other = file;
        other[0x600] ^= 1;
        assert!(unpacked(&other).is_none());
    }

    #[test]
    fn it_is_the_same_memory_for_the_next_guest_and_another_for_another_file() {
        let directory = tempfile::tempdir().unwrap();
        let made = |name: &str, filled: u8| {
            let mut vmlinux = with_note(ENTRY.1.0);
            vmlinux.resize(300, filled);
            let place = directory.path().join(name);
            std::fs::write(&place, bzimage(&[packed(&vmlinux)], vmlinux.len())).unwrap();
            of(&place).unwrap().metadata().unwrap().ino()
        };
        let one = made("one", 1);
        assert_eq!(of(&directory.path().join("one")).unwrap().metadata().unwrap().ino(), one);
        assert_ne!(made("other", 2), one);
        assert!(of(directory.path()).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..2048), size in 0_usize..1 << 10) {
            let _ = unpacked(&bytes);
            let _ = unpacked(&bzimage(std::slice::from_ref(&bytes), size));
            let _ = has_entry(&bytes);
        }
    }
}
