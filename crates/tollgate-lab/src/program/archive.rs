//! The archive: programs in the form that the lab's kernel reads. Little-endian.
//!
//! | offset | size | |
//! |---|---|---|
//! | 0 | 8 | `tgprog`, 0, 1 |
//! | 8 | 4 | bytes of the archive |
//! | 12 | 4 | programs |
//! | 16 | 4 | options; bit 0: no timer; bits 8 and 9: [`TEST_AND_SET`] |
//! | 20 | 4 | the timer's period, in counts of the PIT (1193182 a second); 0 for the kernel's own |
//! | 24 | 40 | 0 |
//! | 64 | 64 each | programs: name (24), entry (8), bytes of the stack (8), first segment (4), segments (4), argument (4), flags (4), 0 (8) |
//! | | 40 each | segments: address (8), bytes in memory (8), offset in the archive (8), bytes in the archive (8), rights (4), 0 (4) |
//! | | | the bytes of segments, each at a multiple of 16 |
//!
//! Flags of a program: bit 0, I/O privilege level 3 is allowed; bit 1, 32-bit code. Rights: 1 execute, 2 write, 4 read.

use super::{LONGEST_NAME, MAX_ARCHIVE, MAX_PROGRAMS, Program, Rights, Segment};

const MAGIC: &[u8; 8] = b"tgprog\0\x01";
const HEADER: usize = 64;
const PROGRAM: usize = 64;
const SEGMENT: usize = 40;

/// Options that make the kernel guard the test-and-set, at a switch and at a page fault (`guest/system/restart.s`).
pub(crate) const TEST_AND_SET: [u32; 2] = [1 << 8, 1 << 9];

/// The timer that switches between threads of control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timer {
    /// The kernel's own period.
    #[default]
    Usual,
    /// A period in counts of the PIT, 1193182 a second.
    Counts(u16),
    /// No timer: a thread of control runs until it yields, waits or ends.
    Off,
}

/// Why programs do not fit into one machine.
#[expect(missing_docs, reason = "the message says what the fields are")]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    #[error("there is no program to run")]
    Empty,
    #[error("{0} programs are too many: one machine runs at most {MAX_PROGRAMS}")]
    TooMany(usize),
    #[error("the programs take {0} bytes together with their table; the limit is {MAX_ARCHIVE}")]
    TooLarge(usize),
}

/// Programs in the form that the kernel reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    bytes: Vec<u8>,
}

impl Archive {
    /// Makes the archive of these programs. Programs with the same segments, such as copies of one, share them.
    ///
    /// # Errors
    /// [`ArchiveError`] for too many programs, or too many bytes together.
    pub fn new(programs: &[Program], timer: Timer) -> Result<Self, ArchiveError> {
        match programs.len() {
            0 => return Err(ArchiveError::Empty),
            number if number > MAX_PROGRAMS => return Err(ArchiveError::TooMany(number)),
            _ => {}
        }
        let layout = Layout::of(programs);
        let size = layout.size();
        if size > MAX_ARCHIVE {
            return Err(ArchiveError::TooLarge(size));
        }
        let mut bytes = Vec::with_capacity(size);
        header(&mut bytes, size, programs.len(), timer);
        for (program, first) in programs.iter().zip(&layout.first) {
            entry(&mut bytes, program, *first);
        }
        let mut at = layout.begin();
        for segment in &layout.segments {
            line(&mut bytes, segment, at);
            at = (at + segment.bytes.len()).next_multiple_of(16);
        }
        for segment in &layout.segments {
            bytes.resize(bytes.len().next_multiple_of(16), 0);
            bytes.extend_from_slice(&segment.bytes);
        }
        Ok(Self { bytes })
    }

    /// Adds options of the kernel, whose bits are in `guest/system/layout.s`.
    pub(crate) fn with_options(mut self, bits: u32) -> Self {
        if let Some(options) = self.bytes.get_mut(16..20).and_then(|bytes| bytes.first_chunk_mut::<4>()) {
            *options = (u32::from_le_bytes(*options) | bits).to_le_bytes();
        }
        self
    }

    /// Returns the bytes to append to the image.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

struct Layout<'a> {
    segments: Vec<&'a Segment>,
    first: Vec<usize>,
    programs: usize,
}

impl<'a> Layout<'a> {
    fn of(programs: &'a [Program]) -> Self {
        let mut layout = Self { segments: Vec::new(), first: Vec::new(), programs: programs.len() };
        for (at, program) in programs.iter().enumerate() {
            let same =
                programs[..at].iter().zip(&layout.first).find(|(it, _)| it.segments == program.segments);
            let first = same.map_or(layout.segments.len(), |(_, first)| *first);
            if same.is_none() {
                layout.segments.extend(&program.segments);
            }
            layout.first.push(first);
        }
        layout
    }

    fn begin(&self) -> usize {
        (HEADER + self.programs * PROGRAM + self.segments.len() * SEGMENT).next_multiple_of(16)
    }

