use tollgate_x86::{Cr0, Cr4, Efer, Msr, Vendor};

use super::super::state::Processor;
use super::super::tlb::Access::{
    AllowedRead, AllowedWrite, KernelFetch, KernelRead, KernelWrite, UserFetch, UserRead, UserWrite,
};
use super::{ACCESSED, Access, DIRTY, LARGE, NO_EXECUTE, PRESENT, USER, WRITABLE};

/// A linear address whose four indices differ: 1, 2, 3, 4.
const LINEAR: u64 = 1 << 39 | 2 << 30 | 3 << 21 | 4 << 12 | 0x567;
/// The address of each level's entry, from the highest: one table per page, from 1000h on.
const ENTRIES: [u64; 4] = [0x1000 + 8, 0x2000 + 16, 0x3000 + 24, 0x4000 + 32];
const OPEN: u64 = PRESENT | WRITABLE | USER;

/// Makes a processor with paging, and a page of 4 KiB at 9000h whose entry has these bits.
fn processor(bits: u64) -> Processor {
    let mut processor = Processor::new(Vendor::Intel, vec![0; 0x10000], 0);
    processor.cr0 = Cr0::PE.with(Cr0::PG).with(Cr0::WP);
    processor.cr3 = 0x1000;
    processor.set_msr(Msr::Efer, Efer::LME.with(Efer::LMA).with(Efer::NXE).0);
    for (entry, table) in ENTRIES.into_iter().zip([0x2000, 0x3000, 0x4000]) {
        processor.memory.write(entry, 8, table | OPEN);
    }
    processor.memory.write(ENTRIES[3], 8, 0x9000 | bits);
    processor
}

/// Returns the error code of the page fault, if there is one.
fn code(processor: &mut Processor, access: Access) -> Option<u32> {
    match processor.translate(LINEAR, access) {
        Ok(physical) => {
            assert_eq!(physical, 0x9567);
            None
        }
        Err(fault) => {
            assert_eq!((fault.exception.mnemonic(), fault.address), (Some("PF"), Some(LINEAR)));
            fault.code
        }
    }
}

/// Returns the result of each access: by ring 3, by the kernel, and by the kernel with RFLAGS.AC.
fn codes(mut processor: Processor) -> [Option<u32>; 8] {
    Access::ALL.map(|access| {
        let first = code(&mut processor, access);
        assert_eq!(code(&mut processor, access), first, "what is at hand says the same");
        first
    })
}

#[test]
fn rights_are_those_of_the_manual() {
    let no = None;
    assert_eq!(codes(processor(OPEN)), [no; 8]);
    let absent = [0b00100, 0b00110, 0b10100, 0, 0b00010, 0b10000, 0, 0b00010].map(Some);
    assert_eq!(codes(processor(0)), absent);
    let kernels = [Some(0b00101), Some(0b00111), Some(0b10101), no, no, no, no, no];
    assert_eq!(codes(processor(PRESENT | WRITABLE)), kernels);
    let read_only = [no, Some(0b00111), no, no, Some(0b00011), no, no, Some(0b00011)];
    assert_eq!(codes(processor(PRESENT | USER)), read_only);
    let data = [no, no, Some(0b10101), no, no, Some(0b10001), no, no];
    assert_eq!(codes(processor(OPEN | NO_EXECUTE)), data);
}

#[test]
fn a_higher_level_closes_what_is_below() {
    for entry in ENTRIES {
        let mut kernels = processor(OPEN);
        let bits = kernels.memory.read(entry, 8);
        kernels.memory.write(entry, 8, bits & !USER);
        assert_eq!(code(&mut kernels, UserRead), Some(0b101));
        assert_eq!(code(&mut kernels, KernelWrite), None);
    }
}

#[test]
fn control_registers_change_the_kernels_rights() {
    let mut unprotected = processor(PRESENT | USER);
    unprotected.cr0 = unprotected.cr0.without(Cr0::WP);
    assert_eq!(code(&mut unprotected, KernelWrite), None);
    assert_eq!(code(&mut unprotected, UserWrite), Some(0b111));

    let mut guarded = processor(OPEN);
    guarded.cr4 = Cr4::SMEP.with(Cr4::SMAP);
    assert_eq!(code(&mut guarded, KernelRead), Some(0b00001));
    assert_eq!(code(&mut guarded, KernelWrite), Some(0b00011));
    assert_eq!(code(&mut guarded, KernelFetch), Some(0b10001));
    for access in [AllowedRead, AllowedWrite, UserRead, UserWrite, UserFetch] {
        assert_eq!(code(&mut guarded, access), None, "{access:?}");
    }
}

#[test]
fn reserved_bits_fault() {
    let mut beyond = processor(OPEN | 1 << 45);
    assert_eq!(code(&mut beyond, UserRead), Some(0b01101));
    // NX is reserved while EFER.NXE is clear, and the error code then does not mark a fetch.
    let mut without = processor(OPEN | NO_EXECUTE);
    without.set_msr(Msr::Efer, Efer::LME.with(Efer::LMA).0);
    assert_eq!(code(&mut without, KernelFetch), Some(0b01001));
    let mut large = processor(OPEN);
    large.memory.write(ENTRIES[0], 8, 0x2000 | OPEN | LARGE);
    assert_eq!(code(&mut large, KernelRead), Some(0b01001));
    // A page of 2 MiB that is not aligned.
    large.memory.write(ENTRIES[0], 8, 0x2000 | OPEN);
    large.memory.write(ENTRIES[2], 8, 0x10_0000 | OPEN | LARGE);
    assert_eq!(code(&mut large, KernelRead), Some(0b01001));
}

#[test]
fn large_pages_take_more_of_the_address() {
    let mut processor = processor(OPEN);
    processor.memory.write(ENTRIES[2], 8, 5 << 21 | OPEN | LARGE);
    assert_eq!(processor.translate(LINEAR, UserRead).ok(), Some(5 << 21 | 0x4567));
    processor.memory.write(ENTRIES[1], 8, 6 << 30 | OPEN | LARGE);
    processor.translations.flush();
    assert_eq!(processor.translate(LINEAR, UserRead).ok(), Some(6 << 30 | 3 << 21 | 0x4567));
}

#[test]
fn use_is_noted_and_translations_are_kept() {
    let mut processor = processor(OPEN);
    let noted = |processor: &Processor| ENTRIES.map(|at| processor.memory.read(at, 8) & (ACCESSED | DIRTY));
    assert_eq!(noted(&processor), [0; 4]);
    assert_eq!(code(&mut processor, UserRead), None);
    assert_eq!(noted(&processor), [ACCESSED; 4]);
    assert_eq!(code(&mut processor, UserWrite), None);
    assert_eq!(noted(&processor), [ACCESSED, ACCESSED, ACCESSED, ACCESSED | DIRTY]);
    assert_eq!((processor.counts.page_walks, processor.counts.page_entries), (2, 8));
    // A change is visible after a flush of the TLB.
    processor.memory.write(ENTRIES[3], 8, 0);
    assert_eq!(code(&mut processor, UserRead), None);
    processor.translations.flush_page(LINEAR);
    assert_eq!(code(&mut processor, UserRead), Some(0b100));
}
