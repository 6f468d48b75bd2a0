//! FNV-1a of 128 bits (Fowler, Noll, Vo; IETF draft-eastlake-fnv). Accidental collisions are negligible among a million
//! environments. Deliberate ones are easy, so nothing relies on it for security.

const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

pub(super) fn fnv1a_128(bytes: &[u8]) -> u128 {
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vectors() {
        // From the draft's appendix: the empty text, "a" and "foobar".
        assert_eq!(fnv1a_128(b""), BASIS);
        assert_eq!(fnv1a_128(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(fnv1a_128(b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }
}
