//! Fast entries and their returns, SYSENTER, SYSEXIT, SYSCALL and SYSRET, and SWAPGS, which follows most entries. SDM 2B
//! and APM 3, the instructions' operation.

use crate::{
    Descriptor, Efer, Msr, Rflags, Selector, Star, SysenterCs, Vendor, Width, is_canonical as is_canonical_of,
};

use super::flags;
use super::machine::Machine;
use super::number::Number;
use super::outcome::{Fault, NotModelled, Outcome, Unknown};
use super::reading::{GP0, Refusal, UD, address_bytes, check, expect, is_canonical, unchecked};
use super::registers::{Mode, Register, Segment, SegmentRegister};
use super::rule::Rule;
use super::step::{FlagsBy, Item, Origin, Step};
use super::{Walked, fred};

fn exists(
    machine: &mut impl Machine,
    name: &'static str,
    is_there: fn(Vendor, Mode) -> bool,
) -> Walked<Mode> {
    let mode = machine.mode().ok_or(Unknown::Mode)?;
    let vendor = machine.vendor();
    check(machine, Rule::Exists(name, mode, vendor), is_there(vendor, mode), UD)?;
    Ok(mode)
}

/// AMD's processors have SYSENTER and SYSEXIT only outside long mode (APM 3, SYSENTER).
fn has_sysenter(vendor: Vendor, mode: Mode) -> bool {
    vendor == Vendor::Intel || mode == Mode::Protected
}

/// Intel's processors have SYSCALL and SYSRET only in 64-bit mode (SDM 2B, SYSCALL).
fn has_syscall(vendor: Vendor, mode: Mode) -> bool {
    vendor == Vendor::Amd || mode == Mode::Long64
}

fn left_by_fred(machine: &mut impl Machine, name: &'static str) -> Walked<()> {
    expect(machine, Rule::WithoutFred(name), !fred(machine), UD)
}

/// Checks that the level is 0, and assumes so if it is unknown.
fn in_ring_0(machine: &mut impl Machine) -> Walked<()> {
    match machine.cpl() {
        Some(cpl) => check(machine, Rule::Ring0(cpl), cpl == 0, GP0),
        None => unchecked(machine, "the level is 0", Unknown::Level),
    }
}

fn msr(machine: &impl Machine, msr: Msr) -> Option<u64> {
    machine.register(Register::Msr(msr))
}

/// Checks that WRMSR accepts the address in a register. It checks 57 or 48 bits as the processor has, regardless of
/// CR4.LA57 (SDM 2B, WRMSR).
fn is_possible(machine: &mut impl Machine, msr: Msr) -> Walked<()> {
    let long = machine.width() == Width::Long;
    match self::msr(machine, msr).filter(|value| long && !is_canonical_of(*value, 57)) {
        Some(value) => {
            machine.step(&Step::Check { rule: Rule::CanonicalMsr(msr, value), holds: false });
            Err(Outcome::Impossible(msr))
        }
        None => Ok(()),
    }
}

/// Checks that code can be fetched from the address in a register after the crossing. While addresses have 48 bits, some
/// that a 57-bit processor accepts in WRMSR cannot be fetched from.
fn can_be_fetched(machine: &mut impl Machine, msr: Msr) -> Walked<()> {
    let long = machine.width() == Width::Long;
    let Some(target) = self::msr(machine, msr).filter(|value| long && !is_canonical_of(*value, 48)) else {
        return Ok(());
    };
    if machine.register(Register::Cr4).is_none() {
        let whether = "the target is canonical, which it is only with 57-bit addresses";
        return unchecked(machine, whether, Unknown::Register(Register::Cr4));
    }
    let holds = is_canonical(machine, target);
    let rule = Rule::CanonicalTarget(Number::new(Some(target), 8));
    check(machine, rule, holds, GP0).map_err(crossed)
}

fn crossed(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Fault(fault) => Outcome::Fault(Fault { crossed: true, ..fault }),
        other => other,
    }
}

fn sysenter_cs(machine: &mut impl Machine) -> Walked<SysenterCs> {
    let cs = SysenterCs(msr(machine, Msr::SysenterCs).ok_or(Unknown::from(Msr::SysenterCs))?);
    check(machine, Rule::SysenterCs(cs.0), !cs.is_null(), GP0)?;
    Ok(cs)
}

/// Loads a segment register and sets its hidden part without reading a table.
fn set_fixed(
    machine: &mut impl Machine,
    register: SegmentRegister,
    selector: Selector,
    descriptor: Descriptor,
    origin: Origin,
) {
    machine.set_segment(register, Segment::new(selector, descriptor));
    machine.step(&Step::Fixed { register, selector, descriptor, origin });
}

