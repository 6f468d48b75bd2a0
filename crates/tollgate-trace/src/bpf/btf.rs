//! The kernel's description of its own types: offsets of members, and types by name. See Documentation/bpf/btf.rst of the kernel.
//!
//! A kernel has more than 100,000 types in 5 MB. One pass records the offset of each; names are compared only in lookups.

/// Kinds of types that are looked up by name: `BTF_KIND_*` in include/uapi/linux/btf.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum TypeKind {
    Struct = 4,
    Typedef = 8,
    Function = 12,
}

const INT: u8 = 1;
const POINTER: u8 = 2;
const ARRAY: u8 = 3;
const STRUCT: u8 = 4;
const UNION: u8 = 5;
const ENUM: u8 = 6;
const FORWARD: u8 = 7;
const TYPEDEF: u8 = 8;
const VOLATILE: u8 = 9;
const RESTRICT: u8 = 11;
const FUNCTION: u8 = 12;
const PROTOTYPE: u8 = 13;
const VARIABLE: u8 = 14;
const SECTION: u8 = 15;
const FLOAT: u8 = 16;
const DECLARATION_TAG: u8 = 17;
const TYPE_TAG: u8 = 18;
const ENUM_64: u8 = 19;

const DEEPEST: usize = 16;
/// The most members that are examined on one path. A task_struct has about 300.
const MOST_MEMBERS: u32 = 20_000;
const MAGIC: u16 = 0xeb9f;
const TYPE_BYTES: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("its header is not one of BTF")]
    Header,
    #[error("its types end in the middle of one")]
    Types,
}

pub(crate) struct Btf<'a> {
    /// The type section, and the offset of each type in it. The first type has id 1; 0 is void.
    types: &'a [u8],
    begins: Vec<u32>,
    strings: &'a [u8],
}

/// The first three words of a type, without its name.
#[derive(Clone, Copy)]
struct Type {
    info: u32,
    /// The size of a structure, or the id of the type that others refer to.
    size_or_type: u32,
    at: usize,
}

impl Type {
    fn kind(self) -> u8 {
        (self.info >> 24) as u8 & 0x1f
    }

    fn entries(self) -> usize {
        self.info as usize & 0xffff
    }

    fn has_bit_fields(self) -> bool {
        self.info >> 31 == 1
    }

