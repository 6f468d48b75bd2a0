//! The configuration of a machine's kernel: which files are tried, and the answer of each.

#![allow(clippy::unwrap_used)] // A fixture that cannot be built is a failed test.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tollgate_inspect::{Machine, running_config};
use tollgate_model::Unknown;

const CONFIG: &[u8] = b"CONFIG_64BIT=y\nCONFIG_HZ=250\n";
const OTHER: &[u8] = b"CONFIG_64BIT=y\nCONFIG_HZ=1000\n";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn tree(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    tree
}

#[test]
fn the_running_kernel_is_asked_first_and_files_of_its_release_next() {
    let packed = gzip(CONFIG);
    let release: (&str, &[u8]) = ("proc/sys/kernel/osrelease", b"6.1.99\n");
    let cases: [(&str, &[u8]); 2] = [("proc/config.gz", &packed), ("boot/config-6.1.99", CONFIG)];
    for (path, content) in cases {
        let tree = tree(&[release, ("boot/config-5.0", OTHER), (path, content)]);
        let found = running_config(&Machine::captured(tree.path())).unwrap();
        assert_eq!(found.path, format!("/{path}"));
        assert_eq!(found.reading.configuration, tollgate_kconfig::parse(CONFIG).unwrap());
        assert_eq!(found.command_line, None);
    }
}

#[test]
fn every_file_that_was_tried_has_its_answer() {
    let tree =
        tree(&[("proc/config.gz", b"\x1f\x8b\x08 no gzip"), ("proc/sys/kernel/osrelease", b"../../x\n")]);
    let tried = running_config(&Machine::captured(tree.path())).unwrap_err();
    assert!(matches!(&tried[0].why, Unknown::Unreadable(why) if why.contains("gzip")), "{tried:?}");
    assert!(tried[1..].iter().all(|it| matches!(it.why, Unknown::Unreadable(_))), "{tried:?}");
    let empty = tempfile::tempdir().unwrap();
    let tried = running_config(&Machine::captured(empty.path())).unwrap_err();
    assert!(tried.len() == 5 && tried.iter().all(|it| matches!(it.why, Unknown::Absent(_))), "{tried:?}");
}
