//! Data files for reads and overwrites. The first process of a run that needs one makes it; later ones use it.

use std::os::fd::{AsRawFd, OwnedFd};
use std::{ffi::CStr, rc::Rc, time::Duration};

use super::data_dir::DataDir;
use super::refusal::{done, refused, whole};
use crate::prelude::*;

/// A file of pseudo-random bytes, which neither a file system nor a device can compress.
pub(super) struct Made {
    pub file: OwnedFd,
    pub length: u64,
    /// The time to make it; zero if it existed.
    pub took: Duration,
}

/// The contents of a file: each word depends on this seed and on its offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contents(pub u64);

impl Contents {
    pub fn word(self, offset: u64) -> u64 {
        Random::new(self.0 << 48 ^ offset).next_u64()
    }

    /// Returns whether `bytes` are the contents at `offset`. Checks one word, whose place depends on the offset.
    pub fn begin(self, bytes: &[u8], offset: u64) -> bool {
        let at = (offset / 512 * 8) as usize % bytes.len().max(1);
        bytes
            .get(at..)
            .and_then(<[u8]>::first_chunk)
            .is_some_and(|word| u64::from_le_bytes(*word) == self.word(offset + at as u64))
    }

    fn write(self, bytes: &mut [u8], offset: u64) {
        for (index, word) in bytes.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&self.word(offset + index as u64 * 8).to_le_bytes());
        }
    }
}

/// Limit for the files for reads, which may also take at most half of the quota.
const MOST: u64 = 32 << 20;
/// Minimum for the cached and the uncached file.
const LEAST: u64 = 2 << 20;
const CHUNK: u64 = 1 << 20;

pub(super) fn cached(dir: &Rc<DataDir>) -> Result<(Made, Contents)> {
    let contents = Contents(1);
    let (length, _) = lengths(dir)?;
    Ok((file(dir, c"cached", length, CHUNK, contents)?, contents))
}

pub(super) fn uncached(dir: &Rc<DataDir>) -> Result<(Made, Contents)> {
    let contents = Contents(2);
    let (_, length) = lengths(dir)?;
    Ok((file(dir, c"uncached", length, CHUNK, contents)?, contents))
}

fn lengths(dir: &DataDir) -> Result<(u64, u64)> {
    dir.allows(2 * LEAST)?;
    let both = (dir.limit() / 2).min(MOST) / CHUNK * CHUNK;
    let cached = (both / 8 / CHUNK * CHUNK).max(CHUNK);
    Ok((cached, both - cached))
}

/// Returns a file for overwrites: an eighth of the limit, at most 8 MiB, a multiple of 1 MiB.
pub(super) fn rewritten(dir: &Rc<DataDir>, name: &CStr) -> Result<Made> {
    dir.allows(8 * CHUNK)?;
    file(dir, name, (dir.limit() / 8).min(8 << 20) / CHUNK * CHUNK, CHUNK, Contents(3))
}

/// Returns the file of this name from an earlier process of the run, or makes it and syncs it to storage. On slow
/// storage it is shorter, but at least `least`. Both lengths are multiples of 4 KiB.
///
/// # Errors
/// Fails as [`refused`]. An incomplete file never gets the name.
pub(super) fn file(
    dir: &Rc<DataDir>,
    name: &CStr,
    length: u64,
    least: u64,
    contents: Contents,
) -> Result<Made> {
    if let Some(found) = find(dir, name, length, least)? {
        return Ok(found);
    }
    let mut made = Err(fail!("the file was not made"));
    let span = Clock::Kernel.time(|| made = make(dir, name, length, least, contents));
    let (file, length) = made?;
    Ok(Made { file, length, took: Duration::from_nanos(span.ticks) })
}

fn find(dir: &DataDir, name: &CStr, most: u64, least: u64) -> Result<Option<Made>> {
    let file = match dir.open(name, libc::O_RDWR) {
        Ok(file) => file,
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
        Err(error) => return Err(refused("openat(2)", &error)),
    };
    // SAFETY: an open descriptor.
    let length = checked(unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_END) });
    let length = length.map_err(|error| refused("lseek(2)", &error))? as u64;
    let usable = (least..=most).contains(&length) && length.is_multiple_of(least.min(CHUNK));
    Ok(usable.then_some(Made { file, length, took: Duration::ZERO }))
}

fn make(
    dir: &Rc<DataDir>,
    name: &CStr,
    length: u64,
    least: u64,
    contents: Contents,
) -> Result<(OwnedFd, u64)> {
    let file = dir.create(c"incomplete")?;
    let filled = fill(&file, length, least, contents, &dir.heartbeat);
    let named = filled.and_then(|length| {
        done("renameat(2)", dir.rename(c"incomplete", name))?;
        Ok(length)
    });
    if named.is_err() {
        // The first error is the one to report.
        let _ = dir.remove(c"incomplete");
    }
    Ok((file, named?))
}

