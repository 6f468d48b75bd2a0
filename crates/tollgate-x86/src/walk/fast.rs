//! The fast entries and their returns: SYSENTER, SYSEXIT, SYSCALL, SYSRET; and SWAPGS, which follows most entries.
//! SDM 2B and APM 3, the instructions' operation.

use crate::{Descriptor, Efer, Msr, Rflags, Selector, Star, SysenterCs, Vendor, Width};

use super::flags;
use super::machine::{Machine, Mode, Register, Segment, SegmentRegister};
use super::number::Number;
use super::outcome::{Exception, Fault, NotModelled, Outcome, Unknown};
use super::reading::{address_bytes, check, expect, fault, invalid_opcode, is_canonical};
use super::rule::Rule;
use super::step::{FlagsBy, Item, Origin, Step};
use super::{Walked, fred};

/// The modes in which an instruction is there, on one vendor's processors.
fn exists<M: Machine + ?Sized>(
    machine: &mut M,
    name: &'static str,
    is_there: fn(Vendor, Mode) -> bool,
) -> Walked<Mode> {
    let mode = machine.mode().ok_or(Unknown::Mode)?;
    let vendor = machine.vendor();
    let otherwise = invalid_opcode(machine);
    check(machine, Rule::Exists(name, Some(mode), vendor), is_there(vendor, mode), otherwise)?;
    Ok(mode)
}

/// AMD's processors have SYSENTER and SYSEXIT outside long mode only (APM 3, SYSENTER).
fn has_sysenter(vendor: Vendor, mode: Mode) -> bool {
    vendor == Vendor::Intel || mode == Mode::Protected
}

/// Intel's processors have SYSCALL and SYSRET in 64-bit mode only (SDM 2B, SYSCALL).
fn has_syscall(vendor: Vendor, mode: Mode) -> bool {
    vendor == Vendor::Amd || mode == Mode::Long64
}

/// FRED takes these away: #UD.
fn left_by_fred<M: Machine + ?Sized>(machine: &mut M, name: &'static str) -> Walked<()> {
    let otherwise = invalid_opcode(machine);
    expect(machine, Rule::WithoutFred(name), !fred(machine), otherwise)
}

fn protection<M: Machine + ?Sized>(machine: &M) -> Outcome {
    fault(machine, Exception::GENERAL_PROTECTION, Some(0))
}

/// That the level is 0; where that is unknown, it is taken to be.
fn in_ring_0<M: Machine + ?Sized>(machine: &mut M) -> Walked<()> {
    match machine.cpl() {
        Some(cpl) => {
            let otherwise = protection(machine);
            check(machine, Rule::Ring0(cpl), cpl == 0, otherwise)
        }
        None => {
            machine.step(&Step::Unchecked { whether: "the level is 0", missing: Unknown::Level });
            Ok(())
        }
    }
}

fn msr<M: Machine + ?Sized>(machine: &M, msr: Msr) -> Option<u64> {
    machine.register(Register::Msr(msr))
}

/// IA32_SYSENTER_CS, which must not be null.
fn sysenter_cs<M: Machine + ?Sized>(machine: &mut M) -> Walked<SysenterCs> {
    let cs = SysenterCs(msr(machine, Msr::SysenterCs).ok_or(Unknown::from(Msr::SysenterCs))?);
    let otherwise = protection(machine);
    check(machine, Rule::SysenterCs(cs.0), !cs.is_null(), otherwise)?;
    Ok(cs)
}

/// Loads a segment register and sets its hidden part to what no table has to say.
fn set_fixed<M: Machine + ?Sized>(
    machine: &mut M,
    register: SegmentRegister,
    selector: Selector,
    descriptor: Descriptor,
    origin: Origin,
) {
    machine.set_segment(register, Segment::of(selector, descriptor));
    machine.step(&Step::Fixed { register, selector, descriptor, origin });
}

