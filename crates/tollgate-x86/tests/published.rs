//! Published descriptors, gates, TSSs and MSRs, decoded field by field and encoded again.
//!
//! `published.json` names the source of each. If a source prints only a macro or the fields, a note says that the bytes
//! were assembled from them; their meaning is still the source's.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use tollgate_x86::{
    AccessRights, Descriptor, Efer, Field, Gate, Msr, Rflags, Star, SysenterCs, Tss32, Tss64, WideDescriptor,
    WideGate, Width,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    id: String,
    kind: String,
    /// Bytes in memory order.
    #[serde(default)]
    bytes: String,
    #[serde(default)]
    value: String,
    #[serde(default)]
    msr: String,
    #[serde(default)]
    lar: String,
    #[serde(default)]
    lsl: String,
    decoded: BTreeMap<String, Value>,
    dg_flags: Option<String>,
    source: String,
    published: Option<String>,
    #[serde(rename = "selector")]
    _selector: Option<String>,
    #[serde(rename = "vector")]
    _vector: Option<String>,
    #[serde(rename = "note")]
    _note: Option<String>,
}

fn vectors() -> Vec<Vector> {
    serde_json::from_str(include_str!("published.json")).unwrap()
}

fn bytes<const N: usize>(text: &str) -> [u8; N] {
    assert_eq!(text.len(), 2 * N, "{text}");
    std::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
}

/// Reads a number, given as such or in hexadecimal, possibly with a remark after it.
fn number(value: &Value) -> u64 {
    match value {
        Value::String(text) => {
            let digits = text.split_whitespace().next().unwrap();
            u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).unwrap()
        }
        value => value.as_u64().unwrap(),
    }
}

fn descriptor_field(descriptor: &Descriptor, name: &str) -> u64 {
    match name {
        "base" => descriptor.base.into(),
        "limit" => descriptor.limit.into(),
        "eff" => descriptor.effective_limit().into(),
        "type" => descriptor.kind.into(),
        "s" => descriptor.s.into(),
        "dpl" => descriptor.dpl.into(),
        "p" => descriptor.p.into(),
        "avl" => descriptor.avl.into(),
        "l" => descriptor.l.into(),
        "d" => descriptor.d.into(),
        "g" => descriptor.g.into(),
        name => panic!("no field {name}"),
    }
}

fn gate_field(gate: &Gate, offset: u64, name: &str) -> u64 {
    match name {
        "off" => offset,
        "sel" => gate.selector.0.into(),
        "ist" => (gate.byte_4 & 0b111).into(),
        "type" => gate.kind.into(),
        "dpl" => gate.dpl.into(),
        "p" => gate.p.into(),
        name => panic!("no field {name}"),
    }
}

fn check(vector: &Vector, field: impl Fn(&str) -> u64) {
    assert!(!vector.decoded.is_empty(), "{}", vector.id);
    for (name, value) in &vector.decoded {
        assert_eq!(field(name), number(value), "{}: {name}", vector.id);
    }
}

fn check_dg(vector: &Vector, descriptor: &Descriptor) {
    let flags = vector.dg_flags.as_ref().unwrap_or_else(|| panic!("{} has no flags", vector.id));
    assert_eq!(format!("{:08x}", descriptor.dg_flags()), *flags, "{}", vector.id);
}

fn wide(vector: &Vector) {
    let bytes: [u8; 16] = bytes(&vector.bytes);
    let descriptor = WideDescriptor::decode(bytes);
    assert_eq!(descriptor.encode(), bytes, "{}", vector.id);
    assert!(descriptor.is_well_formed(), "{}", vector.id);
    check_dg(vector, &descriptor.low);
    check(vector, |name| match name {
        "base" => descriptor.base(),
        name => descriptor_field(&descriptor.low, name),
    });
}

/// Checks a TSS, of which the source may show only the beginning.
fn task_state(vector: &Vector, fields: &[Field]) {
    let bytes: Vec<u8> =
        (0..vector.bytes.len() / 2).map(|at| bytes::<1>(&vector.bytes[2 * at..2 * at + 2])[0]).collect();
    for (name, value) in &vector.decoded {
        let field = fields.iter().find(|field| field.name == name).unwrap();
        match field.read(&bytes) {
            Some(read) => assert_eq!(read, number(value), "{}: {name}", vector.id),
            None => {
                // The one field that is known although its bytes are not shown, and the value that follows from it.
                assert_eq!(
                    (vector.id.as_str(), name.as_str(), number(value)),
                    ("w2k-tss32", "iomap", 0x20ac)
                );
            }
        }
    }
}

fn flags_of(mask: Rflags) -> Vec<String> {
    let mut names: Vec<String> = mask.set().map(|bit| bit.name.to_owned()).collect();
    if mask.iopl() != 0 {
        names.push(format!("IOPL={}", mask.iopl()));
    }
    names
}

