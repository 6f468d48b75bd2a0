//! Checks that QEMU's loader can take an image, by its multiboot header (Multiboot Specification 0.6.96, "OS image format").

/// The header begins at a multiple of 4 bytes, and lies wholly within these first bytes.
const SEARCHED: usize = 8192;
const MAGIC: u32 = 0x1bad_b002;
/// Bit 16 of the flags: the header gives the load addresses, so the image need not be an ELF file (the "a.out kludge").
const HAS_ADDRESSES: u32 = 1 << 16;

/// Checks that the header loads the image at `base` and enters it at `entry`; otherwise says in a clause why QEMU would not.
pub(super) fn check(image: &[u8], base: u64, entry: u64) -> Result<(), String> {
    let searched = &image[..image.len().min(SEARCHED)];
    let header = (0..searched.len()).step_by(4).find(|&at| is_header(searched, at));
    let Some(at) = header else {
        return Err(format!("the image has no multiboot header in its first {SEARCHED} bytes"));
    };
    let addresses = || {
        let [flags, header, load, load_end, _, header_entry] =
            [4, 12, 16, 20, 24, 28].map(|field| word(searched, at + field));
        Some((flags? & HAS_ADDRESSES != 0, header?, load?, load_end?, header_entry?))
    };
    let Some((true, header_at, load, load_end, header_entry)) = addresses() else {
        return Err("the image's multiboot header does not say where it is loaded".to_owned());
    };
    // The address of the image's first byte: as far before the header as it is in the image.
    let begins = u64::from(header_at).checked_sub(at as u64);
    let is_whole = load_end == 0 || Some(u64::from(load_end)) == base.checked_add(image.len() as u64);
    if begins != Some(base) || u64::from(load) != base || !is_whole || u64::from(header_entry) != entry {
        return Err(format!(
            "the image's multiboot header does not give {base:x} as the load address and {entry:x} as the entry point"
        ));
    }
    Ok(())
}

fn is_header(bytes: &[u8], at: usize) -> bool {
    let [magic, flags, checksum] = [0, 4, 8].map(|field| word(bytes, at + field));
    let sum = || Some(magic?.wrapping_add(flags?).wrapping_add(checksum?));
    magic == Some(MAGIC) && sum() == Some(0)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample::{BASE, bootable};

    #[test]
    fn a_header_must_say_the_same() {
        let (image, entry) = bootable(&[0xf4]);
        assert_eq!(check(&image, BASE, entry), Ok(()));
        assert!(check(&image, BASE + 4, entry).unwrap_err().contains("100004 as the load address"));
        assert!(check(&image, BASE, entry + 1).is_err());
        let mut longer = image.clone();
        longer.push(0);
        assert_eq!(check(&longer, BASE, entry), Ok(()), "no end is given: it is the image's");
        let mut without = image.clone();
        without[6] = 0;
        without[8..12].copy_from_slice(&MAGIC.wrapping_neg().to_le_bytes());
        assert!(check(&without, BASE, entry).unwrap_err().ends_with("does not say where it is loaded"));
        let mut far = vec![0x90; SEARCHED - 28];
        far.extend(&image);
        assert!(check(&far, BASE, entry).is_err(), "its last words lie outside");
        assert!(check(&[], BASE, entry).unwrap_err().contains("no multiboot header"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(
            bytes in proptest::collection::vec(any::<u8>(), 0..100),
            cut in 0usize..40,
            base: u64,
            entry: u64,
        ) {
            prop_assert!(check(&bytes, base, entry).is_err());
            let (image, _) = bootable(&bytes);
            prop_assert!(check(&image[..cut.min(31)], BASE, entry).is_err());
            prop_assert!(base == BASE || check(&image, base, entry).is_err());
        }
    }
}
