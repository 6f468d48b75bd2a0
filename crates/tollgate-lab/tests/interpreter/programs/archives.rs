//! Malformed archives, and the results of system calls.

use proptest::prelude::*;
use tollgate_lab::Machine;
use tollgate_lab::guest::{Record, Report};
use tollgate_x86::Vendor;

use super::super::machine;
use super::kit::{Archive, Flat, flat, reports, run_on, serial};
use super::whole;

/// The offsets of a program's entry and of its only segment's, for the first of two programs.
const HEAD: usize = 64;
const SEGMENT: usize = 64 + 2 * 64;

/// Returns the programs that were not loaded, with the error numbers.
fn unloaded(archive: &Archive) -> Vec<(u8, u32)> {
    let unloaded = |report: &Report| match *report {
        Report::Unloaded { program, why } => Some((program, why)),
        _ => None,
    };
    whole(archive).iter().filter_map(unloaded).collect()
}

#[test]
fn a_wrong_archive_is_refused() {
    const ENOEXEC: u32 = 8;
    const ENOMEM: u32 = 12;
    const EFAULT: u32 = 14;
    let good = Archive::new(&[flat!(hello), flat!(hello)]);
    assert_eq!(unloaded(&good), []);
    let end = good.0.len() as u32;
    for (at, value, expected) in [
        (0, 0, (0xff, ENOEXEC)),                // the magic
        (8, 100, (0xff, ENOEXEC)),              // shorter than its head
        (8, 0x40_0001, (0xff, ENOEXEC)),        // larger than may be
        (12, 0, (0xff, ENOEXEC)),               // no programs
        (12, 17, (0xff, ENOEXEC)),              // too many
        (HEAD + 40, u32::MAX, (0, ENOEXEC)),    // the first segment beyond the archive
        (HEAD + 44, 0x1_0000, (0, ENOEXEC)),    // too many segments
        (HEAD + 32, 0x3fff_f000, (0, ENOMEM)),  // a stack of all memory
        (HEAD + 36, 1, (0, ENOMEM)),            // and of more
        (SEGMENT, 0x3fff_ffff, (0, EFAULT)),    // below the program's GiB
        (SEGMENT, 0x7fff_f000, (0, EFAULT)),    // beyond it
        (SEGMENT + 4, 1, (0, EFAULT)),          // far beyond
        (SEGMENT + 8, 3, (0, ENOEXEC)),         // less room than bytes
        (SEGMENT + 12, 1, (0, EFAULT)),         // more than all
        (SEGMENT + 16, end, (0, ENOEXEC)),      // bytes beyond the archive
        (SEGMENT + 20, u32::MAX, (0, ENOEXEC)), // far beyond it
        (SEGMENT + 28, 1, (0, ENOEXEC)),        // more bytes than there are
    ] {
        let mut archive = good.clone();
        archive.set(at, value);
        assert_eq!(unloaded(&archive), [expected], "{value:x} at {at}");
    }
    let none = Archive(Vec::new());
    assert_eq!(unloaded(&none), [(0xff, ENOEXEC)]);
}

/// Makes a program that performs system calls and writes their results.
fn caller(calls: &[[u64; 4]]) -> Flat {
    let mut program = flat!(caller);
    for call in calls.iter().chain([&[u64::MAX; 4]]) {
        program.code.extend(call.iter().flat_map(|word| word.to_le_bytes()));
    }
    program
}

/// Returns the results that the first program has written, 8 bytes each.
fn results(archive: &Archive) -> Vec<u64> {
    let result = |report: Report| match report {
        Report::Out { program: 0, text } if text.bytes().len() == 8 => {
            text.bytes().first_chunk().map(|word| u64::from_le_bytes(*word))
        }
        _ => None,
    };
    whole(archive).into_iter().filter_map(result).collect()
}

