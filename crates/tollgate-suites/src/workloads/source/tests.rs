#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

use std::{collections::BTreeMap, path::Path, process::Command};

use super::*;
use crate::testing::Directory;

const SMALL_FIRST: u64 = 13513211136039852319;
const SMALL_SECOND: u64 = 14264193821737417096;

fn files(size: Size, version: Version) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    truth_of(size, version, |file| {
        assert!(files.insert(file.path.clone(), file.text).is_none(), "{} occurs twice", file.path);
    });
    files
}

fn truth_of(size: Size, version: Version, mut take: impl FnMut(File)) -> Truth {
    let made: Result<Truth, std::convert::Infallible> = make(size, version, |file| {
        take(file);
        Ok(())
    });
    made.unwrap_or_else(|never| match never {})
}

/// Runs are comparable only with the same tree: a new digest is a new workload, and belongs in the change log.
#[test]
fn the_tree_is_the_same_wherever_it_is_made() {
    let digest = |size, version| truth_of(size, version, |_| ()).digest.sum;
    assert_eq!(digest(Size::Small, Version::First), SMALL_FIRST);
    assert_eq!(digest(Size::Small, Version::Second), SMALL_SECOND);
}

#[test]
fn it_is_as_large_as_is_said() {
    for (size, lines) in [(Size::Small, 60_000.0), (Size::Large, 2_000_000.0)] {
        let truth = truth_of(size, Version::First, |file| {
            // The limit of an archive's header.
            assert!(file.path.len() < 100 && file.text.ends_with('\n'), "{}", file.path);
        });
        assert!((truth.lines as f64 / lines - 1.0).abs() < 0.05, "{truth:?}");
        // Tree, repository with its objects, unpacked tree and archive, the history's stream; the built files.
        assert!(truth.bytes * 8 < size.bytes_at_most(), "{truth:?}");
    }
}

#[test]
fn its_versions_differ_in_a_share_of_several_directories() {
    let (first, second) = (files(Size::Small, Version::First), files(Size::Small, Version::Second));
    let names = |one: &BTreeMap<String, String>, other: &BTreeMap<String, String>| {
        one.keys().filter(|path| !other.contains_key(*path)).count()
    };
    let (removed, added) = (names(&first, &second), names(&second, &first));
    let changed: Vec<&String> = first
        .iter()
        .filter(|(path, text)| second.get(*path).is_some_and(|other| other != *text))
        .map(|(path, _)| path)
        .collect();
    assert!(removed > 0 && added > 0, "{removed} removed, {added} added");
    let share = changed.len() as f64 / first.len() as f64;
    assert!((0.1..0.6).contains(&share), "{} of {} changed", changed.len(), first.len());
    let directories: std::collections::BTreeSet<_> =
        changed.iter().map(|path| Path::new(path).parent()).collect();
    assert!(directories.len() > 4, "{directories:?}");
    // Changed files are mostly the same as before.
    let (same, all) = changed.iter().fold((0, 0), |(same, all), path| {
        let lines: std::collections::HashSet<&str> = first[*path].lines().collect();
        let new: Vec<&str> = second[*path].lines().collect();
        (same + new.iter().filter(|line| lines.contains(*line)).count(), all + new.len())
    });
    assert!(same * 2 > all && same < all, "{same} of {all} lines");
}

struct Written {
    directory: Directory,
    truth: Truth,
}

impl Written {
    fn new(version: Version) -> Self {
        let directory = Directory::new();
        let truth: std::io::Result<Truth> = make(Size::Small, version, |file| {
            let path = directory.0.join(&file.path);
            std::fs::create_dir_all(path.parent().expect("a directory"))?;
            std::fs::write(path, file.text)
        });
        Self { directory, truth: truth.expect("written") }
    }
}

#[test]
fn the_tree_builds_without_warnings_and_prints_its_known_output() {
    for version in [Version::First, Version::Second] {
        let written = Written::new(version);
        let make = Command::new("make")
            .args(["-s", "-j2", "CFLAGS=-O0 -Wall -Wextra -Werror"])
            .current_dir(&written.directory.0)
            .output();
        let made = match make {
            Ok(made) => made,
            Err(why) => return println!("skipped: make: {why}"),
        };
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        if said.contains("cc: No such file") || said.contains("cc: not found") {
            return println!("skipped: there is no cc");
        }
        assert!(made.status.success() && said.is_empty(), "{said}");
        let printed = Command::new(written.directory.0.join(PROGRAM)).output().expect("it was built");
        assert_eq!(String::from_utf8_lossy(&printed.stdout), format!("{:08x}\n", written.truth.printed));
    }
}

#[test]
fn a_tree_on_disk_has_the_known_digest_until_it_changes() {
    let written = Written::new(Version::Second);
    let found = || Digest::of_tree(&written.directory.0).expect("readable");
    assert_eq!(found(), written.truth.digest);
    let git = written.directory.0.join(".git");
    std::fs::create_dir(&git).expect("made");
    std::fs::write(git.join("HEAD"), "x").expect("written");
    assert_eq!(found(), written.truth.digest, "git's files are no part of it");
    let main = written.directory.0.join("src/main.c");
    let text = std::fs::read_to_string(&main).expect("there");
    std::fs::write(&main, text.replace("sum", "sun")).expect("written");
    assert_ne!(found(), written.truth.digest);
    std::fs::remove_file(&main).expect("removed");
    std::os::unix::fs::symlink("/etc/passwd", &main).expect("made");
    assert_ne!(found(), written.truth.digest);
}
