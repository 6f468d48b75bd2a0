//! Any program's run ends, and a second run is identical.

use proptest::prelude::*;
use tollgate_lab::{Engine, Interpreter, Machine, Output};
use tollgate_x86::Vendor;

use super::{BASE, HEADER, crossings, machine};

fn end_of(image: &[u8], vendor: Vendor) -> Output {
    let machine = Machine { memory: 8 << 20, instructions: 20_000, ..machine(vendor) };
    Interpreter.run(image, BASE, BASE + HEADER, machine).unwrap()
}

fn vendor() -> impl Strategy<Value = Vendor> {
    prop_oneof![Just(Vendor::Intel), Just(Vendor::Amd)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything_can_be_run(image in prop::collection::vec(any::<u8>(), 32..2000), vendor in vendor()) {
        let first = end_of(&image, vendor);
        prop_assert!(first.counts.unwrap().instructions <= 20_000);
        prop_assert_eq!(first, end_of(&image, vendor));
    }

    /// A program that sets up long mode and rings, with a few bytes changed: code, descriptors, gates, addresses.
    #[test]
    fn a_broken_program_can_be_run(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        vendor in vendor(),
    ) {
        let mut image = crossings::image().to_vec();
        for (at, byte) in changes {
            let at = at.index(image.len());
            image[at] = byte;
        }
        prop_assert_eq!(end_of(&image, vendor), end_of(&image, vendor));
    }
    /// The same program with arbitrary bytes in place of some of its code.
    #[test]
    fn anything_can_be_run_in_any_ring(
        at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 1..40),
        vendor in vendor(),
    ) {
        let mut image = crossings::image().to_vec();
        let at = at.index(image.len());
        let end = (at + bytes.len()).min(image.len());
        image[at..end].copy_from_slice(&bytes[..end - at]);
        prop_assert_eq!(end_of(&image, vendor), end_of(&image, vendor));
    }
}
