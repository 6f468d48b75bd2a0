use kvm_bindings::{kvm_dtable, kvm_regs, kvm_segment, kvm_sregs};
use tollgate_x86::{Cr0, Cr4, Efer};

/// Multiboot's magic number in EAX (Multiboot Specification 0.6.96, "Machine state").
const MULTIBOOT_MAGIC: u64 = 0x2bad_b002;
/// Only bit 1 is set, which is always set: interrupts are off.
const RFLAGS: u64 = 2;
const CODE: u8 = 0xb;
const DATA: u8 = 3;

/// Sets flat 32-bit protected mode, paging off. TR and LDTR stay as KVM initialized them, which VM entry accepts.
pub(super) fn protected(sregs: &mut kvm_sregs) {
    let flat = |selector, type_| kvm_segment { db: 1, ..segment(selector, type_) };
    sregs.cs = flat(8, CODE);
    set_data(sregs, flat(0x10, DATA));
    sregs.cr0 = Cr0::PE.with(Cr0::ET).0;
    (sregs.cr3, sregs.cr4, sregs.efer) = (0, 0, 0);
    no_tables(sregs);
}

/// Sets 64-bit mode in ring 0, with the page tables at `root`.
pub(super) fn long(sregs: &mut kvm_sregs, root: u64) {
    sregs.cs = kvm_segment { l: 1, ..segment(8, CODE) };
    set_data(sregs, kvm_segment { db: 1, ..segment(0x10, DATA) });
    sregs.cr0 = Cr0::PE.with(Cr0::ET).with(Cr0::PG).0;
    (sregs.cr3, sregs.cr4, sregs.efer) = (root, Cr4::PAE.0, Efer::LME.with(Efer::LMA).0);
    no_tables(sregs);
}

pub(super) fn registers(rip: u64) -> kvm_regs {
    kvm_regs { rip, rax: MULTIBOOT_MAGIC, rflags: RFLAGS, ..Default::default() }
}

fn segment(selector: u16, type_: u8) -> kvm_segment {
    kvm_segment { limit: u32::MAX, selector, type_, present: 1, s: 1, g: 1, ..Default::default() }
}

fn set_data(sregs: &mut kvm_sregs, data: kvm_segment) {
    for segment in [&mut sregs.ds, &mut sregs.es, &mut sregs.fs, &mut sregs.gs, &mut sregs.ss] {
        *segment = data;
    }
}

/// Empties GDT and IDT: any exception before the guest has its own is a triple fault, and ends the run.
fn no_tables(sregs: &mut kvm_sregs) {
    (sregs.gdt, sregs.idt) = (kvm_dtable::default(), kvm_dtable::default());
}