    /// Returns the number of bytes after the first three words; `None` for an unknown kind, after which no type can be found.
    fn rest(self) -> Option<usize> {
        Some(match self.kind() {
            INT | VARIABLE | DECLARATION_TAG => 4,
            ARRAY => 12,
            STRUCT | UNION | SECTION | ENUM_64 => 12 * self.entries(),
            ENUM | PROTOTYPE => 8 * self.entries(),
            POINTER | FORWARD..=FUNCTION | FLOAT | TYPE_TAG => 0,
            _ => return None,
        })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    four.try_into().ok().map(u32::from_le_bytes)
}

fn section(bytes: &[u8], start: usize, offset: u32, length: u32) -> Option<&[u8]> {
    let start = start.checked_add(offset as usize)?;
    bytes.get(start..start.checked_add(length as usize)?)
}

impl<'a> Btf<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let header = |at| word(bytes, at).ok_or(Malformed::Header);
        if header(0)? & 0xffff != u32::from(MAGIC) {
            return Err(Malformed::Header);
        }
        let start = header(4)? as usize;
        let types = section(bytes, start, header(8)?, header(12)?).ok_or(Malformed::Header)?;
        let strings = section(bytes, start, header(16)?, header(20)?).ok_or(Malformed::Header)?;
        let mut begins = Vec::with_capacity(types.len() / 24);
        let mut at = 0;
        while at < types.len() {
            let rest = type_at(types, at).and_then(Type::rest).ok_or(Malformed::Types)?;
            begins.push(at as u32);
            at += TYPE_BYTES + rest;
        }
        if at != types.len() {
            return Err(Malformed::Types);
        }
        Ok(Self { types, begins, strings })
    }

    /// Returns the ids of the types with these kinds and names, in their order, in one pass.
    pub fn find<const N: usize>(&self, wanted: [(TypeKind, &str); N]) -> [Option<u32>; N] {
        let mut found = [None; N];
        // Most names differ in their first bytes, which are compared at once.
        let mut by_kind: [Vec<(usize, u64, u64)>; 32] = Default::default();
        for (number, (kind, name)) in wanted.into_iter().enumerate() {
            let mask = u64::MAX >> (64 - 8 * name.len().clamp(1, 8));
            by_kind[kind as usize].push((number, mask, first_bytes(name.as_bytes())));
        }
        let mut left = N;
        for (index, &at) in self.begins.iter().enumerate() {
            let Some(kind) = self.types.get(at as usize + 7).map(|byte| byte & 0x1f) else { break };
            let wanted_here = &by_kind[usize::from(kind)];
            if wanted_here.is_empty() {
                continue;
            }
            let Some(name) = word(self.types, at as usize) else { break };
            let first = first_bytes(self.strings.get(name as usize..).unwrap_or_default());
            for &(number, mask, bytes) in wanted_here {
                if first & mask == bytes && found[number].is_none() && self.is_named(name, wanted[number].1) {
                    found[number] = Some(index as u32 + 1);
                    left -= 1;
                }
            }
            if left == 0 {
                break;
            }
        }
        found
    }

    /// Returns the offset of a member in a structure, in bytes, by the names that lead to it. Anonymous structures and
    /// unions in between are searched. `None` if there is no such member, or if it is a bit field.
    pub fn offset(&self, structure: u32, path: &[&str]) -> Option<u32> {
        let mut offset = 0u32;
        let mut within = structure;
        let mut left = MOST_MEMBERS;
        for name in path {
            let (bits, next) = self.member(within, name, 0, &mut left)?;
            offset = offset.checked_add(bits)?;
            within = next;
        }
        offset.is_multiple_of(8).then_some(offset / 8)
    }

    pub fn parameters(&self, typedef: u32) -> Option<usize> {
        let mut id = typedef;
        for _ in 0..DEEPEST {
            let one = self.get(id)?;
            if one.kind() == PROTOTYPE {
                return Some(one.entries());
            }
            id = one.size_or_type;
        }
        None
    }

    /// Returns the offset of a member in bits, and its type.
    fn member(&self, structure: u32, name: &str, depth: usize, left: &mut u32) -> Option<(u32, u32)> {
        let structure = self.structure(structure)?;
        for entry in 0..structure.entries() {
            *left = left.checked_sub(1)?;
            let at = structure.at + TYPE_BYTES + 12 * entry;
            let (its_name, its_type) = (word(self.types, at)?, word(self.types, at + 4)?);
            let place = word(self.types, at + 8)?;
            let (bits, is_bit_field) = if structure.has_bit_fields() {
                (place & 0x00ff_ffff, place >> 24 != 0)
            } else {
                (place, false)
            };
            if its_name == 0 && depth < DEEPEST {
                if let Some((inner, found)) = self.member(its_type, name, depth + 1, left) {
                    return Some((bits.checked_add(inner)?, found));
                }
            } else if self.is_named(its_name, name) {
                return (!is_bit_field).then_some((bits, its_type));
            }
        }
        None
    }

    fn structure(&self, mut id: u32) -> Option<Type> {
        for _ in 0..DEEPEST {
            let one = self.get(id)?;
            match one.kind() {
                STRUCT | UNION => return Some(one),
                TYPEDEF | VOLATILE..=RESTRICT | TYPE_TAG => id = one.size_or_type,
                _ => return None,
            }
        }
        None
    }

    fn get(&self, id: u32) -> Option<Type> {
        let at = *self.begins.get((id as usize).checked_sub(1)?)?;
        type_at(self.types, at as usize)
    }

    fn is_named(&self, name: u32, wanted: &str) -> bool {
        let rest = self.strings.get(name as usize..).unwrap_or_default();
        rest.starts_with(wanted.as_bytes()) && rest.get(wanted.len()) == Some(&0)
    }
}

