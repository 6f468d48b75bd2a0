use serde::Serialize;
use serde_json::{Map, Value, json};
use tollgate_x86::{
    AccessRights, Descriptor, DescriptorKind, Efer, Gate, Msr, Rflags, Selector, Star, SysenterCs, Tss32,
    Tss64, WideDescriptor, WideGate, Width,
};

use crate::PrintedDescriptor;

/// A decoded item, by the names of `--as`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// `gdt8`: an entry of 8 bytes in a descriptor table.
    Segment(Option<Selector>, Descriptor),
    /// `gdt16`: a TSS or LDT descriptor of long mode.
    System(Option<Selector>, WideDescriptor),
    /// `gdt16`, if a tool printed only the first 8 bytes: the upper half of the base is unknown.
    Half(Option<Selector>, Descriptor),
    /// `gate32`: a gate of 8 bytes.
    Gate32(Position, Gate),
    /// `gate64`: a gate of 16 bytes.
    Gate64(Position, WideGate),
    /// `tss32`: the known bytes from its beginning, and the offset of its last byte if known.
    Tss32(Vec<u8>, Option<u64>),
    /// `tss64`: the known bytes from its beginning, and the offset of its last byte if known.
    Tss64(Vec<u8>, Option<u64>),
    /// `msr`: a register of kernel entry.
    Msr(Msr, u64),
    /// `gdt8`, as far as a tool printed it.
    Explained(PrintedDescriptor),
    /// `ivt`: a vector of real mode, with the segment and offset of its handler.
    Vector(u8, u16, u16),
    /// `tss32` or `tss64`, if only some fields are known.
    Fields(Width, Vec<(&'static str, u64)>),
    /// `lar_lsl`: the values of LAR and, if known, LSL.
    Rights(Option<Selector>, AccessRights, Option<u32>),
}

/// The position of a gate, if known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// The position is not known.
    Unknown,
    /// In the IDT, at this vector.
    Vector(u8),
    /// In the GDT or LDT, at this selector.
    Selector(Selector),
}

/// A decoded item.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Item"))]
pub struct ItemRecord {
    /// `gdt8`, `gdt16`, `gate32`, `gate64`, `ivt`, `tss32`, `tss64`, `msr` or `lar_lsl`.
    kind: &'static str,
    /// Its selector, or null.
    selector: Option<String>,
    /// Its vector, or null.
    vector: Option<String>,
    /// Its bytes in memory order, or null.
    bytes: Option<String>,
    #[serde(flatten)]
    of_kind: OfKind,
    /// The decoded fields, by kind. Descriptors: `base`, `limit`, `eff` (the last offset in bytes), `type`, `s`, `dpl`, `p`, `avl`, `l`,
    /// `d`, `g`; `lar_lsl` lacks the first three. Gates: `off`, `sel`, `ist`, `type`, `s`, `dpl`, `p`. A TSS: its present fields, except
    /// reserved ones that are 0. A register: the values that it loads. A descriptor that a tool printed only in part has that part.
    decoded: Map<String, Value>,
    /// A descriptor's flags as the Windows debugger prints them, or null.
    dg_flags: Option<String>,
}

/// Fields that only some kinds of items have.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct OfKind {
    /// The number of a register, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    msr: Option<String>,
    /// The name of a register.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The value of a register.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// For `lar_lsl`, the access rights that LAR loads.
    #[serde(skip_serializing_if = "Option::is_none")]
    lar: Option<String>,
    /// For `lar_lsl`, the limit that LSL loads, or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("nullable" = true)))]
    lsl: Option<Option<String>>,
    /// The offset of the last byte of a TSS, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
}

