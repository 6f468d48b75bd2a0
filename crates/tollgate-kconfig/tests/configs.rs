//! Configurations as they come: as text, packed, within kernels, within boot images, damaged, and not at all.

#![allow(clippy::unwrap_used)] // A fixture that cannot be built is a failed test.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use flate2::write::GzEncoder;
use proptest::prelude::*;
use tollgate_kconfig::{
    Compression, ConfigError, Counts, Reading, Source, Value, compare, open, overridden, read,
};

const SMALL: &[u8] = include_bytes!("configs/small.config");
const OTHER: &[u8] = include_bytes!("configs/other.config");
const PACKED: [(&[u8], Compression); 5] = [
    (include_bytes!("configs/kernel.gz"), Compression::Gzip),
    (include_bytes!("configs/kernel.xz"), Compression::Xz),
    (include_bytes!("configs/kernel.lzma"), Compression::Lzma),
    (include_bytes!("configs/kernel.lz4"), Compression::Lz4),
    (include_bytes!("configs/kernel.zst"), Compression::Zstd),
];
const BZIP2: &[u8] = include_bytes!("configs/kernel.bz2");

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The kernel that the fixtures pack, as it is.
fn vmlinux() -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(PACKED[0].0).read_to_end(&mut bytes).unwrap();
    bytes
}

/// A boot image around a packed kernel (Documentation/arch/x86/boot.rst), with the unpacked size at the payload's
/// end as scripts/Makefile.lib puts it there.
fn boot_image(packed: &[u8]) -> Vec<u8> {
    const SETUP_SECTS: u8 = 3;
    const BEFORE: u32 = 716;
    let mut image = vec![0; (usize::from(SETUP_SECTS) + 1) * 512 + BEFORE as usize];
    image[..2].copy_from_slice(b"MZ");
    image[0x1f1] = SETUP_SECTS;
    image[0x1fe..0x200].copy_from_slice(b"\x55\xaa");
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x206..0x208].copy_from_slice(&0x20f_u16.to_le_bytes());
    image[0x20e..0x210].copy_from_slice(&0x300_u16.to_le_bytes());
    let release = b"6.1.99-made-up (a@b) #1 SMP";
    image[0x500..0x500 + release.len()].copy_from_slice(release);
    image[0x248..0x24c].copy_from_slice(&BEFORE.to_le_bytes());
    image[0x24c..0x250].copy_from_slice(&(packed.len() as u32 + 4).to_le_bytes());
    image.extend(packed);
    image.extend((vmlinux().len() as u32).to_le_bytes());
    image.extend(b"what comes after the kernel");
    image
}

fn small() -> Reading {
    read(SMALL).unwrap()
}

/// The rule of the published counts: lines that end in `=y` and in `=m`.
#[test]
fn options_are_counted_as_grep_counts_lines() {
    let text = std::str::from_utf8(SMALL).unwrap();
    let lines = |end: &str| text.lines().filter(|line| line.ends_with(end)).count();
    let counts = Counts::of(&small().configuration);
    assert_eq!((counts.built_in, counts.modules), (lines("=y"), lines("=m")));
    assert_eq!(counts.off, lines(" is not set"));
    assert_eq!(counts, Counts { built_in: 13, modules: 3, off: 4, valued: 7 });
}

#[test]
fn values_are_what_the_text_says() {
    let configuration = small().configuration;
    assert_eq!(configuration.value("SCHED_SMT"), Some(&Value::Off));
    assert_eq!(configuration.value("NO_HZ_FULL"), None);
    assert_eq!(configuration.value("DEFAULT_HOSTNAME"), Some(&Value::Text("a=m".to_owned())));
    assert_eq!(configuration.compiler().as_deref(), Some("gcc (made up) 12.2.0 \"y\" =y"));
    assert_eq!(configuration.version.as_deref(), Some("6.1.99"));
    assert_eq!(configuration.architecture(), Some("x86"));
}

#[test]
fn packed_text_is_unpacked() {
    let reading = read(gzip(SMALL).as_slice()).unwrap();
    assert_eq!(
        (reading.source, reading.compressions.as_slice()),
        (Source::Compressed, &[Compression::Gzip][..])
    );
    assert_eq!(reading.configuration, small().configuration);
}

