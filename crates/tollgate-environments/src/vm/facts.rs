//! Facts of a running guest that only the host knows.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tollgate_model::Fact;

use crate::error::plainly;

/// Time in ns for which KVM polls before it puts a halted processor to sleep (Documentation/virt/kvm/halt-polling.rst).
const HALT_POLL: &str = "/sys/module/kvm/parameters/halt_poll_ns";
/// KVM's counters of each guest, in a directory `PID-DESCRIPTOR` (virt/kvm/kvm_main.c, `kvm_create_vm_debugfs`).
const COUNTERS: &str = "/sys/kernel/debug/kvm";
/// The counters that are read: all exits, and those of HLT.
const EXITS: [(&str, &str); 2] = [("run.vm.exits", "exits"), ("run.vm.halt_exits", "halt_exits")];

/// Facts of KVM, and of the guest that this monitor runs under it: where its processors are pinned, and its exits so far.
pub(super) fn of_kvm(monitor: i32, places: &[Option<usize>]) -> Vec<(String, Fact)> {
    let pinned = Fact::known(pinned(places), "sched_setaffinity(2) of QEMU's threads");
    let mut facts = vec![("run.vm.pinned".to_owned(), pinned)];
    facts.extend(counted(monitor, Path::new(HALT_POLL), Path::new(COUNTERS)));
    facts
}

/// Formats `0 on 0, 1 on 1`.
fn pinned(places: &[Option<usize>]) -> String {
    let place = |(cpu, place): (usize, &Option<usize>)| match place {
        Some(place) => format!("{cpu} on {place}"),
        None => format!("{cpu} on any"),
    };
    places.iter().enumerate().map(place).collect::<Vec<_>>().join(", ")
}

fn counted(monitor: i32, halt_poll: &Path, counters: &Path) -> Vec<(String, Fact)> {
    let directory = directory_of(monitor, counters);
    let mut facts = vec![("run.vm.halt_poll".to_owned(), number(Ok(halt_poll.to_owned())))];
    for (name, counter) in EXITS {
        let file = match &directory {
            Ok(directory) => Ok(directory.join(counter)),
            Err(error) => Err((counters, io::Error::from(error.kind()))),
        };
        facts.push((name.to_owned(), number(file)));
    }
    facts
}

fn directory_of(monitor: i32, counters: &Path) -> io::Result<PathBuf> {
    let beginning = format!("{monitor}-");
    let is_own = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(&beginning);
    let found = fs::read_dir(counters)?.flatten().find(is_own);
    found.map(|entry| entry.path()).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The number in a file, or why there is none.
fn number(file: Result<PathBuf, (&Path, io::Error)>) -> Fact {
    let why = |file: &Path, error: &io::Error| {
        let why = format!("{}: {}", file.display(), plainly(io::Error::from(error.kind())));
        match error.kind() {
            io::ErrorKind::NotFound => Fact::absent(why),
            io::ErrorKind::PermissionDenied => Fact::refused(why),
            _ => Fact::unreadable(why),
        }
    };
    let file = match file {
        Ok(file) => file,
        Err((place, error)) => return why(place, &error),
    };
    match fs::read_to_string(&file) {
        Err(error) => why(&file, &error),
        Ok(text) => match text.trim().parse::<i64>() {
            Ok(number) => Fact::known(number, file.display().to_string()),
            Err(_) => Fact::unreadable(format!("{}: it is not a number", file.display())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_are_those_of_the_guest_s_own_monitor() {
        let directory = tempfile::tempdir().unwrap();
        let halt_poll = directory.path().join("halt_poll_ns");
        fs::write(&halt_poll, "200000\n").unwrap();
        for (guest, exits) in [("12-9", "1"), ("123-9", "700\n"), ("1234-9", "2")] {
            fs::create_dir(directory.path().join(guest)).unwrap();
            fs::write(directory.path().join(guest).join("exits"), exits).unwrap();
        }
        let facts = counted(123, &halt_poll, directory.path());
        let values: Vec<_> =
            facts.iter().map(|(name, fact)| (name.as_str(), fact.value().cloned())).collect();
        assert_eq!(
            values,
            [
                ("run.vm.halt_poll", Some(200_000_i64.into())),
                ("run.vm.exits", Some(700_i64.into())),
                ("run.vm.halt_exits", None)
            ]
        );
    }

    #[test]
    fn each_processor_has_its_place() {
        assert_eq!(pinned(&[Some(0), Some(1), None]), "0 on 0, 1 on 1, 2 on any");
    }

    #[test]
    fn a_counter_that_cannot_be_read_says_why() {
        let nowhere = Path::new("/nowhere/at/all");
        for (name, fact) in counted(1, nowhere, nowhere) {
            assert!(matches!(&fact, Fact::Unknown { .. }), "{name}: {fact:?}");
            assert!(format!("{fact:?}").contains("/nowhere/at/all"), "{name}: {fact:?}");
        }
    }
}
