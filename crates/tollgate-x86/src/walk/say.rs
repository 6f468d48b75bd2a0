mod names;
mod rules;

use core::fmt::{self, Display, Formatter};

use crate::{GateKind, Rflags, Selector};

use super::number::Number;
use super::outcome::{Fault, Outcome};
use super::step::{FlagsBy, Item, Origin, Step};
use super::{Crossing, Event, Size};

use names::{Bits, Described};

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Begin { crossing, mode, width, vendor, cpl } => {
                write!(f, "{crossing} in ")?;
                match mode {
                    Some(mode) => write!(f, "{mode}")?,
                    None => write!(f, "{}", names::width(width))?,
                }
                match cpl {
                    Some(cpl) => write!(f, " at CPL {cpl}")?,
                    None => f.write_str(" at an unknown level")?,
                }
                write!(f, ", on {vendor}")
            }
            Self::WithoutCet => f.write_str(
                "CR4.CET is set: left out of the following are what is saved, pushed and checked of the shadow-stack pointer \
                 (SDM 1, \"Shadow stacks\") and the wait for ENDBRANCH (SDM 1, \"Indirect branch tracking\")",
            ),
            Self::Entry { directory, index, scale, base, address, limit, within } => {
                write!(f, "{directory} entry {index:x}")?;
                if address.value.is_some() {
                    write!(f, " at {address} ({base} + {index:x} × {scale:x})")?;
                } else {
                    write!(f, " (where the {directory} begins is not known)")?;
                }
                match (within, limit) {
                    (Some(true), Some(limit)) => write!(f, " within the limit {limit:x}"),
                    (Some(false), Some(limit)) => write!(f, " reaches beyond the limit {limit:x}"),
                    (Some(_), None) => write!(f, ": there is no {directory}"),
                    (None, _) => Ok(()),
                }
            }
            Self::Gate { kind, slot, present, dpl, selector, offset, stack, parameters } => {
                gate(f, (kind, slot), present, dpl)?;
                if kind == GateKind::Task {
                    return write!(f, "leads to the task of TSS {selector}");
                }
                write!(f, "leads to {selector}:{offset}")?;
                if stack != 0 {
                    write!(f, " on stack {stack} of the interrupt stack table")?;
                }
                match parameters {
                    0 => Ok(()),
                    1 => f.write_str(" with 1 parameter"),
                    count => write!(f, " with {count} parameters"),
                }
            }
            Self::Segment { role, selector, descriptor } => {
                write!(f, "{role} {selector}: {}", Described(descriptor))
            }
            Self::Check { rule, holds } => rules::say(f, &rule, holds),
            Self::Unchecked { whether, missing } => {
                write!(f, "cannot be checked: whether {whether}, since {missing} is not known")
            }
            Self::Level { from, dpl, conforming } => level(f, from, dpl, conforming),
            Self::TaskStack { ring, stack, ss, pointer, address, tr } => {
                match ss {
                    Some((ss, at)) => {
                        write!(f, "SS{ring} {ss} from {at}, {}{ring} ", pointer.name_of(STACK_POINTER))?;
                    }
                    None if stack == 0 => write!(f, "RSP{ring} ")?,
                    None => write!(f, "IST{stack} ")?,
                }
                write!(f, "{pointer} from {address}: TSS of TR ")?;
                known(f, tr)
            }
            Self::Align { from, to } => write!(f, "RSP {from} aligned to 16 bytes: {to}"),
            Self::Push { item, value, at } => write!(f, "push {} at {at}", Valued(item, value)),
            Self::Pop { item, value, at } => write!(f, "{} read from the stack at {at}", Valued(item, value)),
            Self::Load { item, value, origin } => write!(f, "{} {origin}", Valued(item, value)),
            Self::LoadSegment { register, selector, origin } => {
                write!(f, "{register} {selector} {origin}, its hidden part from the descriptor")
            }
            Self::Fixed { register, selector, descriptor, origin } => {
                let described = Described(descriptor);
                write!(f, "{register} {selector} {origin}; no descriptor is read: {described}")
            }
            Self::Kept { register, selector, origin } => {
                write!(f, "{register} {selector} {origin}; its hidden part stays as it was")
            }
            Self::NullStack { selector } => {
                write!(
                    f,
                    "SS {selector}: a null selector with the new level as its RPL; no descriptor is read"
                )
            }
            Self::Cleared { register, selector, dpl, cpl } => {
                write!(f, "{register} {selector} becomes null: its DPL {dpl} < the new CPL {cpl}")
            }
            Self::Accessed { table, index } => write!(f, "accessed bit set in {table} entry {index:x}"),
            Self::Flags { before, after, by } => {
                write!(f, "{by}: ")?;
                write!(f, "{} {after}", after.name_of(FLAGS))?;
                if before.value.is_some() { write!(f, " (was {before})") } else { Ok(()) }
            }
            Self::Release { bytes, to } => {
                write!(f, "{bytes} bytes of parameters released: {} {to}", to.name_of(STACK_POINTER))
            }
            Self::TaskSave { tr, base, stays_busy } => {
                f.write_str("task switch: the registers are saved in the TSS of TR ")?;
                known(f, tr)?;
                let busy = if stays_busy { "stays busy" } else { "is marked available" };
                write!(f, " at {base}, which {busy}")
            }
            Self::TaskLoad { selector, base, nests } => {
                write!(f, "task switch: the registers are loaded from the TSS of {selector} at {base}, ")?;
                f.write_str(if nests {
                    "which is marked busy; its link is set to the old task and NT is set"
                } else {
                    "which is busy; no link is written"
                })
            }
        }
    }
}