#[test]
fn calls_answer() {
    let (begin, end) = (0x4000_0000_u64, 0x8000_0000_u64);
    let page = 0x5000_0000;
    let calls: [([u64; 4], i64); 39] = [
        ([1, 0, 1, 0], -14),         // write: no memory,
        ([1, 0x10_0000, 8, 0], -14), // the kernel's,
        ([1, end - 1, 2, 0], -14),   // beyond the end,
        ([1, u64::MAX, 2, 0], -14),  // and wrapping around
        ([1, begin, u64::MAX, 0], -14),
        ([1, begin, 0, 0], 0),
        ([3, 0, 0, 0], 0),                      // yield
        ([6, 0, 0, 0], 0),                      // self
        ([4, 0x1000, 0, 0], -14),               // spawn at an address that nothing can have
        ([5, 0, 0, 0], -35),                    // wait for itself,
        ([5, 9, 0, 0], -3),                     // and for a thread that does not exist
        ([7, page, 2, 6], 0),                   // map
        ([7, page + 0x1000, 1, 6], -17),        // a page that is mapped,
        ([7, page + 1, 1, 6], -22),             // an unaligned address,
        ([7, page, 0, 6], -22),                 // no pages,
        ([7, end - 0x1000, 2, 6], -22),         // too many,
        ([7, 0x1000, 1, 6], -22),               // elsewhere,
        ([7, page + 0x4000, 0x1_0000, 6], -12), // more than the address space holds,
        ([7, page + 0x4000, 0x8f0, 6], -12),    // and more than memory holds,
        ([7, page + 0x4000, 1, 6], 0),          // of which nothing was kept
        ([11, page, 0, 0], 0),                  // test and set
        ([11, page, 0, 0], 1),
        ([11, page + 0x1fff, 0, 0], -14), // over the end of the mapping
        ([11, 0x3fff_f000, 0, 0], -14),   // in a page that is read-only
        ([9, page, 1, 0], 0),             // lock
        ([8, page, 2, 0], -16),           // unmap a locked page,
        ([8, page + 0x1000, 1, 0], 0),    // and one that is not
        ([1, page + 0x1000, 1, 0], -14),
        ([9, page, 2, 0], -12),             // lock unmapped pages
        ([8, page + 0x1000, 1, 0], 0),      // unmap nothing,
        ([8, 0x6000_0000, 0x1_0000, 0], 0), // much of it,
        ([7, page + 0x1000, 1, 4], 0),      // without the right to write
        ([11, page + 0x1000, 0, 0], -14),
        ([12, 4, 0, 0], -22), // iopl
        ([12, 3, 0, 0], -1),
        ([12, 0, 0, 0], 0),
        ([10, 0, 0, 0], 0),   // null
        ([14, 0, 0, 0], -38), // the first number without a call
        ([u64::MAX - 1, 0, 0, 0], -38),
    ];
    let found = results(&Archive::new(&[caller(&calls.map(|(call, _)| call))]));
    for ((call, expected), found) in calls.iter().zip(&found) {
        assert_eq!(*found as i64, *expected, "{call:x?}");
    }
    assert_eq!(found.len(), calls.len());
}

/// One of sixteen programs may write a sixteenth of 256 KiB.
#[test]
fn what_may_be_written_has_a_bound() {
    let calls = [[1, 0x4000_0000, 0x2000, 0]; 3];
    let mut programs = vec![flat!(hello); 16];
    programs[0] = caller(&calls);
    let written = |report: &Report| match report {
        Report::Out { program: 0, text } => text.bytes().len(),
        _ => 0,
    };
    let reports = whole(&Archive::new(&programs));
    assert_eq!(reports.iter().map(written).sum::<usize>(), 0x4000);
    let ended = reports.iter().filter(|report| matches!(report, Report::Exit { .. })).count();
    assert_eq!(ended, 16, "who may not write goes on");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_archive_is_survived(
        changes in prop::collection::vec((0_usize..64 + 2 * (64 + 40), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        is_cut: bool,
    ) {
        let mut archive = Archive::new(&[flat!(hello), Flat { flags: 3, ..flat!(count) }]);
        for (at, byte) in changes {
            archive.0[at] = byte;
        }
        if is_cut {
            archive.0.truncate(cut.index(archive.0.len()));
        }
        let machine = Machine { instructions: 400_000, ..machine(Vendor::Intel) };
        let output = run_on(&archive, machine);
        let records = serial(&output).records;
        let broken = records.iter().any(|record| matches!(record, Record::Broken { .. }));
        prop_assert!(!broken, "{:x?}", records);
        let stopped = |why: &String| why.starts_with("stopped after 400000 instructions");
        prop_assert!(output.cut_short.as_ref().is_none_or(stopped), "{:?}", output.cut_short);
        let _ = reports(&records);
    }
}