/// Writes and syncs up to `length` bytes. Returns the length.
fn fill(file: &OwnedFd, length: u64, least: u64, contents: Contents, heartbeat: &Heartbeat) -> Result<u64> {
    /// The file may end, if at least `least` long, once writing has taken this long.
    const LONG_ENOUGH: u64 = 400_000_000; // nanoseconds
    /// Syncs in portions, because a slow device must not look like a hang.
    const PORTION: u64 = 4 * CHUNK;
    let mut bytes = vec![0_u8; CHUNK.min(length) as usize];
    let (mut written, mut took) = (0, 0);
    while written < length && (written < least || took < LONG_ENOUGH) {
        heartbeat.beat();
        let portion = &mut bytes[..(length - written).min(CHUNK) as usize];
        contents.write(portion, written);
        let mut outcome = Ok(());
        let span = Clock::Kernel.time(|| outcome = put(file, portion, written));
        outcome?;
        written += portion.len() as u64;
        took += span.ticks;
        if written.is_multiple_of(PORTION) || written == length || written == least {
            let mut outcome = Ok(());
            let span = Clock::Kernel.time(|| outcome = write_out(file));
            outcome?;
            took += span.ticks;
        }
    }
    write_out(file)?;
    Ok(written)
}

pub(super) fn put(file: &OwnedFd, bytes: &[u8], offset: u64) -> Result<()> {
    let mut written = 0;
    while let Some(rest @ [_, ..]) = bytes.get(written..) {
        let at = offset + written as u64;
        // SAFETY: the buffer is valid for reading its own length.
        let moved = checked(unsafe {
            libc::pwrite(file.as_raw_fd(), rest.as_ptr().cast(), rest.len(), at as libc::off_t)
        } as i64);
        written += match moved {
            Ok(0) => return whole("pwrite(2)", Ok(written), bytes.len()),
            Ok(moved) => moved,
            Err(error) => return Err(refused("pwrite(2)", &error)),
        };
    }
    Ok(())
}

pub(super) fn write_out(file: &OwnedFd) -> Result<()> {
    // SAFETY: an open descriptor.
    done("fdatasync(2)", checked(unsafe { libc::fdatasync(file.as_raw_fd()) }))
}

pub(super) struct Offsets {
    block: u64,
    blocks: u64,
    next: u64,
    random: Random,
}

impl Offsets {
    pub fn new(length: u64, block: u64) -> Self {
        Self { block, blocks: (length / block.max(1)).max(1), next: 0, random: Random::new(Random::seed()) }
    }

    pub fn next(&mut self) -> u64 {
        let at = self.next;
        self.next = (at + 1) % self.blocks;
        at * self.block
    }

    pub fn any(&mut self) -> u64 {
        self.random.next_u64() % self.blocks * self.block
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt, MetadataExt};

    use proptest::prelude::*;

    use super::super::data_dir::tests::Own;
    use super::*;

    #[test]
    fn a_file_is_made_once_and_found_afterwards() {
        let own = Own::with_limit(8 << 20);
        let (first, _) = cached(&own.dir).expect("made");
        let (second, contents) = cached(&own.dir).expect("found");
        assert!(first.took > Duration::ZERO && second.took == Duration::ZERO);
        let (first, second) = (std::fs::File::from(first.file), std::fs::File::from(second.file));
        let inode = |file: &std::fs::File| file.metadata().expect("a file").ino();
        assert_eq!(inode(&first), inode(&second));
        let mut bytes = vec![0; 1 << 20];
        second.read_exact_at(&mut bytes, 0).expect("read");
        assert!(contents.begin(&bytes, 0) && contents.begin(&bytes[8192..], 8192));
        assert!(!contents.begin(&bytes, 8192) && !contents.begin(&[], 0));
        assert_eq!(own.names(), ["cached"]);
    }

    #[test]
    fn an_incomplete_file_is_made_again() {
        let own = Own::with_limit(8 << 20);
        let short = own.dir.create(c"uncached").expect("a file");
        put(&short, &[1; 4096], 0).expect("written");
        let abandoned = own.dir.create(c"incomplete").expect("a file");
        let (made, contents) = uncached(&own.dir).expect("made");
        // It is shorter where writing takes long.
        assert!((CHUNK..=3 * CHUNK).contains(&made.length), "{}", made.length);
        let mut bytes = [0; 4096];
        std::fs::File::from(made.file).read_exact_at(&mut bytes, 0).expect("read");
        assert!(contents.begin(&bytes, 0));
        drop((short, abandoned));
        assert_eq!(own.names(), ["uncached"]);
    }

    #[test]
    fn all_files_together_stay_within_the_limit() {
        for limit in [4 << 20, 8 << 20, 30 << 20, 64 << 20, 1 << 40] {
            let own = Own::with_limit(limit);
            let (cached, uncached) = lengths(&own.dir).expect("within the limit");
            assert!(cached >= CHUNK && uncached >= CHUNK && cached + uncached <= MOST);
            let rewritten = if limit < 8 << 20 { 0 } else { (limit / 8).min(8 << 20) };
            assert!(cached + uncached + 3 * rewritten + (limit / 8) <= limit, "{limit}");
        }
        let own = Own::with_limit(3 << 20);
        let Err(Refusal::Skip(why)) = cached(&own.dir) else { panic!("too little") };
        assert_eq!(why, "4 MiB of files would be more than what the test allows");
        assert!(rewritten(&own.dir, c"any").is_err());
    }

    proptest! {
        #[test]
        fn offsets_lie_within_the_file(length in 4096_u64..1 << 30, power in 9_u32..20) {
            let block = 1 << power;
            let length = length.max(block);
            let mut offsets = Offsets::new(length, block);
            for _ in 0..20 {
                for offset in [offsets.next(), offsets.any()] {
                    prop_assert!(offset + block <= length && offset % block == 0);
                }
            }
        }
    }
}