const STACK_POINTER: [&str; 3] = ["RSP", "ESP", "SP"];
const FLAGS: [&str; 3] = ["RFLAGS", "EFLAGS", "FLAGS"];

fn known(f: &mut Formatter<'_>, selector: Option<Selector>) -> fmt::Result {
    match selector {
        Some(selector) => write!(f, "{selector}"),
        None => f.write_str("(not known)"),
    }
}

fn gate(f: &mut Formatter<'_>, (kind, slot): (GateKind, Size), present: bool, dpl: u8) -> fmt::Result {
    if kind != GateKind::Task {
        write!(f, "{}-bit ", u32::from(slot.bytes()) * 8)?;
    }
    let present = if present { "present" } else { "not present" };
    write!(f, "{kind} gate, {present}, DPL {dpl}, ")
}

fn level(f: &mut Formatter<'_>, from: u8, dpl: u8, conforming: bool) -> fmt::Result {
    match (conforming, dpl < from) {
        (true, _) => write!(f, "conforming code: the level stays at ring {from}"),
        (false, true) => write!(f, "DPL {dpl} of the code < CPL {from}: the level changes to ring {dpl}"),
        (false, false) => write!(f, "DPL {dpl} of the code = CPL {from}: the level stays"),
    }
}

struct Valued(Item, Number);

impl Display for Valued {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(item, value) = *self;
        let name = match item {
            Item::Cs => "CS",
            Item::Ss => "SS",
            Item::Rip => value.name_of(["RIP", "EIP", "IP"]),
            Item::Rsp => value.name_of(STACK_POINTER),
            Item::Rflags => value.name_of(FLAGS),
            Item::Rcx => value.name_of(["RCX", "ECX", "CX"]),
            Item::R11 => "R11",
            Item::GsBase => "GS base",
            Item::KernelGsBase => "KERNEL_GS_BASE",
            Item::Code => "error code",
            Item::Parameter(index) => return write!(f, "parameter {index} {value}"),
        };
        // Bits above a selector's 16 are zero or ignored.
        let value = match item {
            Item::Cs | Item::Ss => Number::new(value.value.map(|value| value & 0xffff), 2),
            _ => value,
        };
        write!(f, "{name} {value}")
    }
}

impl Display for Origin {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Gate => f.write_str("from the gate"),
            Self::Operand => f.write_str("from the instruction"),
            Self::Stack => f.write_str("from the stack"),
            Self::Pushes => f.write_str("after the pushes"),
            Self::TaskState => f.write_str("from the TSS"),
            Self::Next => f.write_str("is the address of the next instruction"),
            Self::Register(register) => write!(f, "from {register}"),
            Self::Msr(msr) => write!(f, "from MSR {:x}, {}", msr.number(), msr.name()),
            Self::Field(msr, bits, plus) => {
                write!(f, "from bits {bits} of MSR {:x}, {}", msr.number(), msr.name())?;
                if plus == 0 { Ok(()) } else { write!(f, ", plus {plus}") }
            }
        }
    }
}

