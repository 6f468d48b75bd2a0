//! Files that are made once in a run and found there by each of its processes: to be read, or written again in place.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use tollgate_engine::clock::Clock;
use tollgate_engine::{Random, Refusal, alive};

use super::place::Place;
use super::refusal::{checked, done, refused, whole};

/// A file of pseudo-random bytes, nothing that a file system or a device could make smaller.
pub(super) struct Made {
    pub file: OwnedFd,
    pub length: u64,
    /// What it took to make it, where it was not there yet.
    pub took: Duration,
}

/// What a file holds: each word of it follows from this and from where it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contents(pub u64);

impl Contents {
    /// The eight bytes at `offset`, a multiple of 8.
    pub fn word(self, offset: u64) -> u64 {
        Random::new(self.0 << 48 ^ offset).next()
    }

    /// Whether `bytes` are those at `offset`: one word of them, another one for each offset.
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

/// The files that are read take half of the room, but not more.
const MOST: u64 = 32 << 20;
/// The cached one and the other.
const LEAST: u64 = 2 << 20;
/// Bytes that are written at a time.
const CHUNK: u64 = 1 << 20;

/// The file whose reads are cached: all of it stays in memory.
///
/// # Errors
/// As [`file()`].
pub(super) fn cached(place: &Rc<Place>) -> Result<(Made, Contents), Refusal> {
    let contents = Contents(1);
    let (length, _) = lengths(place)?;
    Ok((file(place, c"cached", length, CHUNK, contents)?, contents))
}

/// The file whose reads come from storage.
///
/// # Errors
/// As [`file()`].
pub(super) fn uncached(place: &Rc<Place>) -> Result<(Made, Contents), Refusal> {
    let contents = Contents(2);
    let (_, length) = lengths(place)?;
    Ok((file(place, c"uncached", length, CHUNK, contents)?, contents))
}

/// Of the cached file and of the other.
fn lengths(place: &Place) -> Result<(u64, u64), Refusal> {
    place.allows(2 * LEAST)?;
    let both = (place.limits() / 2).min(MOST) / CHUNK * CHUNK;
    let cached = (both / 8 / CHUNK * CHUNK).max(CHUNK);
    Ok((cached, both - cached))
}

/// A file that is written again and again: an eighth of the room, 8 MiB at the most, multiples of 1 MiB.
///
/// # Errors
/// As [`file()`].
pub(super) fn rewritten(place: &Rc<Place>, name: &CStr) -> Result<Made, Refusal> {
    place.allows(8 * CHUNK)?;
    file(place, name, (place.limits() / 8).min(8 << 20) / CHUNK * CHUNK, CHUNK, Contents(3))
}

/// The file of this name, as an earlier process of the run made it; else it is made and written out. Where storage is
/// slow it is shorter, but never shorter than `least`; both are multiples of 4 KiB.
///
/// # Errors
/// As [`refused`]; an incomplete file never has the name.
pub(super) fn file(
    place: &Rc<Place>,
    name: &CStr,
    length: u64,
    least: u64,
    contents: Contents,
) -> Result<Made, Refusal> {
    if let Some(found) = find(place, name, length, least)? {
        return Ok(found);
    }
    let mut made = Err(Refusal::Fail("it was not made".to_owned()));
    let span = Clock::Kernel.time(|| made = make(place, name, length, least, contents));
    let (file, length) = made?;
    Ok(Made { file, length, took: Duration::from_nanos(span.ticks) })
}

fn find(place: &Place, name: &CStr, most: u64, least: u64) -> Result<Option<Made>, Refusal> {
    let file = match place.open(name, libc::O_RDWR) {
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
    place: &Rc<Place>,
    name: &CStr,
    length: u64,
    least: u64,
    contents: Contents,
) -> Result<(OwnedFd, u64), Refusal> {
    let file = place.create(c"incomplete")?;
    let filled = fill(&file, length, least, contents);
    let named = filled.and_then(|length| {
        done("renameat(2)", place.rename(c"incomplete", name))?;
        Ok(length)
    });
    if named.is_err() {
        // The reason is what counts.
        let _ = place.remove(c"incomplete");
    }
    Ok((file, named?))
}

/// Writes so much, and all of it out. Returns how much it was.
fn fill(file: &OwnedFd, length: u64, least: u64, contents: Contents) -> Result<u64, Refusal> {
    /// After so long what there is must do: a run has other things to do.
    const LONG_ENOUGH: u64 = 400_000_000; // nanoseconds
    /// Written out together: a device that takes long must not seem to hang.
    const PORTION: u64 = 4 * CHUNK;
    let mut bytes = vec![0_u8; CHUNK.min(length) as usize];
    let (mut written, mut took) = (0, 0);
    while written < length && (written < least || took < LONG_ENOUGH) {
        alive();
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

/// Writes all of `bytes` at `offset`. What fits before a limit is written before the limit is told.
///
/// # Errors
/// As [`refused`].
pub(super) fn put(file: &OwnedFd, bytes: &[u8], offset: u64) -> Result<(), Refusal> {
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

/// Waits until all of the file is on storage.
///
/// # Errors
/// As [`refused`].
pub(super) fn write_out(file: &OwnedFd) -> Result<(), Refusal> {
    // SAFETY: an open descriptor.
    done("fdatasync(2)", checked(unsafe { libc::fdatasync(file.as_raw_fd()) }))
}

/// Offsets of blocks, one after the other and round again; or any.
pub(super) struct Offsets {
    block: u64,
    blocks: u64,
    next: u64,
    random: Random,
}

impl Offsets {
    /// Of the blocks that fit into a file of this length.
    pub fn new(length: u64, block: u64) -> Self {
        Self { block, blocks: (length / block.max(1)).max(1), next: 0, random: Random::new(Random::seed()) }
    }

    /// The next one.
    pub fn next(&mut self) -> u64 {
        let at = self.next;
        self.next = (at + 1) % self.blocks;
        at * self.block
    }

    /// Any of them.
    pub fn any(&mut self) -> u64 {
        self.random.next() % self.blocks * self.block
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt, MetadataExt};

    use proptest::prelude::*;

    use super::super::place::tests::Own;
    use super::*;

    #[test]
    fn a_file_is_made_once_and_found_afterwards() {
        let own = Own::with_limits(8 << 20);
        let (first, _) = cached(&own.place).expect("made");
        let (second, contents) = cached(&own.place).expect("found");
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
    fn an_incomplete_one_is_made_anew() {
        let own = Own::with_limits(8 << 20);
        let short = own.place.create(c"uncached").expect("a file");
        put(&short, &[1; 4096], 0).expect("written");
        let abandoned = own.place.create(c"incomplete").expect("a file");
        let (made, contents) = uncached(&own.place).expect("made");
        assert_eq!(made.length, 3 << 20);
        let mut bytes = [0; 4096];
        std::fs::File::from(made.file).read_exact_at(&mut bytes, 0).expect("read");
        assert!(contents.begin(&bytes, 0));
        drop((short, abandoned));
        assert_eq!(own.names(), ["uncached"]);
    }

    #[test]
    fn all_files_together_are_no_more_than_there_is_limits_for() {
        for limits in [4 << 20, 8 << 20, 30 << 20, 64 << 20, 1 << 40] {
            let own = Own::with_limits(limits);
            let (cached, uncached) = lengths(&own.place).expect("room");
            assert!(cached >= CHUNK && uncached >= CHUNK && cached + uncached <= MOST);
            let rewritten = if limits < 8 << 20 { 0 } else { (limits / 8).min(8 << 20) };
            assert!(cached + uncached + 3 * rewritten + (limits / 8) <= limits, "{limits}");
        }
        let own = Own::with_limits(3 << 20);
        let Err(Refusal::Skip(why)) = cached(&own.place) else { panic!("too little") };
        assert_eq!(why, "4 MiB of files would be more than what the test allows");
        assert!(rewritten(&own.place, c"any").is_err());
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
