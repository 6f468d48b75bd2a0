//! The guest's side of git's index, which has the inode and the change time of each file in the working tree. In a guest both differ,
//! so git would read all files again, even those that it only looked at on the host and whose contents were not copied.
//!
//! The format is that of Documentation/gitformat-index.txt.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sha1::{Digest, Sha1};

/// Sizes of the header, of an entry before its name, and of the hash at the end.
const HEADER: usize = 12;
const BEFORE_NAME: usize = 62;
const HASH: usize = 20;
/// The flag of an entry with 16 more flags.
const EXTENDED: u8 = 0x40;

/// Enters the attributes of the files in the working tree that `is_unread` selects. Sizes and modification times stay as they are. An index
/// of another format is left alone.
pub(super) fn renew(path: &Path, is_unread: impl Fn(&Path) -> bool) -> io::Result<()> {
    let Some(top) = path.parent().and_then(Path::parent) else { return Ok(()) };
    let mut index = fs::read(path)?;
    let renewed = rewrite(&mut index, |name| {
        let file = top.join(OsStr::from_bytes(name));
        fs::symlink_metadata(&file).ok().filter(|_| is_unread(&file)).map(|about| Attributes {
            changed: [about.ctime() as u32, about.ctime_nsec() as u32],
            place: [about.dev() as u32, about.ino() as u32],
            owner: [about.uid(), about.gid()],
        })
    });
    renewed.map_or(Ok(()), |()| fs::write(path, index))
}

/// The attributes that differ between two machines, with as many bits as an entry has.
struct Attributes {
    changed: [u32; 2],
    place: [u32; 2],
    owner: [u32; 2],
}

/// Enters the attributes of the entries that have some, and the hash. `None` if it is not of this format.
fn rewrite(index: &mut [u8], attributes: impl Fn(&[u8]) -> Option<Attributes>) -> Option<()> {
    let word = |index: &[u8], at: usize| -> Option<u32> {
        Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?))
    };
    let version = word(index, 4).filter(|version| index.starts_with(b"DIRC") && (2..=4).contains(version))?;
    let (mut at, mut name) = (HEADER, Vec::new());
    for _ in 0..word(index, 8)? {
        let more = if index.get(at + BEFORE_NAME - 2)? & EXTENDED == 0 { 0 } else { 2 };
        let mut begins = at + BEFORE_NAME + more;
        if version == 4 {
            let (dropped, length) = offset(index.get(begins..)?)?;
            name.truncate(name.len().checked_sub(dropped)?);
            begins += length;
        } else {
            name.clear();
        }
        let length = index.get(begins..)?.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(&index[begins..begins + length]);
        if let Some(Attributes { changed, place, owner }) = attributes(&name) {
            // After each pair come the modification time, the mode, and the size.
            for (pair, numbers) in [changed, place, owner].iter().enumerate() {
                let (skipped, bytes) = ([0, 16, 28][pair], numbers.map(u32::to_be_bytes));
                index.get_mut(at + skipped..at + skipped + 8)?.copy_from_slice(bytes.as_flattened());
            }
        }
        let end = begins + length + 1;
        at = if version == 4 { end } else { at + (end - at).next_multiple_of(8) };
    }
    let (contents, hash) = index.split_at_mut(index.len().checked_sub(HASH).filter(|end| *end >= at)?);
    // git does not compute it with `index.skipHash`.
    if hash.iter().any(|byte| *byte != 0) {
        hash.copy_from_slice(&Sha1::digest(contents));
    }
    Some(())
}

/// The number of bytes that a name of version 4 does not share with the one before, and how many bytes it takes: the encoding of offsets in
/// packs (Documentation/gitformat-pack.txt).
fn offset(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut number = 0_usize;
    for (at, byte) in bytes.iter().enumerate() {
        number = number.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
        if byte & 128 == 0 {
            return Some((number, at + 1));
        }
        number = number.checked_add(1)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index of two files, of which git compresses the second name in version 4.
    fn index(version: u32) -> Vec<u8> {
        let mut index = [&b"DIRC"[..], &version.to_be_bytes(), &2_u32.to_be_bytes()].concat();
        for (name, compressed) in [("deep/one", &b"\0deep/one\0"[..]), ("deep/two", b"\x03two\0")] {
            let begins = index.len();
            index.extend([7; BEFORE_NAME - 2]);
            index.extend([0, name.len() as u8]);
            index.extend(if version == 4 { compressed } else { name.as_bytes() });
            let length = (index.len() + 1 - begins).next_multiple_of(8);
            index.resize(if version == 4 { index.len() } else { begins + length }, 0);
        }
        let hash = Sha1::digest(&index);
        [index, hash.to_vec()].concat()
    }

    #[test]
    fn entries_get_the_attributes_of_the_files_that_are_there() {
        for version in 2..=4 {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join(".git/index");
            fs::create_dir_all(directory.path().join(".git")).unwrap();
            fs::create_dir_all(directory.path().join("deep")).unwrap();
            fs::write(directory.path().join("deep/one"), "").unwrap();
            fs::write(directory.path().join("deep/two"), "").unwrap();
            fs::write(&path, index(version)).unwrap();
            renew(&path, |file| file.ends_with("deep/two")).unwrap();
            let (before, after) = (index(version), fs::read(&path).unwrap());
            let about = fs::metadata(directory.path().join("deep/two")).unwrap();
            let second = if version == 4 { HEADER + BEFORE_NAME + 10 } else { HEADER + 72 };
            let words = |bytes: &[u8]| -> Vec<u32> {
                bytes.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect()
            };
            let seven = u32::from_be_bytes([7; 4]);
            assert_eq!(
                words(&after[second..second + 40]),
                [
                    about.ctime() as u32,
                    about.ctime_nsec() as u32,
                    seven,
                    seven,
                    about.dev() as u32,
                    about.ino() as u32,
                    seven,
                    about.uid(),
                    about.gid(),
                    seven
                ]
            );
            let end = after.len() - HASH;
            assert_eq!(
                (&after[..second], &after[second + 40..end]),
                (&before[..second], &before[second + 40..end])
            );
            assert_eq!(after[end..], Sha1::digest(&after[..end])[..]);
        }
    }

    #[test]
    fn offsets_are_those_of_packs() {
        let offsets = [&[0x7f][..], &[0x80, 0], &[0x81, 0x80, 1], &[0xff; 20], &[0x80]].map(offset);
        assert_eq!(offsets, [Some((127, 1)), Some((128, 2)), Some((32897, 3)), None, None]);
    }

    fn even(name: &[u8]) -> Option<Attributes> {
        name.len().is_multiple_of(2).then_some(Attributes { changed: [1; 2], place: [2; 2], owner: [3; 2] })
    }

    takes_any! {
        bytes in prop::collection::vec(any::<u8>(), 0..300), version in 2..5_u32, at in 0..200_usize =>
            {
                let _ = rewrite(&mut bytes.clone(), even);
                let mut changed = index(version);
                let place = HEADER - 4 + at.min(changed.len() - HEADER);
                let length = bytes.len().min(changed.len() - place).min(4);
                changed[place..place + length].copy_from_slice(&bytes[..length]);
                rewrite(&mut changed, even)
            }
    }
}
