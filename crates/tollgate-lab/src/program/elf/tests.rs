use proptest::prelude::*;

use super::*;

const BASE: u64 = ADDRESSES.start;

/// A segment as in a header: type, flags, address, bytes, size in memory.
type Part<'a> = (u32, u32, u64, &'a [u8], u64);

/// Makes a 64-bit program of these parts. Their bytes follow the headers, one after the other.
fn elf(entry: u64, parts: &[Part]) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    for number in [entry, 64, 0] {
        file.extend(number.to_le_bytes());
    }
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, parts.len() as u8, 0]);
    file.resize(64, 0);
    let mut offset = 64 + 56 * parts.len() as u64;
    for &(kind, flags, address, bytes, memory) in parts {
        file.extend(kind.to_le_bytes());
        file.extend(flags.to_le_bytes());
        for number in [offset, address, address, bytes.len() as u64, memory, 4096] {
            file.extend(number.to_le_bytes());
        }
        offset += bytes.len() as u64;
    }
    file.extend(parts.iter().flat_map(|part| part.3));
    file
}

fn plain() -> Vec<u8> {
    elf(BASE + 1, &[(LOAD, 5, BASE, &[0x90, 0xf4], 2), (LOAD, 6, BASE + PAGE, &[1], 5000)])
}

fn changed(at: usize, byte: u8) -> Result<Program, ElfError> {
    let mut file = plain();
    file[at] = byte;
    read("x", &file)
}

#[test]
fn a_program_is_read() {
    let program = read("plain", &plain()).unwrap();
    assert_eq!((program.entry, program.is_32_bit, program.segments.len()), (BASE + 1, false, 2));
    let [code, data] = &program.segments[..] else { panic!("{program:?}") };
    assert_eq!((code.bytes.as_slice(), code.size), ([0x90, 0xf4].as_slice(), 2));
    assert_eq!(code.rights, Rights { read: true, write: false, execute: true });
    assert_eq!(
        (data.address, data.size, data.rights.write, data.rights.execute),
        (BASE + PAGE, 5000, true, false)
    );
    assert_eq!(program.bytes_at(BASE + 1, 15), [0xf4]);
    assert!(program.bytes_at(BASE + 2, 15).is_empty());
    assert!(program.bytes_at(BASE + PAGE + 4999, 15).is_empty(), "zeros that are not in the file");
}

#[test]
fn what_cannot_be_run_is_refused_by_name() {
    let of = |parts: &[Part]| read("x", &elf(BASE, parts)).unwrap_err();
    assert_eq!(changed(4, 3), Err(ElfError::Class { class: 3, order: 1 }));
    assert_eq!(changed(5, 2), Err(ElfError::Class { class: 2, order: 2 }));
    assert_eq!(changed(18, 183), Err(ElfError::Machine(183)));
    assert_eq!(changed(4, 1), Err(ElfError::Machine(62)), "the x32 ABI");
    assert_eq!(
        [1, 3, 4].map(|kind| changed(16, kind).unwrap_err()),
        [ElfError::Object, ElfError::Pie, ElfError::Type(4)]
    );
    assert_eq!(changed(56, 65), Err(ElfError::Headers(65)));
    assert_eq!(changed(24, 0xff), Err(ElfError::Entry(BASE + 0xff)));
    assert_eq!(of(&[(LOAD, 5, BASE, &[1], 1), (INTERPRETER, 4, 0, b"/lib/ld.so", 10)]), ElfError::Dynamic);
    assert_eq!(of(&[(LOAD, 5, BASE, &[1], 1), (TLS, 4, BASE, &[], 8)]), ElfError::ThreadLocal);
    assert_eq!(of(&[]), ElfError::Empty);
    assert_eq!(of(&[(LOAD, 5, BASE, &[], 0)]), ElfError::Empty);
    assert_eq!(of(&[(LOAD, 4, BASE, &[1], 1)]), ElfError::Entry(BASE), "it may not be executed");
    assert_eq!(of(&[(LOAD, 5, BASE, &[1, 2], 1)]), ElfError::Sizes { address: BASE, file: 2, memory: 1 });
    for (from, memory) in [(0x40_0000, 1), (BASE - 1, 2), (ADDRESSES.end - 1, 2), (u64::MAX, 9)] {
        let to = from.saturating_add(memory);
        assert_eq!(of(&[(LOAD, 5, from, &[], memory)]), ElfError::Outside { from, to });
    }
    let overlap = ElfError::Overlap(BASE + PAGE);
    assert_eq!(of(&[(LOAD, 5, BASE, &[1], PAGE + 1), (LOAD, 6, BASE + PAGE + 8, &[], 1)]), overlap);
    assert_eq!(of(&[(LOAD, 6, BASE + PAGE + 8, &[], 1), (LOAD, 5, BASE, &[1], PAGE + 1)]), overlap);
    assert_eq!(of(&[(LOAD, 5, BASE, &[1], MAX_MEMORY + 1)]), ElfError::TooLarge(MAX_MEMORY + 1));
    let second = (LOAD, 6, BASE + 2 * MAX_MEMORY, [].as_slice(), MAX_MEMORY);
    assert_eq!(of(&[(LOAD, 5, BASE, &[1], 1), second]), ElfError::TooLarge(MAX_MEMORY + 1));
    assert!(ElfError::Overlap(BASE).to_string().contains("at 40000000, whose"));
}

