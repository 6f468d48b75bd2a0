//! Task-state segments (SDM 3A, "Task-state segment" and "Task management in 64-bit
//! mode"; APM 2, "Task-management resources").

use crate::Selector;

/// A field of a structure in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Name in the manuals, lower case.
    pub name: &'static str,
    /// Offset in bytes.
    pub offset: usize,
    /// Size in bytes, at most 8; little-endian.
    pub size: usize,
}

impl Field {
    /// Returns its value in `bytes`, which may be truncated; `None` if the field is cut off.
    pub fn read(&self, bytes: &[u8]) -> Option<u64> {
        let bytes = bytes.get(self.offset..self.offset.checked_add(self.size)?)?;
        Some(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    fn write(&self, value: u64, bytes: &mut [u8]) {
        for (byte, value) in bytes.iter_mut().skip(self.offset).take(self.size).zip(value.to_le_bytes()) {
            *byte = value;
        }
    }
}

/// Bytes of a TSS of either width up to the I/O map base, the minimum of a TSS.
const SIZE: usize = 104;

/// Defines a structure in memory with its decoder and encoder, from one list of fields.
macro_rules! structure {
    ($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $field:ident: $kind:ty = $offset:literal;)* }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name {
            $($(#[$inner])* #[doc = concat!("At offset ", stringify!($offset), ".")] pub $field: $kind,)*
        }

        impl $name {
            /// Size in bytes.
            pub const SIZE: usize = SIZE;

            /// All fields, in the order of their offsets.
            pub const FIELDS: &[Field] = &[
                $(Field { name: stringify!($field), offset: $offset, size: size_of::<$kind>() },)*
            ];

            /// Decodes the bytes.
            pub fn decode(bytes: [u8; SIZE]) -> Self {
                let mut fields = Self::FIELDS.iter().filter_map(|field| field.read(&bytes));
                // Each field lies within the size, which a test checks.
                Self { $($field: fields.next().unwrap_or_default() as $kind,)* }
            }

            /// Returns the bytes.
            pub fn encode(self) -> [u8; SIZE] {
                let mut bytes = [0; SIZE];
                let values = [$(u64::from(self.$field),)*];
                for (field, value) in Self::FIELDS.iter().zip(values) {
                    field.write(value, &mut bytes);
                }
                bytes
            }
        }
    };
}

structure! {
    /// The TSS of 32-bit tasks, outside long mode. SDM 3A, "Task-state segment".
    Tss32 {
        /// The selector of the TSS that IRET returns to while NT is set.
        link: u16 = 0x00;
        reserved_02: u16 = 0x02;
        /// The stack pointer that an entry to ring 0 loads.
        esp0: u32 = 0x04;
        /// The stack segment that an entry to ring 0 loads.
        ss0: u16 = 0x08;
        reserved_0a: u16 = 0x0a;
        esp1: u32 = 0x0c;
        ss1: u16 = 0x10;
        reserved_12: u16 = 0x12;
        esp2: u32 = 0x14;
        ss2: u16 = 0x18;
        reserved_1a: u16 = 0x1a;
        cr3: u32 = 0x1c;
        eip: u32 = 0x20;
        eflags: u32 = 0x24;
        eax: u32 = 0x28;
        ecx: u32 = 0x2c;
        edx: u32 = 0x30;
        ebx: u32 = 0x34;
        esp: u32 = 0x38;
        ebp: u32 = 0x3c;
        esi: u32 = 0x40;
        edi: u32 = 0x44;
        es: u16 = 0x48;
        reserved_4a: u16 = 0x4a;
        cs: u16 = 0x4c;
        reserved_4e: u16 = 0x4e;
        ss: u16 = 0x50;
        reserved_52: u16 = 0x52;
        ds: u16 = 0x54;
        reserved_56: u16 = 0x56;
        fs: u16 = 0x58;
        reserved_5a: u16 = 0x5a;
        gs: u16 = 0x5c;
        reserved_5e: u16 = 0x5e;
        ldt: u16 = 0x60;
        reserved_62: u16 = 0x62;
        /// Bit 0: switching to this task raises a debug exception.
        trap: u16 = 0x64;
        /// Offset of the I/O bitmap from the base of the TSS, in bytes.
        iomap: u16 = 0x66;
    }
}

structure! {
    /// The TSS of long mode. SDM 3A, "Task management in 64-bit mode"; APM 2, "64-bit task state segment".
    Tss64 {
        reserved_00: u32 = 0x00;
        /// The stack pointer that an entry to ring 0 loads.
        rsp0: u64 = 0x04;
        rsp1: u64 = 0x0c;
        rsp2: u64 = 0x14;
        reserved_1c: u64 = 0x1c;
        /// Stack 1 of the interrupt stack table; 2 to 7 follow.
        ist1: u64 = 0x24;
        ist2: u64 = 0x2c;
        ist3: u64 = 0x34;
        ist4: u64 = 0x3c;
        ist5: u64 = 0x44;
        ist6: u64 = 0x4c;
        ist7: u64 = 0x54;
        reserved_5c: u64 = 0x5c;
        reserved_64: u16 = 0x64;
        /// Offset of the I/O bitmap from the base of the TSS, in bytes.
        iomap: u16 = 0x66;
    }
}

impl Tss32 {
    /// Returns the SS and ESP that an entry to ring 0, 1 or 2 loads. SDM 3A, "Stack switching".
    pub fn stack(&self, ring: u8) -> Option<(Selector, u32)> {
        let stacks = [(self.ss0, self.esp0), (self.ss1, self.esp1), (self.ss2, self.esp2)];
        stacks.get(usize::from(ring)).map(|&(ss, esp)| (Selector(ss), esp))
    }
}

impl Tss64 {
    /// Returns the RSP that an entry to ring 0, 1 or 2 loads. SDM 3A, "Stack switching in IA-32e mode".
    pub fn rsp(&self, ring: u8) -> Option<u64> {
        [self.rsp0, self.rsp1, self.rsp2].get(usize::from(ring)).copied()
    }

    /// Returns stack 1 to 7 of the interrupt stack table. SDM 3A, "Interrupt stack table".
    pub fn ist(&self, number: u8) -> Option<u64> {
        let stacks = [self.ist1, self.ist2, self.ist3, self.ist4, self.ist5, self.ist6, self.ist7];
        stacks.get(usize::from(number.checked_sub(1)?)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes() -> impl Strategy<Value = [u8; SIZE]> {
        prop::collection::vec(any::<u8>(), SIZE).prop_map(|bytes| bytes.try_into().unwrap())
    }

    proptest! {
        #[test]
        fn decode_and_encode_are_inverses(bytes in bytes()) {
            prop_assert_eq!(Tss32::decode(bytes).encode(), bytes);
            prop_assert_eq!(Tss64::decode(bytes).encode(), bytes);
        }
    }

    #[test]
    fn fields_follow_each_other_to_the_end() {
        for fields in [Tss32::FIELDS, Tss64::FIELDS] {
            let end = fields.iter().fold(0, |end, field| {
                assert_eq!(field.offset, end, "{}", field.name);
                end + field.size
            });
            assert_eq!(end, SIZE);
        }
    }

    #[test]
    fn a_field_that_is_cut_off_has_no_value() {
        let field = Field { name: "x", offset: 2, size: 4 };
        assert_eq!(field.read(&[0, 0, 0x78, 0x56, 0x34, 0x12]), Some(0x1234_5678));
        assert_eq!(field.read(&[0, 0, 0x78, 0x56, 0x34]), None);
        assert_eq!(Field { offset: usize::MAX, ..field }.read(&[0]), None);
    }

    #[test]
    fn stacks_by_their_numbers() {
        let tss = Tss64 { rsp0: 1, ist7: 7, ..Tss64::default() };
        assert_eq!((tss.rsp(0), tss.rsp(3)), (Some(1), None));
        assert_eq!((tss.ist(7), tss.ist(0), tss.ist(8)), (Some(7), None, None));
        let tss = Tss32 { esp0: 0x8087_3c00, ss0: 0x10, ..Tss32::default() };
        assert_eq!(tss.stack(0), Some((Selector(0x10), 0x8087_3c00)));
        assert_eq!(tss.stack(3), None);
    }
}