    fn size(&self) -> usize {
        let end = |at: usize, segment: &&Segment| at.next_multiple_of(16) + segment.bytes.len();
        self.segments.iter().fold(self.begin(), end)
    }
}

fn header(bytes: &mut Vec<u8>, size: usize, programs: usize, timer: Timer) {
    bytes.extend_from_slice(MAGIC);
    let (options, period) = match timer {
        Timer::Usual => (0, 0),
        Timer::Counts(counts) => (0, counts.into()),
        Timer::Off => (1, 0),
    };
    for word in [size as u32, programs as u32, options, period] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.resize(HEADER, 0);
}

fn entry(bytes: &mut Vec<u8>, program: &Program, first: usize) {
    let end = bytes.len() + PROGRAM;
    bytes.extend(program.name.bytes().take(LONGEST_NAME));
    bytes.resize(end - PROGRAM + LONGEST_NAME + 1, 0);
    for number in [program.entry, program.stack] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    let flags = u32::from(program.iopl) | u32::from(program.is_32_bit) << 1;
    for word in [first as u32, program.segments.len() as u32, program.argument, flags] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.resize(end, 0);
}

fn line(bytes: &mut Vec<u8>, segment: &Segment, at: usize) {
    for number in [segment.address, segment.size, at as u64, segment.bytes.len() as u64] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    let Rights { execute, write, read } = segment.rights;
    let rights = u32::from(execute) | u32::from(write) << 1 | u32::from(read) << 2;
    bytes.extend_from_slice(&u64::from(rights).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    fn long(bytes: &[u8], at: usize) -> usize {
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
    }

    #[test]
    fn it_has_the_layout_that_the_kernel_reads() {
        let mut one = Program::flat("one", &[0xf4; 5]).unwrap();
        one.argument = 7;
        let other = Program::flat("a-name-that-is-longer-than-its-field", &[0xcc]).unwrap();
        let archive = Archive::new(&[one.clone(), other, one], Timer::Counts(0x1234)).unwrap();
        let bytes = archive.bytes();
        assert_eq!(&bytes[..8], b"tgprog\0\x01");
        assert_eq!([8, 12, 16, 20].map(|at| word(bytes, at)), [bytes.len() as u32, 3, 0, 0x1234]);
        let program = |at: usize| &bytes[64 + 64 * at..128 + 64 * at];
        assert_eq!(&program(0)[..4], b"one\0");
        assert_eq!(program(1)[20..24], *b"r-t\0", "a name ends with a zero");
        assert_eq!([24, 32].map(|at| long(program(0), at)), [0x4000_0000, 0]);
        assert_eq!([40, 44, 48, 52].map(|at| word(program(0), at)), [0, 1, 7, 0]);
        assert_eq!([40, 44].map(|at| word(program(1), at)), [1, 1]);
        assert_eq!([40, 44].map(|at| word(program(2), at)), [0, 1], "copies share their segments");
        let segment = &bytes[64 * 4..64 * 4 + 40];
        assert_eq!([0, 8, 24].map(|at| long(segment, at)), [0x4000_0000, 5, 5]);
        assert_eq!(bytes[long(segment, 16)..][..5], [0xf4; 5]);
        assert_eq!(word(segment, 32), 7);
        assert_eq!(bytes.last(), Some(&0xcc));
        let off = Archive::new(&[Program::flat("x", &[1]).unwrap()], Timer::Off).unwrap();
        assert_eq!(word(off.bytes(), 16), 1);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(Archive::new(&[], Timer::Usual), Err(ArchiveError::Empty));
        let program = Program::flat("x", &[1]).unwrap();
        assert!(Archive::new(&vec![program.clone(); 16], Timer::Usual).is_ok());
        assert_eq!(Archive::new(&vec![program; 17], Timer::Usual), Err(ArchiveError::TooMany(17)));
        let large = |byte| Program::flat("large", &vec![byte; 2 << 20]).unwrap();
        let refused = Archive::new(&[large(1), large(2)], Timer::Usual).unwrap_err();
        assert_eq!(refused, ArchiveError::TooLarge((4 << 20) + 64 + 2 * 64 + 2 * 40));
        assert!(Archive::new(&vec![large(1); 16], Timer::Usual).is_ok());
    }

    proptest! {
        #[test]
        fn every_byte_of_every_program_is_in_it(programs in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 1..16)) {
            let all: Vec<Program> = programs.iter().map(|bytes| Program::flat("p", bytes).unwrap()).collect();
            let archive = Archive::new(&all, Timer::Usual).unwrap();
            let bytes = archive.bytes();
            for (at, program) in programs.iter().enumerate() {
                let first = word(bytes, 64 + 64 * at + 40) as usize;
                let segment = &bytes[64 + 64 * programs.len() + 40 * first..];
                let (from, length) = (long(segment, 16), long(segment, 24));
                prop_assert_eq!(from % 16, 0);
                prop_assert_eq!(&bytes[from..from + length], program.as_slice());
            }
        }
    }
}