fn first_bytes(bytes: &[u8]) -> u64 {
    if let Some(eight) = bytes.first_chunk() {
        return u64::from_le_bytes(*eight);
    }
    let mut eight = [0; 8];
    eight[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(eight)
}

fn type_at(types: &[u8], at: usize) -> Option<Type> {
    let info = word(types, at.checked_add(4)?)?;
    Some(Type { info, size_or_type: word(types, at + 8)?, at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn description(strings: &[u8], types: &[u32]) -> Vec<u8> {
        let length = 4 * types.len() as u32;
        let header = [0x0001_eb9f, 24, 0, length, length, strings.len() as u32];
        let mut bytes: Vec<u8> = header.iter().chain(types).flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend_from_slice(strings);
        bytes
    }

    const STRINGS: &[u8] = b"\0int\0outer\0inner\0a\0b\0point\0";

    /// `struct outer { int a; struct { struct inner { int b; } inner; }; int bits:3; }`, and a typedef of a binary function.
    fn sample() -> Vec<u8> {
        const ST: u32 = 4 << 24;
        let types = [
            [1, 1 << 24, 4, 32].as_slice(),
            // 2: inner { b at 32 }
            &[11, ST | 1, 8, 19, 1, 32],
            // 3: anonymous { inner at 64 }
            &[0, ST | 1, 16, 11, 4, 64],
            // 4: const inner
            &[0, 10 << 24, 2],
            // 5: outer { a at 0, anonymous at 64, b as 3 bits at 200 }
            &[5, 1 << 31 | ST | 3, 40, 17, 1, 0, 0, 3, 64, 19, 1, 3 << 24 | 200],
            // 6: prototype of two, 7: pointer, 8: typedef point
            &[0, 13 << 24 | 2, 0, 0, 1, 0, 1],
            &[0, 2 << 24, 6],
            &[21, 8 << 24, 7],
        ];
        description(STRINGS, &types.concat())
    }

    #[test]
    fn members_are_found_behind_names_modifiers_and_anonymous_structures() {
        let bytes = sample();
        let btf = Btf::parse(&bytes).unwrap();
        let [outer, point, none] = btf.find([
            (TypeKind::Struct, "outer"),
            (TypeKind::Typedef, "point"),
            (TypeKind::Struct, "point"),
        ]);
        assert_eq!((outer, point, none), (Some(5), Some(8), None));
        assert_eq!(btf.offset(5, &["a"]), Some(0));
        assert_eq!(btf.offset(5, &["inner"]), Some(16));
        assert_eq!(btf.offset(5, &["inner", "b"]), Some(20));
        assert_eq!(btf.offset(5, &["b"]), None, "a bit field has no offset in bytes");
        assert_eq!(btf.offset(5, &["c"]), None);
        assert_eq!(btf.offset(99, &["a"]), None);
        assert_eq!(btf.parameters(8), Some(2));
        assert_eq!(btf.parameters(5), None);
    }

    #[test]
    fn structures_that_hold_themselves_end() {
        const ST: u32 = 4 << 24;
        let mut types = vec![0, ST | 200, 0];
        types.extend((0..200).flat_map(|_| [0, 1, 0]));
        let bytes = description(b"\0", &types);
        assert_eq!(Btf::parse(&bytes).unwrap().offset(1, &["x"]), None);
    }

    #[test]
    fn this_kernel_is_read() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else {
            println!("skipped: this kernel does not describe its types");
            return;
        };
        let btf = Btf::parse(&bytes).unwrap();
        let [task] = btf.find([(TypeKind::Struct, "task_struct")]);
        assert_eq!(btf.offset(task.unwrap(), &["thread_info", "flags"]), Some(0));
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes: Vec<u8>) {
            let _ = Btf::parse(&bytes);
        }

        #[test]
        fn any_types_are_taken(types in prop::collection::vec(prop_oneof![any::<u32>(), 0u32..40, Just(4 << 24 | 3)], 0..60)) {
            let bytes = description(STRINGS, &types);
            if let Ok(btf) = Btf::parse(&bytes) {
                let [found] = btf.find([(TypeKind::Struct, "outer")]);
                for id in [found.unwrap_or(1), 2, u32::MAX] {
                    let _ = btf.offset(id, &["inner", "b"]);
                    let _ = btf.parameters(id);
                }
            }
        }

        #[test]
        fn any_damage_is_taken(at in 0usize..400, byte: u8) {
            let mut bytes = sample();
            let length = bytes.len();
            bytes[at % length] = byte;
            if let Ok(btf) = Btf::parse(&bytes) {
                let _ = btf.offset(5, &["inner", "b"]);
            }
        }
    }
}
