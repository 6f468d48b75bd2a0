//! The handful of a kernel's build options that bear on where it is. Pure.

use std::io::Read;

use flate2::read::GzDecoder;

/// The most that a configuration may have, unpacked; real ones have 300 KiB.
const MOST: u64 = 4 << 20;

/// A kernel's options, as far as they are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// `CONFIG_RANDOMIZE_BASE`: the kernel can move itself.
    pub randomize_base: bool,
    /// `CONFIG_RANDOMIZE_MEMORY`: it can move its direct map and other areas.
    pub randomize_memory: bool,
    /// `CONFIG_RELOCATABLE`: it can run where it was not linked to.
    pub relocatable: bool,
    /// `CONFIG_HIBERNATION`.
    pub hibernation: bool,
    /// `CONFIG_PHYSICAL_START`.
    pub physical_start: Option<u64>,
    /// `CONFIG_PHYSICAL_ALIGN`.
    pub physical_align: Option<u64>,
}

/// The text of a configuration, compressed or not; nothing where it is neither.
pub(super) fn text(bytes: &[u8]) -> Option<String> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Some(String::from_utf8_lossy(bytes).into_owned());
    }
    let mut unpacked = Vec::new();
    GzDecoder::new(bytes).take(MOST).read_to_end(&mut unpacked).ok()?;
    Some(String::from_utf8_lossy(&unpacked).into_owned())
}

/// The options in a configuration; nothing where it is none.
pub(super) fn parse(text: &str) -> Option<Options> {
    let mut options = Options::default();
    let mut known = false;
    for line in text.lines() {
        let Some((name, value)) = line.strip_prefix("CONFIG_").and_then(|line| line.split_once('=')) else {
            known |= line.starts_with("# CONFIG_") && line.ends_with(" is not set");
            continue;
        };
        known = true;
        let yes = value == "y";
        match name {
            "RANDOMIZE_BASE" => options.randomize_base = yes,
            "RANDOMIZE_MEMORY" => options.randomize_memory = yes,
            "RELOCATABLE" => options.relocatable = yes,
            "HIBERNATION" => options.hibernation = yes,
            "PHYSICAL_START" => options.physical_start = hexadecimal(value),
            "PHYSICAL_ALIGN" => {
                options.physical_align = hexadecimal(value).filter(|align| align.is_power_of_two())
            }
            _ => {}
        }
    }
    known.then_some(options)
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

impl Options {
    /// Where the image is linked to, in physical memory: `LOAD_PHYSICAL_ADDR` in arch/x86/include/asm/page_types.h.
    pub fn load_physical(&self) -> Option<u64> {
        let (start, align) = (self.physical_start?, self.physical_align?);
        start.checked_next_multiple_of(align).filter(|&start| start < 1 << 30)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn options_of_a_configuration() {
        let text = "# CONFIG_HIBERNATION is not set\nCONFIG_RANDOMIZE_BASE=y\nCONFIG_PHYSICAL_START=0x1000000\n\
                    CONFIG_PHYSICAL_ALIGN=0x200000\nCONFIG_RELOCATABLE=m\n";
        let options = parse(text).unwrap();
        assert!(options.randomize_base && !options.hibernation && !options.relocatable);
        assert_eq!(options.load_physical(), Some(0x100_0000));
        assert_eq!(parse("nothing of the kind\n"), None);
        assert_eq!(parse("CONFIG_PHYSICAL_ALIGN=0x3\n").unwrap().physical_align, None);
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        let mut packed = packed.finish().unwrap();
        assert_eq!(super::text(&packed).as_deref(), Some(text));
        packed.truncate(20);
        assert_eq!(super::text(&packed), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(mut bytes in any::<Vec<u8>>(), line in "CONFIG_(PHYSICAL_(START|ALIGN)|HIBERNATION)=[0-9a-fxy]{0,20}") {
            let _ = text(&bytes).and_then(|text| parse(&text));
            bytes.splice(0..0, [0x1f, 0x8b, 8]);
            let _ = text(&bytes);
            let _ = parse(&line).and_then(|options| options.load_physical());
        }
    }
}