/// Loads CS, and SS with the selector plus 8, as flat segments from a register's field.
fn set_flat(
    machine: &mut impl Machine,
    [cs, ss]: [Selector; 2],
    (ring, is_64_bit): (u8, bool),
    (msr, bits, plus): (Msr, &'static str, u16),
) {
    let (code, stack) = (Descriptor::flat_code(ring, is_64_bit), Descriptor::flat_data(ring));
    set_fixed(machine, SegmentRegister::Cs, cs, code, Origin::Field(msr, bits, plus));
    set_fixed(machine, SegmentRegister::Ss, ss, stack, Origin::Field(msr, bits, plus + 8));
}

fn set(machine: &mut impl Machine, item: Item, value: Option<u64>, bytes: u8, origin: Origin) {
    let register = match item {
        Item::Rsp => Register::Rsp,
        Item::Rcx => Register::Rcx,
        Item::R11 => Register::R11,
        Item::GsBase => Register::Msr(Msr::GsBase),
        Item::KernelGsBase => Register::Msr(Msr::KernelGsBase),
        _ => Register::Rip,
    };
    machine.set_register(register, value);
    machine.step(&Step::Load { item, value: Number::new(value, bytes), origin });
}

fn cut(value: Option<u64>, bytes: u8) -> Option<u64> {
    value.map(|value| if bytes == 8 { value } else { value & 0xffff_ffff })
}

pub(super) fn sysenter(machine: &mut impl Machine) -> Walked<()> {
    exists(machine, "SYSENTER", has_sysenter)?;
    if fred(machine) {
        return Err(Outcome::NotModelled(NotModelled::Fred));
    }
    let cs = sysenter_cs(machine)?;
    is_possible(machine, Msr::SysenterEsp)?;
    is_possible(machine, Msr::SysenterEip)?;
    let long = machine.width() == Width::Long;
    let bytes = address_bytes(machine.width());
    flags::change(machine, FlagsBy::Cleared(Rflags::IF.with(Rflags::VM)), None, bytes);
    let selectors = [cs.sysenter_cs(), cs.sysenter_ss()];
    set_flat(machine, selectors, (0, long), (Msr::SysenterCs, "15 to 0", 0));
    let (pointer, target) = (msr(machine, Msr::SysenterEsp), msr(machine, Msr::SysenterEip));
    set(machine, Item::Rsp, cut(pointer, bytes), bytes, Origin::Msr(Msr::SysenterEsp));
    set(machine, Item::Rip, cut(target, bytes), bytes, Origin::Msr(Msr::SysenterEip));
    can_be_fetched(machine, Msr::SysenterEip)
}

pub(super) fn sysexit(machine: &mut impl Machine, wide: bool) -> Walked<()> {
    let mode = exists(machine, "SYSEXIT", has_sysenter)?;
    left_by_fred(machine, "SYSEXIT")?;
    let cs = sysenter_cs(machine)?;
    in_ring_0(machine)?;
    let wide = wide && mode == Mode::Long64;
    let bytes = if wide { 8 } else { 4 };
    let (pointer, target) = (machine.register(Register::Rcx), machine.register(Register::Rdx));
    if wide {
        canonical(machine, Rule::CanonicalStack, Register::Rcx, pointer, GP0)?;
        canonical(machine, Rule::CanonicalTarget, Register::Rdx, target, GP0)?;
    }
    let (selectors, plus) = if wide {
        ([cs.sysexit64_cs(), cs.sysexit64_ss()], 32)
    } else {
        ([cs.sysexit32_cs(), cs.sysexit32_ss()], 16)
    };
    set_flat(machine, selectors, (3, wide), (Msr::SysenterCs, "15 to 0", plus));
    set(machine, Item::Rsp, cut(pointer, bytes), bytes, Origin::Register(Register::Rcx));
    set(machine, Item::Rip, cut(target, bytes), bytes, Origin::Register(Register::Rdx));
    Ok(())
}

/// Checks that an address in a register is canonical, and assumes so if it is unknown.
fn canonical(
    machine: &mut impl Machine,
    rule: fn(Number) -> Rule,
    register: Register,
    address: Option<u64>,
    otherwise: Refusal,
) -> Walked<()> {
    match address {
        Some(address) => {
            let holds = is_canonical(machine, address);
            check(machine, rule(Number::new(Some(address), 8)), holds, otherwise)
        }
        None => unchecked(machine, "the address is canonical", Unknown::Register(register)),
    }
}

fn is_enabled(machine: &mut impl Machine) -> Walked<()> {
    match msr(machine, Msr::Efer) {
        Some(efer) => check(machine, Rule::SyscallEnabled, Efer(efer).has(Efer::SCE), UD),
        None => unchecked(machine, "EFER.SCE is set", Unknown::from(Msr::Efer)),
    }
}

fn star(machine: &impl Machine) -> Walked<Star> {
    Ok(Star(msr(machine, Msr::Star).ok_or(Unknown::from(Msr::Star))?))
}

pub(super) fn syscall(machine: &mut impl Machine) -> Walked<()> {
    let mode = exists(machine, "SYSCALL", has_syscall)?;
    if fred(machine) {
        return Err(Outcome::NotModelled(NotModelled::Fred));
    }
    is_enabled(machine)?;
    let star = star(machine)?;
    let pointer = if mode == Mode::Compatibility { Msr::Cstar } else { Msr::Lstar };
    is_possible(machine, pointer)?;
    let next = machine.register(Register::Rip);
    let long = mode != Mode::Protected;
    let bytes = if long { 8 } else { 4 };
    set(machine, Item::Rcx, cut(next, bytes), bytes, Origin::Next);
    let (target, origin) = match mode {
        Mode::Long64 | Mode::Compatibility => (msr(machine, pointer), Origin::Msr(pointer)),
        Mode::Protected => (Some(u64::from(star.legacy_eip())), Origin::Field(Msr::Star, "31 to 0", 0)),
    };
    if long {
        save_and_mask_flags(machine);
    } else {
        let cleared = Rflags::IF.with(Rflags::RF).with(Rflags::VM);
        flags::change(machine, FlagsBy::Cleared(cleared), None, bytes);
    }
    let selectors = [star.syscall_cs(), star.syscall_ss()];
    set_flat(machine, selectors, (0, long), (Msr::Star, "47 to 32", 0));
    set(machine, Item::Rip, target, bytes, origin);
    can_be_fetched(machine, pointer)
}

/// Copies the flags to R11, on AMD's processors without RF, and clears those in IA32_FMASK. The instruction clears RF
/// itself, regardless of the mask (APM 3, SYSCALL; SDM 3B, "Resume flag").
fn save_and_mask_flags(machine: &mut impl Machine) {
    let flags = machine.register(Register::Rflags);
    let saved = match machine.vendor() {
        Vendor::Intel => flags,
        Vendor::Amd => flags.map(|flags| flags & !Rflags::RF.0),
    };
    set(machine, Item::R11, saved, 8, Origin::Register(Register::Rflags));
    let mask = msr(machine, Msr::Fmask).map(Rflags);
    flags::change(machine, FlagsBy::Mask(mask), None, 8);
}

pub(super) fn sysret(machine: &mut impl Machine, wide: bool) -> Walked<()> {
    let mode = exists(machine, "SYSRET", has_syscall)?;
    left_by_fred(machine, "SYSRET")?;
    is_enabled(machine)?;
    in_ring_0(machine)?;
    let star = star(machine)?;
    let wide = wide && mode == Mode::Long64;
    let bytes = if wide { 8 } else { 4 };
    let target = machine.register(Register::Rcx);
    let vendor = machine.vendor();
    if wide && vendor == Vendor::Intel {
        canonical(machine, Rule::CanonicalTarget, Register::Rcx, target, GP0)?;
    }
    if mode == Mode::Long64 {
        let image = machine.register(Register::R11);
        flags::change(machine, FlagsBy::R11, image, 8);
    } else {
        let bytes = address_bytes(machine.width());
        flags::change(machine, FlagsBy::Set(Rflags::IF), None, bytes);
    }
    let (selector, plus) = if wide { (star.sysret64_cs(), 16) } else { (star.sysret32_cs(), 0) };
    let (code, origin) = (Descriptor::flat_code(3, wide), Origin::Field(Msr::Star, "63 to 48", plus));
    set_fixed(machine, SegmentRegister::Cs, selector, code, origin);
    return_stack(machine, star.sysret_ss_of(vendor), vendor);
    let target = cut(target, bytes);
    set(machine, Item::Rip, target, bytes, Origin::Register(Register::Rcx));
    if wide && vendor == Vendor::Amd {
        fault_in_ring_3(machine, target)?;
    }
    Ok(())
}

/// Loads SS after SYSRET. AMD's processors leave its hidden part alone.
fn return_stack(machine: &mut impl Machine, selector: Selector, vendor: Vendor) {
    let origin = Origin::Field(Msr::Star, "63 to 48", 8);
    let register = SegmentRegister::Ss;
    match vendor {
        Vendor::Intel => set_fixed(machine, register, selector, Descriptor::flat_data(3), origin),
        Vendor::Amd => {
            let hidden = machine.segment(register).hidden;
            machine.set_segment(register, Segment { selector: Some(selector), hidden });
            machine.step(&Step::Kept { register, selector, origin });
        }
    }
}

/// Returns to a non-canonical address on an AMD processor, which then faults there. Intel's faults earlier, in ring 0 with
/// the user's stack pointer: CVE-2012-0217.
fn fault_in_ring_3(machine: &mut impl Machine, target: Option<u64>) -> Walked<()> {
    canonical(machine, Rule::CanonicalTarget, Register::Rcx, target, GP0).map_err(crossed)
}

pub(super) fn swapgs(machine: &mut impl Machine) -> Walked<()> {
    exists(machine, "SWAPGS", |_, mode| mode == Mode::Long64)?;
    // FRED replaces it with LKGS (SDM 3A, "FRED transitions").
    left_by_fred(machine, "SWAPGS")?;
    in_ring_0(machine)?;
    let (user, kernel) = (msr(machine, Msr::GsBase), msr(machine, Msr::KernelGsBase));
    set(machine, Item::GsBase, kernel, 8, Origin::Msr(Msr::KernelGsBase));
    set(machine, Item::KernelGsBase, user, 8, Origin::Msr(Msr::GsBase));
    Ok(())
}