impl Item {
    /// Decodes an entry of a descriptor table: 8 bytes, or the 16 of long mode's system descriptors.
    pub fn entry(selector: Option<Selector>, bytes: &[u8], width: Width) -> Option<Self> {
        let low = Descriptor::decode(*bytes.first_chunk()?);
        let is_gate = matches!(low.kind(), DescriptorKind::System(kind) if kind.is_gate());
        let position = selector.map_or(Position::Unknown, Position::Selector);
        Some(match (bytes.first_chunk::<16>(), is_gate) {
            (Some(wide), true) => Self::Gate64(position, WideGate::decode(*wide)),
            (Some(wide), false) => Self::System(selector, WideDescriptor::decode(*wide)),
            (None, true) if width == Width::Legacy => {
                Self::Gate32(position, Gate::decode(*bytes.first_chunk()?))
            }
            (None, _) => Self::Segment(selector, low),
        })
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Segment(..) | Self::Explained(..) => "gdt8",
            Self::Vector(..) => "ivt",
            Self::Fields(Width::Legacy, _) => "tss32",
            Self::Fields(Width::Long, _) => "tss64",
            Self::System(..) | Self::Half(..) => "gdt16",
            Self::Gate32(..) => "gate32",
            Self::Gate64(..) => "gate64",
            Self::Tss32(..) => "tss32",
            Self::Tss64(..) => "tss64",
            Self::Msr(..) => "msr",
            Self::Rights(..) => "lar_lsl",
        }
    }

    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Segment(_, descriptor) => Some(descriptor.encode().to_vec()),
            Self::System(_, descriptor) => Some(descriptor.encode().to_vec()),
            Self::Gate32(_, gate) => Some(gate.encode().to_vec()),
            Self::Gate64(_, gate) => Some(gate.encode().to_vec()),
            Self::Tss32(bytes, _) | Self::Tss64(bytes, _) => Some(bytes.clone()),
            Self::Vector(_, segment, offset) => {
                Some((u32::from(*segment) << 16 | u32::from(*offset)).to_le_bytes().to_vec())
            }
            Self::Half(..) | Self::Msr(..) | Self::Rights(..) | Self::Explained(..) | Self::Fields(..) => {
                None
            }
        }
    }

    pub(crate) fn last_offset(&self) -> u64 {
        match self {
            Self::Tss32(_, Some(last)) | Self::Tss64(_, Some(last)) => *last,
            _ => 0x67,
        }
    }

    pub(crate) fn selector(&self) -> Option<Selector> {
        match self {
            Self::Segment(selector, _)
            | Self::System(selector, _)
            | Self::Half(selector, _)
            | Self::Rights(selector, ..) => *selector,
            Self::Explained(printed) => Some(Selector(printed.selector)),
            Self::Gate32(Position::Selector(selector), _) | Self::Gate64(Position::Selector(selector), _) => {
                Some(*selector)
            }
            _ => None,
        }
    }

    pub(crate) fn vector(&self) -> Option<u8> {
        match self {
            Self::Gate32(Position::Vector(vector), _) | Self::Gate64(Position::Vector(vector), _) => {
                Some(*vector)
            }
            Self::Vector(vector, ..) => Some(*vector),
            _ => None,
        }
    }

    fn descriptor(&self) -> Option<&Descriptor> {
        match self {
            Self::Segment(_, descriptor) | Self::Half(_, descriptor) => Some(descriptor),
            Self::System(_, descriptor) => Some(&descriptor.low),
            _ => None,
        }
    }

    /// Returns the record for JSON.
    pub fn record(&self) -> ItemRecord {
        let of_kind = match self {
            Self::Msr(msr, value) => OfKind {
                msr: Some(format!("{:x}", msr.number())),
                name: Some(format!("IA32_{}", msr.name())),
                value: Some(hex(*value)),
                ..OfKind::default()
            },
            Self::Rights(_, rights, limit) => OfKind {
                lar: Some(format!("{:08x}", rights.0)),
                lsl: Some(limit.map(hex)),
                ..OfKind::default()
            },
            Self::Tss32(_, Some(last)) | Self::Tss64(_, Some(last)) => {
                OfKind { limit: Some(hex(*last)), ..OfKind::default() }
            }
            _ => OfKind::default(),
        };
        ItemRecord {
            kind: self.kind(),
            selector: self.selector().map(|selector| hex(selector.0)),
            vector: self.vector().map(hex),
            bytes: self.bytes().map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
            of_kind,
            decoded: self.decoded(),
            dg_flags: self.descriptor().map(|descriptor| format!("{:08x}", descriptor.dg_flags())),
        }
    }

    fn decoded(&self) -> Map<String, Value> {
        match self {
            Self::Segment(_, descriptor) => segment(descriptor, descriptor.base.into()),
            Self::System(_, descriptor) => segment(&descriptor.low, descriptor.base()),
            Self::Half(_, descriptor) => {
                let mut decoded = segment(descriptor, descriptor.base.into());
                decoded.insert("base".to_owned(), Value::Null);
                decoded
            }
            Self::Explained(printed) => explained(printed),
            Self::Vector(_, segment, offset) => object(json!({ "sel": hex(*segment), "off": hex(*offset) })),
            Self::Fields(_, fields) => {
                fields.iter().map(|(name, value)| ((*name).to_owned(), Value::from(hex(*value)))).collect()
            }
            Self::Gate32(_, gate) => entry_gate(gate, gate.offset.into(), 0),
            Self::Gate64(_, gate) => entry_gate(&gate.low, gate.offset(), gate.ist()),
            Self::Tss32(bytes, _) => fields(Tss32::FIELDS, bytes),
            Self::Tss64(bytes, _) => fields(Tss64::FIELDS, bytes),
            Self::Msr(msr, value) => register(*msr, *value),
            Self::Rights(_, rights, limit) => {
                let descriptor = rights.with_limit(limit.unwrap_or_default());
                let mut decoded = segment(&descriptor, 0);
                // LAR gives no base, and only LSL gives the limit.
                for name in ["base", "limit", "eff"] {
                    decoded.remove(name);
                }
                decoded
            }
        }
    }
}

