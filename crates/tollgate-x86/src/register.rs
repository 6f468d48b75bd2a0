/// A named bit of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bit {
    /// Bit number, from 0.
    pub number: u32,
    /// Name in the manuals.
    pub name: &'static str,
    /// Effect on kernel entry.
    pub about: &'static str,
}

/// Defines a 64-bit register: a constant and an entry in `BITS` for each named bit.
macro_rules! bits_of {
    ($(#[$outer:meta])* $name:ident { $($bit:ident = $number:literal, $about:literal;)* }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(
            /// All 64 bits, named or not.
            pub u64,
        );

        impl $name {
            $(
                #[doc = $about]
                pub const $bit: Self = Self(1 << $number);
            )*

            /// The named bits, from the lowest.
            pub const BITS: &[crate::Bit] = &[
                $(crate::Bit { number: $number, name: stringify!($bit), about: $about },)*
            ];

            /// Returns whether all of `bits` are set.
            pub const fn has(self, bits: Self) -> bool {
                self.0 & bits.0 == bits.0
            }

            /// Returns the value with `bits` set.
            #[must_use]
            pub const fn with(self, bits: Self) -> Self {
                Self(self.0 | bits.0)
            }

            /// Returns the value with `bits` clear.
            #[must_use]
            pub const fn without(self, bits: Self) -> Self {
                Self(self.0 & !bits.0)
            }

            /// Returns the named bits that are set, from the lowest.
            pub fn set(self) -> impl Iterator<Item = &'static crate::Bit> {
                Self::BITS.iter().filter(move |bit| self.0 >> bit.number & 1 == 1)
            }
        }
    };
}

pub(crate) use bits_of;
