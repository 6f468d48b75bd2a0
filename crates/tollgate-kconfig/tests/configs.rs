//! Configurations as text, compressed, damaged, and missing.

#![allow(clippy::unwrap_used)] // A fixture that cannot be built is a failed test.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::write::GzEncoder;
use proptest::prelude::*;
use tollgate_kconfig::{ConfigError, Counts, Reading, Value, compare, open, overridden, read};

const SMALL: &[u8] = include_bytes!("configs/small.config");
const OTHER: &[u8] = include_bytes!("configs/other.config");
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn small() -> Reading {
    read(SMALL).unwrap()
}

/// The published counts follow this rule: lines that end in `=y` and in `=m`.
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
    assert!(reading.is_compressed && !small().is_compressed);
    assert_eq!(reading.configuration, small().configuration);
}

#[test]
fn what_is_no_text_is_named_with_the_way_on() {
    let lzo = read(b"\x89LZO\0\r\n\x1a\n rest".as_slice()).unwrap_err();
    assert_eq!(
        lzo.to_string(),
        "is compressed by lzop, not text: `lzop -dc` of it writes a configuration that can be read"
    );
    let mut boot_sector = vec![0; 1024];
    boot_sector[0x1fe..0x200].copy_from_slice(b"\x55\xaa");
    let unified = [b"MZ\x78\0".as_slice(), &[0; 0x300], b"\nCONFIG_A=y\nCONFIG_B=y\n"].concat();
    for image in [b"\x7fELF\x02".to_vec(), boot_sector, unified] {
        let sentence = "is a kernel image or another program, not text: `scripts/extract-ikconfig` of it writes a \
                        configuration that can be read";
        assert_eq!(read(image.as_slice()).unwrap_err().to_string(), sentence);
        // Some packages compress the module `configs`.
        assert_eq!(read(gzip(&image).as_slice()).unwrap_err().to_string(), sentence);
    }
}

#[test]
fn what_was_cut_short_is_damaged() {
    let text = gzip(SMALL);
    for length in [text.len() - 20, text.len() / 2, 4] {
        assert_eq!(read(&text[..length]), Err(ConfigError::Damaged("it ends early".to_owned())), "{length}");
    }
}

#[test]
fn bombs_end_and_nothing_is_unpacked_twice() {
    assert!(matches!(read(gzip(&gzip(SMALL)).as_slice()), Err(ConfigError::NoConfiguration { .. })));
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
    fn any_bytes_are_taken(bytes in any::<Vec<u8>>(), at in any::<prop::sample::Index>(), byte: u8) {
        let _ = read(bytes.as_slice());
        let _ = read([b"\x1f\x8b\x08", bytes.as_slice()].concat().as_slice());
        let mut packed = gzip(SMALL);
        let at = at.index(packed.len());
        packed[at] = byte;
        let _ = read(packed.as_slice());
    }
}