#[test]
fn a_kernel_has_its_configuration_in_it() {
    let reading = read(vmlinux().as_slice()).unwrap();
    assert_eq!((reading.source, reading.compressions.len()), (Source::Embedded, 0));
    assert_eq!(reading.configuration, small().configuration);
    for (packed, compression) in PACKED {
        let reading = read(packed).unwrap();
        assert_eq!((reading.source, reading.compressions), (Source::Embedded, vec![compression]));
        assert_eq!(reading.configuration, small().configuration, "{compression}");
    }
}

#[test]
fn a_boot_image_is_entered_by_its_header() {
    for (packed, compression) in PACKED {
        let reading = read(boot_image(packed).as_slice()).unwrap();
        assert_eq!((reading.source, reading.compressions), (Source::Embedded, vec![compression]));
        assert_eq!(reading.release.as_deref(), Some("6.1.99-made-up"));
        assert_eq!(reading.configuration, small().configuration, "{compression}");
    }
    assert_eq!(read(boot_image(&vmlinux()).as_slice()).unwrap().compressions, []);
}

#[test]
fn what_is_not_unpacked_is_named_with_the_way_on() {
    assert_eq!(read(BZIP2), Err(ConfigError::Compressed(Compression::Bzip2)));
    let error = read(boot_image(BZIP2).as_slice()).unwrap_err();
    assert_eq!(error, ConfigError::CompressedImage(Compression::Bzip2));
    assert_eq!(
        error.to_string(),
        "is a kernel image compressed with bzip2, which is not unpacked here: scripts/extract-vmlinux of the kernel's \
         source makes a vmlinux of it, which can be read"
    );
    let lzo = read(b"\x89LZO\0\r\n\x1a\n rest".as_slice()).unwrap_err();
    assert_eq!(lzo.to_string(), "is compressed with lzo, which is not unpacked here: `lzop -dc` does it");
}

#[test]
fn what_was_cut_short_is_damaged_and_says_where() {
    let image = boot_image(PACKED[1].0);
    assert!(matches!(read(&image[..0x230]), Err(ConfigError::Image(_))));
    assert!(matches!(read(&image[..0x700]), Err(ConfigError::Image(_))));
    for (packed, compression) in PACKED {
        let cut = &packed[..packed.len() / 2];
        match read(cut) {
            Err(ConfigError::Damaged(error, _)) => assert_eq!(error, compression),
            // The bytes unpacked until then may be a kernel without a configuration and its marks.
            Err(ConfigError::NotEmbedded { .. } | ConfigError::Unended(_)) => {
                panic!("{compression} hid the damage")
            }
            other => panic!("{compression}: {other:?}"),
        }
    }
    let text = gzip(SMALL);
    assert!(matches!(read(&text[..text.len() - 20]), Err(ConfigError::Damaged(Compression::Gzip, _))));
}

#[test]
fn a_kernel_without_one_says_so() {
    let bare: Vec<u8> = b"\x7fELF".iter().copied().chain(vec![0; 100_000]).collect();
    let image = read(boot_image(&gzip(&bare)).as_slice()).unwrap_err();
    assert_eq!(
        image.to_string(),
        "has no configuration in it (100004 bytes searched): this kernel was built without CONFIG_IKCONFIG=y; \
         a distribution ships its configuration as /boot/config-6.1.99-made-up"
    );
    assert_eq!(read(bare.as_slice()), Err(ConfigError::NotEmbedded { searched: 100_004, release: None }));
}

#[test]
fn a_unified_kernel_image_is_named_with_the_way_on() {
    let unified = [b"MZ\x78\0".as_slice(), &[0; 0x300], b"\nCONFIG_A=y\nCONFIG_B=y\n"].concat();
    let error = read(unified.as_slice()).unwrap_err();
    assert_eq!(error, ConfigError::PeFile);
    assert_eq!(
        error.to_string(),
        "is a PE file but no boot image of Linux; of a unified kernel image the section .linux can be read \
         (objcopy -O binary -j .linux FILE KERNEL)"
    );
}