pub(crate) fn mode(width: Width) -> u8 {
    match width {
        Width::Legacy => 32,
        Width::Long => 64,
    }
}

pub(crate) fn order(as_numbers: bool) -> &'static str {
    if as_numbers { "number" } else { "memory" }
}

pub(crate) fn hex(number: impl Into<u64>) -> String {
    format!("{:#x}", number.into())
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn segment(descriptor: &Descriptor, base: u64) -> Map<String, Value> {
    object(json!({
        "base": hex(base),
        "limit": hex(descriptor.limit),
        "eff": hex(descriptor.effective_limit()),
        "type": hex(descriptor.kind),
        "s": u8::from(descriptor.s),
        "dpl": descriptor.dpl,
        "p": u8::from(descriptor.p),
        "avl": u8::from(descriptor.avl),
        "l": u8::from(descriptor.l),
        "d": u8::from(descriptor.d),
        "g": u8::from(descriptor.g),
    }))
}

fn explained(printed: &PrintedDescriptor) -> Map<String, Value> {
    let mut decoded = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        decoded.extend(value.map(|value| (name.to_owned(), value)));
    };
    add("base", printed.base.map(|base| hex(base).into()));
    add("eff", printed.limit.map(|limit| hex(limit).into()));
    add("off", printed.target.map(|(_, offset)| hex(offset).into()));
    add("sel", printed.target.map(|(selector, _)| hex(selector.0).into()));
    add("type", printed.bits(0xf).map(|bits| hex(bits).into()));
    add("dpl", printed.bits(0x60).map(|bits| (bits >> 5).into()));
    for (name, bit) in [("s", 4), ("p", 7), ("avl", 8), ("l", 9), ("d", 10), ("g", 11)] {
        add(name, printed.bits(1 << bit).map(|bits| (bits >> bit).into()));
    }
    decoded
}

fn entry_gate(gate: &Gate, offset: u64, ist: u8) -> Map<String, Value> {
    object(json!({
        "off": hex(offset),
        "sel": hex(gate.selector.0),
        "ist": ist,
        "type": hex(gate.kind),
        "s": u8::from(gate.s),
        "dpl": gate.dpl,
        "p": u8::from(gate.p),
    }))
}

fn fields(fields: &[tollgate_x86::Field], bytes: &[u8]) -> Map<String, Value> {
    let there = fields.iter().filter_map(|field| Some((field.name, field.read(bytes)?)));
    let meant = there.filter(|(name, value)| !name.starts_with("reserved") || *value != 0);
    meant.map(|(name, value)| (name.to_owned(), Value::from(hex(value)))).collect()
}

fn register(msr: Msr, value: u64) -> Map<String, Value> {
    let selector = |selector: Selector| hex(selector.0);
    object(match msr {
        Msr::SysenterCs => {
            let base = SysenterCs(value);
            json!({
                "sysenter_cs": selector(base.sysenter_cs()),
                "sysenter_ss": selector(base.sysenter_ss()),
                "sysexit32_cs": selector(base.sysexit32_cs()),
                "sysexit32_ss": selector(base.sysexit32_ss()),
                "sysexit64_cs": selector(base.sysexit64_cs()),
                "sysexit64_ss": selector(base.sysexit64_ss()),
            })
        }
        Msr::Star => {
            let star = Star(value);
            json!({
                "legacy_eip": hex(star.legacy_eip()),
                "syscall_cs": selector(star.syscall_cs()),
                "syscall_ss": selector(star.syscall_ss()),
                "sysret32_cs": selector(star.sysret32_cs()),
                "sysret64_cs": selector(star.sysret64_cs()),
                "sysret_ss": selector(star.sysret_ss()),
            })
        }
        Msr::Fmask => json!({ "cleared": flags(Rflags(value)) }),
        Msr::Efer => json!({ "set": Efer(value).set().map(|bit| bit.name).collect::<Vec<_>>() }),
        Msr::SysenterEsp => json!({ "esp": hex(value) }),
        Msr::SysenterEip => json!({ "eip": hex(value) }),
        Msr::Lstar | Msr::Cstar => json!({ "rip": hex(value) }),
        Msr::FsBase | Msr::GsBase | Msr::KernelGsBase => json!({ "base": hex(value) }),
        Msr::TscAux => json!({ "value": hex(value) }),
    })
}

pub(crate) fn flags(flags: Rflags) -> Vec<String> {
    let named = flags.set().map(|bit| bit.name.to_owned());
    let level = Some(flags.iopl()).filter(|&level| level != 0).map(|level| format!("IOPL={level}"));
    named.chain(level).collect()
}
