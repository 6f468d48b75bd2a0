use core::fmt::{self, Display, Formatter};

use crate::{Descriptor, DescriptorKind, GateKind, Rflags, Table, Vendor, Width};

use crate::walk::{Directory, Exception, Mode, NotModelled, Register, Role, SegmentRegister, Size, Unknown};

pub(super) fn width(width: Width) -> &'static str {
    match width {
        Width::Legacy => "protected mode",
        Width::Long => "long mode",
    }
}

pub(super) fn bits(size: Size) -> &'static str {
    match size {
        Size::Word => "16-bit",
        Size::Double => "32-bit",
        Size::Quad => "64-bit",
    }
}

macro_rules! names {
    ($($of:ident { $($variant:ident => $name:literal,)* })*) => {$(
        impl Display for $of {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $name,)*
                })
            }
        }
    )*};
}

names! {
    Mode {
        Protected => "protected mode",
        Compatibility => "compatibility mode",
        Long64 => "64-bit mode",
    }
    Vendor {
        Intel => "Intel",
        Amd => "AMD",
    }
    GateKind {
        Call => "call",
        Interrupt => "interrupt",
        Trap => "trap",
        Task => "task",
    }
    Table {
        Gdt => "GDT",
        Ldt => "LDT",
    }
    Directory {
        Idt => "IDT",
        Gdt => "GDT",
        Ldt => "LDT",
    }
    Role {
        Cs => "CS",
        Ss => "SS",
        Target => "target",
        Task => "TSS",
    }
    SegmentRegister {
        Cs => "CS",
        Ss => "SS",
        Ds => "DS",
        Es => "ES",
        Fs => "FS",
        Gs => "GS",
        Tr => "TR",
        Ldtr => "LDTR",
    }
    NotModelled {
        RealMode => "real-address mode",
        Virtual8086 => "virtual-8086 mode",
        Fred => "delivery by FRED, which does not use the interrupt descriptor table: it goes to the address in IA32_FRED_CONFIG, or 100h \
                 after it from ring 0, and ERETU or ERETS comes back",
        TaskSwitch => "the exchange of the registers in a task switch",
    }
}

impl Display for Exception {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.mnemonic() {
            Some(mnemonic) => write!(f, "#{mnemonic}"),
            None => write!(f, "{:x}", self.0),
        }
    }
}

impl Display for Register {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rip => "RIP",
            Self::Rsp => "RSP",
            Self::Rflags => "RFLAGS",
            Self::Rcx => "RCX",
            Self::Rdx => "RDX",
            Self::R11 => "R11",
            Self::Cr0 => "CR0",
            Self::Cr4 => "CR4",
            Self::Msr(msr) => return write!(f, "MSR {:x}, {},", msr.number(), msr.name()),
        })
    }
}

impl Display for Unknown {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Register(Register::Msr(msr)) => write!(f, "MSR {:x}, {},", msr.number(), msr.name()),
            Self::Register(register) => write!(f, "{register}"),
            Self::Selector(register) => write!(f, "the selector in {register}"),
            Self::Hidden(register) => write!(f, "the segment of {register}"),
            Self::Limit(directory) => write!(f, "the limit of the {directory}"),
            Self::Descriptor(selector) => write!(f, "the descriptor of {selector}"),
            Self::Gate(vector) => write!(f, "IDT entry {vector:x}"),
            Self::TaskState { offset, size } => {
                write!(f, "what the TSS has at offset {offset:x} ({size} bytes)")
            }
            Self::Stack { address, size } => {
                write!(f, "what is on the stack at {address:x} ({size} bytes)")
            }
            Self::Level => f.write_str("the privilege level"),
            Self::Mode => f.write_str("whether it is 64-bit or compatibility mode"),
        }
    }
}

pub(super) struct Bits(pub(super) Rflags);

impl Display for Bits {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for bit in self.0.set() {
            write!(f, "{comma}{}", bit.name)?;
            comma = ", ";
        }
        if self.0.iopl() != 0 {
            write!(f, "{comma}IOPL")?;
            comma = ", ";
        }
        if comma.is_empty() { f.write_str("no flag") } else { Ok(()) }
    }
}

/// A descriptor in words: "32-bit code, ring 0, present, base 00000000, limit ffffffff".
pub(super) struct Described(pub(super) Descriptor);

impl Display for Described {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(descriptor) = self;
        match descriptor.kind() {
            DescriptorKind::Code { conforming, .. } => {
                f.write_str(match (descriptor.l, descriptor.d) {
                    (true, false) => "64-bit code",
                    (true, true) => "code of reserved width (L and D)",
                    (false, true) => "32-bit code",
                    (false, false) => "16-bit code",
                })?;
                f.write_str(if conforming { ", conforming" } else { ", non-conforming" })?;
            }
            DescriptorKind::Data { writable, expand_down, .. } => {
                f.write_str(if writable { "writable data" } else { "read-only data" })?;
                f.write_str(if expand_down { ", expand-down" } else { "" })?;
            }
            DescriptorKind::System(kind) => f.write_str(kind.name())?,
        }
        let present = if descriptor.p { "present" } else { "not present" };
        write!(f, ", ring {}, {present}", descriptor.dpl)?;
        if matches!(descriptor.kind(), DescriptorKind::System(kind) if kind.is_gate()) {
            return Ok(());
        }
        write!(f, ", base {:08x}, limit {:08x}", descriptor.base, descriptor.effective_limit())
    }
}