#[test]
fn a_kernel_that_is_too_long_to_search_is_not_said_to_have_none() {
    let sparse = tempfile::NamedTempFile::new().unwrap();
    fs::write(sparse.path(), b"\x7fELF").unwrap();
    sparse.as_file().set_len((512 << 20) + 1).unwrap();
    let error = open(sparse.path()).unwrap_err();
    assert_eq!(error, ConfigError::NotSearched(512 << 20));
    assert_eq!(
        error.to_string(),
        "has no configuration in its first 512 MiB; what comes after them is not searched: the same kernel without its \
         debugging information is shorter (strip -d -o SHORTER FILE)"
    );
}

#[test]
fn a_header_that_leads_far_away_is_damage() {
    let mut image = boot_image(PACKED[0].0);
    image[0x248..0x24c].copy_from_slice(&(100_u32 << 20).to_le_bytes());
    assert!(matches!(read(image.as_slice()), Err(ConfigError::Image(_))));
}

#[test]
fn bombs_and_russian_dolls_end() {
    let doll = (0..6).fold(SMALL.to_vec(), |bytes, _| gzip(&bytes));
    assert_eq!(read(doll.as_slice()), Err(ConfigError::Nested(3)));
    let endless = std::io::repeat(b'#');
    assert_eq!(read(endless), Err(ConfigError::TooLong(8 << 20)));
    let bomb = gzip(&vec![b'\n'; 64 << 20]);
    assert_eq!(read(bomb.as_slice()), Err(ConfigError::TooLong(8 << 20)));
}

#[test]
fn two_versions_differ_in_what_was_changed_alone() {
    let other = read(OTHER).unwrap().configuration;
    let small = small().configuration;
    let names: Vec<&str> = compare(&[&small, &other]).iter().map(|it| it.name).collect();
    for same in
        ["MITIGATION_PAGE_TABLE_ISOLATION", "PAGE_TABLE_ISOLATION", "MITIGATION_SLS", "NR_CPUS", "SECCOMP"]
    {
        assert!(!names.contains(&same), "{same}: {names:?}");
    }
    for different in
        ["MITIGATION_RETPOLINE", "MITIGATION_MDS", "HZ", "PREEMPT_LAZY", "SCHED_SMT", "EXT4_FS", "KVM"]
    {
        assert!(names.contains(&different), "{different}: {names:?}");
    }
}

#[test]
fn a_command_line_overrides_options() {
    let changed = overridden("quiet mitigations=off nopti preempt=full transparent-hugepage=never -- psi=1");
    let overridden: Vec<(&str, &str)> = changed.iter().map(|it| (it.option, it.parameter.as_str())).collect();
    for expected in [
        ("CPU_MITIGATIONS", "mitigations=off"),
        ("MITIGATION_PAGE_TABLE_ISOLATION", "nopti"),
        ("PREEMPT_DYNAMIC", "preempt=full"),
        ("TRANSPARENT_HUGEPAGE", "transparent-hugepage=never"),
    ] {
        assert!(overridden.contains(&expected), "{expected:?}: {overridden:?}");
    }
    assert_eq!(overridden.len(), 4);
}

#[test]
fn what_is_no_file_is_refused_without_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(open(&pipe), Err(ConfigError::Empty));
    assert_eq!(open(directory.path()), Err(ConfigError::NoFile("directory")));
    assert_eq!(open(Path::new("/dev/zero")), Err(ConfigError::NoFile("device")));
    assert_eq!(open(&directory.path().join("none")), Err(ConfigError::Absent));
    let file = directory.path().join("utf16");
    fs::write(&file, b"\xff\xfeC\0O\0").unwrap();
    assert_eq!(open(&file), Err(ConfigError::Utf16));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_are_taken(bytes in any::<Vec<u8>>(), at in 0_usize..6) {
        let magics: [&[u8]; 6] =
            [b"\x1f\x8b\x08", b"\xfd7zXZ\0", b"\x5d\0\0", b"\x02\x21\x4c\x18", b"\x28\xb5\x2f\xfd", b"\x7fELF"];
        let _ = read([magics[at], &bytes].concat().as_slice());
        let _ = read(bytes.as_slice());
    }

    #[test]
    fn any_damage_is_taken(which in 0_usize..5, at in any::<prop::sample::Index>(), byte: u8, in_image: bool) {
        let mut bytes = PACKED[which].0.to_vec();
        if in_image {
            bytes = boot_image(&bytes);
        }
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = read(bytes.as_slice());
    }
}