#[test]
fn a_file_that_was_cut_says_where() {
    let whole = plain();
    for length in 0..whole.len() {
        let error = read("x", &whole[..length]).unwrap_err();
        let gap = match length {
            ..64 => [Gap::Header, Gap::Headers].into_iter().find(|gap| error == ElfError::Cut(*gap)),
            // The last field of a header is not read.
            64..168 => Some(Gap::Headers),
            168..178 => Some(Gap::Segment(BASE)),
            _ => Some(Gap::Segment(BASE + PAGE)),
        };
        assert_eq!(Some(error), gap.map(ElfError::Cut), "{length}");
    }
}

proptest! {
    #[test]
    fn what_is_taken_can_be_loaded(changes in prop::collection::vec((0_usize..200, any::<u8>()), 0..6)) {
        let mut file = plain();
        for (at, byte) in changes {
            let place = at % file.len();
            file[place] = byte;
        }
        let Ok(program) = read("x", &file) else { return Ok(()) };
        let mut free = ADDRESSES.start;
        for segment in &program.segments {
            prop_assert!(segment.address >= free && segment.size > 0);
            prop_assert!(segment.bytes.len() as u64 <= segment.size);
            free = (segment.address + segment.size).next_multiple_of(PAGE);
        }
        prop_assert!(free <= ADDRESSES.end);
        let entered = program.segments.iter().find(|segment| segment.holds(program.entry));
        prop_assert!(entered.is_some_and(|segment| segment.rights.execute));
    }

    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read("x", &[b"\x7fELF\x01\x01".as_slice(), &bytes].concat());
        let _ = read("x", &[b"\x7fELF\x02\x01".as_slice(), &bytes].concat());
    }

    #[test]
    fn segments_keep_their_bytes(parts in prop::collection::vec((1_u64..9, prop::collection::vec(any::<u8>(), 1..40), 0_u64..9000), 1..6)) {
        let mut at = BASE;
        let mut headers = Vec::new();
        for (pages, bytes, zeros) in &parts {
            let size = bytes.len() as u64 + zeros;
            headers.push((LOAD, 5, at, bytes.as_slice(), size));
            at = (at + size).next_multiple_of(PAGE) + pages * PAGE;
        }
        let program = read("x", &elf(BASE, &headers)).unwrap();
        for (segment, (_, bytes, zeros)) in program.segments.iter().zip(&parts) {
            prop_assert_eq!(&segment.bytes, bytes);
            prop_assert_eq!(segment.size, bytes.len() as u64 + zeros);
        }
    }
}