fn names(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn same_names(mut left: Vec<String>, mut right: Vec<String>, id: &str) {
    left.sort();
    right.sort();
    assert_eq!(left, right, "{id}");
}

fn register(vector: &Vector) {
    let value = number(&Value::String(vector.value.clone()));
    let msr = Msr::by_number(u32::from_str_radix(&vector.msr, 16).unwrap()).unwrap();
    match msr {
        Msr::Star => {
            let star = Star(value);
            check(vector, |name| match name {
                "legacy_eip" => star.legacy_eip().into(),
                "syscall_cs" => star.syscall_cs().0.into(),
                "syscall_ss" => star.syscall_ss().0.into(),
                "sysret32_cs" => star.sysret32_cs().0.into(),
                "sysret64_cs" => star.sysret64_cs().0.into(),
                "sysret_ss" => star.sysret_ss().0.into(),
                name => panic!("no field {name}"),
            });
            assert_eq!(Star::new(star.sysret(), star.syscall(), star.legacy_eip()), star);
        }
        Msr::SysenterCs => {
            let cs = SysenterCs(value);
            check(vector, |name| match name {
                "sysenter_cs" => cs.sysenter_cs().0.into(),
                "sysenter_ss" => cs.sysenter_ss().0.into(),
                "sysexit32_cs" => cs.sysexit32_cs().0.into(),
                "sysexit32_ss" => cs.sysexit32_ss().0.into(),
                "sysexit64_cs" => cs.sysexit64_cs().0.into(),
                "sysexit64_ss" => cs.sysexit64_ss().0.into(),
                name => panic!("no field {name}"),
            });
        }
        Msr::Fmask => same_names(flags_of(Rflags(value)), names(&vector.decoded["cleared"]), &vector.id),
        Msr::Efer => {
            let set = Efer(value).set().map(|bit| bit.name.to_owned()).collect();
            same_names(set, names(&vector.decoded["set"]), &vector.id);
        }
        msr => panic!("{} is not decoded here", msr.name()),
    }
}

#[test]
fn every_published_vector_decodes_field_by_field() {
    for vector in vectors() {
        match vector.kind.as_str() {
            "gdt8" => {
                let bytes = bytes(&vector.bytes);
                let descriptor = Descriptor::decode(bytes);
                assert_eq!(descriptor.encode(), bytes, "{}", vector.id);
                check_dg(&vector, &descriptor);
                check(&vector, |name| descriptor_field(&descriptor, name));
            }
            "gdt16" => wide(&vector),
            "gate32" => {
                let bytes = bytes(&vector.bytes);
                let gate = Gate::decode(bytes);
                assert_eq!(gate.encode(), bytes, "{}", vector.id);
                assert!(gate.gate_kind(Width::Legacy).is_some(), "{}", vector.id);
                check(&vector, |name| gate_field(&gate, gate.offset.into(), name));
            }
            "gate64" => {
                let bytes = bytes(&vector.bytes);
                let gate = WideGate::decode(bytes);
                assert_eq!(gate.encode(), bytes, "{}", vector.id);
                assert!(gate.low.gate_kind(Width::Long).is_some(), "{}", vector.id);
                check(&vector, |name| gate_field(&gate.low, gate.offset(), name));
            }
            "tss32" => task_state(&vector, Tss32::FIELDS),
            "tss64" => {
                task_state(&vector, Tss64::FIELDS);
                let bytes = bytes(&vector.bytes);
                assert_eq!(Tss64::decode(bytes).encode(), bytes, "{}", vector.id);
            }
            "msr" => register(&vector),
            "lar_lsl" => {
                let limit = number(&Value::String(vector.lsl.clone())) as u32;
                let rights = AccessRights(u32::from_str_radix(&vector.lar, 16).unwrap());
                let descriptor = rights.with_limit(limit);
                // Bits 19 to 16 are undefined by the SDM; some processors return the limit's.
                assert_eq!(descriptor.access_rights().0, rights.0 & 0x00f0_ff00, "{}", vector.id);
                assert_eq!(descriptor.effective_limit(), limit, "{}", vector.id);
                check(&vector, |name| descriptor_field(&descriptor, name));
            }
            kind => panic!("{}: kind {kind}", vector.id),
        }
    }
}

#[test]
fn every_vector_is_one_of_its_own_with_a_source() {
    let vectors = vectors();
    let mut ids: Vec<&str> = vectors.iter().map(|vector| vector.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), vectors.len());
    assert!(vectors.len() >= 72);
    for vector in &vectors {
        assert!(vector.source.len() > 20, "{}", vector.id);
        // The debugger's `dg` line ends with the flags.
        if let (Some(published), Some(flags)) = (&vector.published, &vector.dg_flags) {
            let printed = published.split([' ', ';']).any(|word| word == flags);
            let is_listing = published.contains(" Nl ") || published.contains(" Lo ");
            assert!(!is_listing || printed, "{}: {published}", vector.id);
        }
    }
}

/// Compares the debugger's own columns for limit, size and granularity with the descriptors that they were printed for.
#[test]
fn the_debugger_s_columns_agree() {
    let mut seen = 0;
    for vector in vectors().into_iter().filter(|vector| vector.kind == "gdt8") {
        let published = vector.published.unwrap_or_default();
        let Some(at) = published.find(" Bg ").or_else(|| published.find(" Nb ")) else { continue };
        let descriptor = Descriptor::decode(bytes(&vector.bytes));
        let columns: Vec<&str> = published[at..].split_whitespace().collect();
        let expected = [
            if descriptor.d { "Bg" } else { "Nb" },
            if descriptor.g { "Pg" } else { "By" },
            if descriptor.p { "P" } else { "Np" },
            if descriptor.l { "Lo" } else { "Nl" },
        ];
        assert_eq!(columns[..4], expected, "{}", vector.id);
        let level = published[..at].split_whitespace().next_back().unwrap();
        assert_eq!(level, descriptor.dpl.to_string(), "{}", vector.id);
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}