fn set<M: Machine + ?Sized>(machine: &mut M, item: Item, value: Option<u64>, bytes: u8, origin: Origin) {
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

/// As many bits of a value as a register of this width has.
fn cut(value: Option<u64>, bytes: u8) -> Option<u64> {
    value.map(|value| if bytes == 8 { value } else { value & 0xffff_ffff })
}

/// The source of a selector.
const fn field(msr: Msr, bits: &'static str, plus: u16) -> Origin {
    Origin::Field(msr, bits, plus)
}

pub(super) fn sysenter<M: Machine + ?Sized>(machine: &mut M) -> Walked<()> {
    exists(machine, "SYSENTER", has_sysenter)?;
    if fred(machine) {
        return Err(Outcome::NotModelled(NotModelled::Fred));
    }
    let cs = sysenter_cs(machine)?;
    let long = machine.width() == Width::Long;
    let bytes = address_bytes(machine.width());
    flags::change(machine, FlagsBy::Cleared(Rflags::IF.with(Rflags::VM)), None, bytes);
    let (code, stack) = (Descriptor::flat_code(0, long), Descriptor::flat_data(0));
    let origin = field(Msr::SysenterCs, "15 to 0", 0);
    set_fixed(machine, SegmentRegister::Cs, cs.sysenter_cs(), code, origin);
    let origin = field(Msr::SysenterCs, "15 to 0", 8);
    set_fixed(machine, SegmentRegister::Ss, cs.sysenter_ss(), stack, origin);
    let (pointer, target) = (msr(machine, Msr::SysenterEsp), msr(machine, Msr::SysenterEip));
    set(machine, Item::Rsp, cut(pointer, bytes), bytes, Origin::Msr(Msr::SysenterEsp));
    set(machine, Item::Rip, cut(target, bytes), bytes, Origin::Msr(Msr::SysenterEip));
    Ok(())
}

pub(super) fn sysexit<M: Machine + ?Sized>(machine: &mut M, wide: bool) -> Walked<()> {
    let mode = exists(machine, "SYSEXIT", has_sysenter)?;
    left_by_fred(machine, "SYSEXIT")?;
    let cs = sysenter_cs(machine)?;
    in_ring_0(machine)?;
    let wide = wide && mode == Mode::Long64;
    let bytes = if wide { 8 } else { 4 };
    let (pointer, target) = (machine.register(Register::Rcx), machine.register(Register::Rdx));
    if wide {
        let otherwise = protection(machine);
        canonical(machine, Rule::CanonicalStack, Register::Rcx, pointer, otherwise)?;
        canonical(machine, Rule::CanonicalTarget, Register::Rdx, target, otherwise)?;
    }
    let (code, stack) = (Descriptor::flat_code(3, wide), Descriptor::flat_data(3));
    let (code_selector, stack_selector, plus) = match wide {
        true => (cs.sysexit64_cs(), cs.sysexit64_ss(), 32),
        false => (cs.sysexit32_cs(), cs.sysexit32_ss(), 16),
    };
    let origin = field(Msr::SysenterCs, "15 to 0", plus);
    set_fixed(machine, SegmentRegister::Cs, code_selector, code, origin);
    let origin = field(Msr::SysenterCs, "15 to 0", plus + 8);
    set_fixed(machine, SegmentRegister::Ss, stack_selector, stack, origin);
    set(machine, Item::Rsp, cut(pointer, bytes), bytes, Origin::Register(Register::Rcx));
    set(machine, Item::Rip, cut(target, bytes), bytes, Origin::Register(Register::Rdx));
    Ok(())
}

/// That an address in a register is canonical; where that is unknown, it is taken to be.
fn canonical<M: Machine + ?Sized>(
    machine: &mut M,
    rule: fn(Number) -> Rule,
    register: Register,
    address: Option<u64>,
    otherwise: Outcome,
) -> Walked<()> {
    match address {
        Some(address) => {
            let holds = is_canonical(machine, address);
            check(machine, rule(Number::new(Some(address), 8)), holds, otherwise)
        }
        None => {
            let missing = Unknown::Register(register);
            machine.step(&Step::Unchecked { whether: "the address is canonical", missing });
            Ok(())
        }
    }
}

/// EFER.SCE, without which there is no SYSCALL or SYSRET.
fn is_enabled<M: Machine + ?Sized>(machine: &mut M) -> Walked<()> {
    match msr(machine, Msr::Efer) {
        Some(efer) => {
            let otherwise = invalid_opcode(machine);
            check(machine, Rule::SyscallEnabled, Efer(efer).has(Efer::SCE), otherwise)
        }
        None => {
            machine.step(&Step::Unchecked { whether: "EFER.SCE is set", missing: Unknown::from(Msr::Efer) });
            Ok(())
        }
    }
}

fn star<M: Machine + ?Sized>(machine: &M) -> Walked<Star> {
    Ok(Star(msr(machine, Msr::Star).ok_or(Unknown::from(Msr::Star))?))
}

pub(super) fn syscall<M: Machine + ?Sized>(machine: &mut M) -> Walked<()> {
    let mode = exists(machine, "SYSCALL", has_syscall)?;
    if fred(machine) {
        return Err(Outcome::NotModelled(NotModelled::Fred));
    }
    is_enabled(machine)?;
    let star = star(machine)?;
    let next = machine.register(Register::Rip);
    let long = mode != Mode::Protected;
    let bytes = if long { 8 } else { 4 };
    set(machine, Item::Rcx, cut(next, bytes), bytes, Origin::Next);
    let (target, origin) = match mode {
        Mode::Long64 => (msr(machine, Msr::Lstar), Origin::Msr(Msr::Lstar)),
        Mode::Compatibility => (msr(machine, Msr::Cstar), Origin::Msr(Msr::Cstar)),
        Mode::Protected => (Some(u64::from(star.legacy_eip())), field(Msr::Star, "31 to 0", 0)),
    };
    if long {
        save_and_mask_flags(machine);
    } else {
        let cleared = Rflags::IF.with(Rflags::RF).with(Rflags::VM);
        flags::change(machine, FlagsBy::Cleared(cleared), None, bytes);
    }
    let code = Descriptor::flat_code(0, long);
    let from = field(Msr::Star, "47 to 32", 0);
    set_fixed(machine, SegmentRegister::Cs, star.syscall_cs(), code, from);
    let stack = Descriptor::flat_data(0);
    let from = field(Msr::Star, "47 to 32", 8);
    set_fixed(machine, SegmentRegister::Ss, star.syscall_ss(), stack, from);
    set(machine, Item::Rip, target, bytes, origin);
    Ok(())
}

/// R11 takes the flags, on AMD's processors without RF; then those in IA32_FMASK are cleared, and RF.
fn save_and_mask_flags<M: Machine + ?Sized>(machine: &mut M) {
    let flags = machine.register(Register::Rflags);
    let saved = match machine.vendor() {
        Vendor::Intel => flags,
        Vendor::Amd => flags.map(|flags| flags & !Rflags::RF.0),
    };
    set(machine, Item::R11, saved, 8, Origin::Register(Register::Rflags));
    let mask = msr(machine, Msr::Fmask).map(|mask| Rflags(mask).with(Rflags::RF));
    flags::change(machine, FlagsBy::Mask(mask), None, 8);
}

pub(super) fn sysret<M: Machine + ?Sized>(machine: &mut M, wide: bool) -> Walked<()> {
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
        let otherwise = protection(machine);
        canonical(machine, Rule::CanonicalTarget, Register::Rcx, target, otherwise)?;
    }
    if mode == Mode::Long64 {
        let image = machine.register(Register::R11);
        flags::change(machine, FlagsBy::R11, image, 8);
    } else {
        let bytes = address_bytes(machine.width());
        flags::change(machine, FlagsBy::Set(Rflags::IF), None, bytes);
    }
    let (selector, plus) = if wide { (star.sysret64_cs(), 16) } else { (star.sysret32_cs(), 0) };
    let code = Descriptor::flat_code(3, wide);
    let from = field(Msr::Star, "63 to 48", plus);
    set_fixed(machine, SegmentRegister::Cs, selector, code, from);
    return_stack(machine, star.sysret_ss_of(vendor), vendor);
    let target = cut(target, bytes);
    set(machine, Item::Rip, target, bytes, Origin::Register(Register::Rcx));
    if wide && vendor == Vendor::Amd {
        fault_in_ring_3(machine, target)?;
    }
    Ok(())
}