impl Display for FlagsBy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Gate(kind, bits) => write!(f, "{} cleared by the {kind} gate", Bits(bits)),
            Self::Mask(Some(bits)) if bits.has(Rflags::RF) => {
                write!(f, "{} cleared by MSR c0000084, FMASK", Bits(bits))
            }
            Self::Mask(Some(bits)) => {
                write!(f, "{} cleared by MSR c0000084, FMASK, and RF by SYSCALL itself", Bits(bits))
            }
            Self::Mask(None) => f.write_str(
                "those in MSR c0000084, FMASK, cleared, which is not known, and RF by SYSCALL itself",
            ),
            Self::Cleared(bits) => write!(f, "{} cleared", Bits(bits)),
            Self::Set(bits) => write!(f, "{} set", Bits(bits)),
            Self::Popped(bits) if bits.has(Rflags::IF) => f.write_str("flags from the stack"),
            Self::Popped(_) => {
                f.write_str("flags from the stack, but for IF and IOPL, which CPL > IOPL keeps")
            }
            Self::R11 => f.write_str("flags from R11, with RF and VM clear"),
        }
    }
}

impl Display for Crossing {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let wide = |wide| if wide { " with REX.W" } else { "" };
        match *self {
            Self::Event(event) => write!(f, "{event}"),
            Self::FarCall { selector, offset, .. } => write!(f, "far call {selector}:{offset:x}"),
            Self::FarJump { selector, offset, .. } => write!(f, "far jump {selector}:{offset:x}"),
            Self::FarReturn { size, release: 0 } => write!(f, "{} far return", names::bits(size)),
            Self::FarReturn { size, release } => write!(f, "{} far return {release:x}", names::bits(size)),
            Self::InterruptReturn { size } => f.write_str(match size {
                Size::Word => "16-bit iret",
                Size::Double => "iretd",
                Size::Quad => "iretq",
            }),
            Self::Sysenter => f.write_str("sysenter"),
            Self::Sysexit { wide: w } => write!(f, "sysexit{}", wide(w)),
            Self::Syscall => f.write_str("syscall"),
            Self::Sysret { wide: w } => write!(f, "sysret{}", wide(w)),
            Self::Swapgs => f.write_str("swapgs"),
        }
    }
}

impl Display for Event {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Int(vector) => write!(f, "int {vector:x}"),
            Self::Int3 => f.write_str("int3"),
            Self::Into => f.write_str("into"),
            Self::Int1 => f.write_str("int1"),
            Self::Exception { vector, code } => {
                write!(f, "exception {}", super::Exception(vector))?;
                match code {
                    Some(code) => write!(f, " with error code {code:04x}"),
                    None => Ok(()),
                }
            }
            Self::External { vector } => write!(f, "interrupt {vector:x}"),
        }
    }
}

impl Display for Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("the crossing is made"),
            Self::Fault(fault) => write!(f, "{fault}"),
            Self::NotModelled(what) => write!(f, "not modelled: {what}"),
            Self::Unknown(what) => write!(f, "cannot go on: {what} is not known"),
            Self::Impossible(msr) => {
                let (number, name) = (msr.number(), msr.name());
                write!(f, "MSR {number:x}, {name}, cannot hold this: WRMSR of it raises #GP(0000)")
            }
        }
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.exception)?;
        if let Some(code) = self.code {
            write!(f, "({code:04x})")?;
        }
        if let Some(address) = self.address {
            write!(f, " for {address:x}")?;
        }
        if let Some(name) = self.exception.name() {
            write!(f, ", {name},")?;
        }
        match self.level {
            Some(level) => write!(f, " in ring {level}, ")?,
            None => f.write_str(", ")?,
        }
        f.write_str(if self.crossed { "after the crossing" } else { "before any register was changed" })
    }
}
