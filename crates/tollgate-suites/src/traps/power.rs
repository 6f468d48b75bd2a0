//! The emulated meaning of the invalid opcodes: eax to the power of ecx.

/// `lock mov eax, ecx`, invalid: LOCK needs an instruction that reads its memory operand (Intel SDM vol. 2, LOCK).
pub(super) const LOCK_MOV: [u8; 3] = [0xf0, 0x89, 0xc8];

/// `ud1 ecx, eax`, which stays invalid (Intel SDM vol. 2, UD).
pub(super) const UD1: [u8; 3] = [0x0f, 0xb9, 0xc8];

/// Returns the length of the emulated instruction at the start of `code`, if there is one.
///
/// It reads no more bytes than it needs, since the code may end after another instruction.
pub(super) fn decode(code: impl IntoIterator<Item = u8>) -> Option<usize> {
    let mut candidates = [Some(LOCK_MOV), Some(UD1)];
    for (at, byte) in code.into_iter().enumerate() {
        for candidate in &mut candidates {
            *candidate = candidate.filter(|bytes| bytes.get(at) == Some(&byte));
        }
        let known = candidates.iter().flatten().next()?;
        if at + 1 == known.len() {
            return Some(known.len());
        }
    }
    None
}

/// Returns `base` to the power of `exponent`, modulo 2^32; anything to the power of 0 is 1.
pub(super) extern "C" fn power(base: u32, exponent: u32) -> u32 {
    base.wrapping_pow(exponent)
}

/// Another algorithm, in 128 bits: square and multiply from the highest bit of the exponent down.
#[cfg(test)]
pub(super) fn power_by_hand(base: u32, exponent: u32) -> u32 {
    const MODULUS: u128 = 1 << 32;
    let mut result: u128 = 1;
    for bit in (0..32).rev() {
        result = result * result % MODULUS;
        if exponent >> bit & 1 == 1 {
            result = result * u128::from(base) % MODULUS;
        }
    }
    result as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_opcodes_are_matched_by_all_their_bytes() {
        assert_eq!(decode(LOCK_MOV), Some(3));
        assert_eq!(decode(UD1), Some(3));
        assert_eq!(decode([0xf0, 0x89, 0xc8, 0x90, 0xff]), Some(3));
        assert_eq!(decode([0x0f, 0x0b, 0xc8]), None, "ud2");
        assert_eq!(decode([0xf0, 0xb9, 0xc8]), None, "the head of the one and the tail of the other");
        assert_eq!(decode([0xf0, 0x89, 0xc1]), None, "other registers");
        assert_eq!(decode([0xf0, 0x89]), None);
        assert_eq!(decode([]), None);
    }

    #[test]
    fn no_byte_is_read_after_an_unknown_one() {
        let code = [0x0f, 0x0b].into_iter().chain(std::iter::from_fn(|| panic!("read too far")));
        assert_eq!(decode(code), None);
        let code = LOCK_MOV.into_iter().chain(std::iter::from_fn(|| panic!("read too far")));
        assert_eq!(decode(code), Some(3));
    }

    proptest! {
        #[test]
        fn only_those_two_are_decoded(code in prop::collection::vec(any::<u8>(), 0..6)) {
            let known = code.starts_with(&LOCK_MOV) || code.starts_with(&UD1);
            prop_assert_eq!(decode(code), known.then_some(3));
        }

        #[test]
        fn powers_wrap_around(base: u32, exponent: u32) {
            prop_assert_eq!(power(base, exponent), power_by_hand(base, exponent));
        }
    }

    #[test]
    fn powers_at_the_edges() {
        let cases = [(3, 3, 27), (0, 0, 1), (0, 9, 0), (2, 31, 1 << 31), (2, 32, 0), (u32::MAX, 2, 1)];
        for (base, exponent, result) in cases {
            assert_eq!(power(base, exponent), result, "{base}^{exponent}");
            assert_eq!(power_by_hand(base, exponent), result, "{base}^{exponent}");
        }
    }
}