/// SS after SYSRET. AMD's processors leave its hidden part as it was.
fn return_stack<M: Machine + ?Sized>(machine: &mut M, selector: Selector, vendor: Vendor) {
    let origin = field(Msr::Star, "63 to 48", 8);
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

/// An AMD processor returns to an address that is not canonical, and faults there. (Intel's faults before, in ring 0
/// with the user's stack pointer: CVE-2012-0217.)
fn fault_in_ring_3<M: Machine + ?Sized>(machine: &mut M, target: Option<u64>) -> Walked<()> {
    let fault = Fault {
        exception: Exception::GENERAL_PROTECTION,
        code: Some(0),
        address: None,
        level: Some(3),
        crossed: true,
    };
    canonical(machine, Rule::CanonicalTarget, Register::Rcx, target, Outcome::Fault(fault))
}

pub(super) fn swapgs<M: Machine + ?Sized>(machine: &mut M) -> Walked<()> {
    exists(machine, "SWAPGS", |_, mode| mode == Mode::Long64)?;
    // LKGS takes its place under FRED (SDM 3A, "FRED transitions").
    left_by_fred(machine, "SWAPGS")?;
    in_ring_0(machine)?;
    let (user, kernel) = (msr(machine, Msr::GsBase), msr(machine, Msr::KernelGsBase));
    set(machine, Item::GsBase, kernel, 8, Origin::Msr(Msr::KernelGsBase));
    set(machine, Item::KernelGsBase, user, 8, Origin::Msr(Msr::GsBase));
    Ok(())
}
