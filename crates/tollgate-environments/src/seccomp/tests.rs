#![allow(unsafe_code)] // The tests make calls that a filter refuses.

use tollgate_engine::{Architecture, HERE};
use tollgate_model::traced::Ended;
use tollgate_os::process::fork;

use super::*;

/// Result of a call under a filter: 0, or its error.
fn under(filter: &Filter, number: libc::c_long, arguments: [u64; 2]) -> i32 {
    let mut child = fork(|| {
        if filter.install().is_err() {
            return 200;
        }
        // SAFETY: the calls that the tests name take numbers or refuse a null pointer.
        match unsafe { libc::syscall(number, arguments[0], arguments[1], 0, 0, 0) } {
            -1 => std::io::Error::last_os_error().raw_os_error().unwrap_or(201),
            _ => 0,
        }
    })
    .unwrap();
    match child.wait().unwrap() {
        Ended::Exit(status) => status,
        Ended::Signal(signal) => -signal,
    }
}

#[test]
fn the_default_refuses_what_docker_lists_and_nothing_else() {
    let names: Vec<&str> = BLOCKED.split_whitespace().collect();
    assert_eq!(names.len(), 49);
    // Others do not have all of them.
    if HERE == Architecture::X86_64 {
        let is_short = |name: &&str| calls::number(name).expect(name).long.is_none();
        let short_only: Vec<&str> = names.into_iter().filter(is_short).collect();
        assert_eq!(short_only, ["stime", "umount", "vm86", "vm86old"]);
    }
    let filter = Filter::read(&Seccomp::Default).unwrap().unwrap();
    // If allowed, they would fail with another error: no such policy, no such id, a bad address.
    for (name, expected) in [
        ("get_mempolicy", libc::EPERM),
        ("unshare", libc::EPERM),
        ("userfaultfd", libc::EPERM),
        ("personality", libc::EPERM),
        ("getppid", 0),
        ("sched_yield", 0),
        ("statx", libc::EFAULT),
    ] {
        let number = calls::number(name).unwrap().long.unwrap();
        assert_eq!(under(&filter, number.into(), [u64::MAX, 0]), expected, "{name}");
    }
    assert!(Filter::read(&Seccomp::None).unwrap().is_none());
}

#[test]
fn a_profile_is_for_a_runtime_that_reads_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("profile.json");
    let named = |why: &str| format!("{}: podman cannot read it: {why}", file.display());
    assert_eq!(file_for("podman", &file).unwrap_err().to_string(), named("No such file or directory"));
    std::fs::write(&file, "{}").unwrap();
    assert_eq!(file_for("podman", &file).unwrap(), file);
    let why = "it takes no profile from a file; runtime=podman and runtime=docker do";
    assert_eq!(Filter::read(&Seccomp::File(file.clone())).unwrap_err().to_string(), why);
    assert_eq!(oci(&Seccomp::File(file)).unwrap_err().to_string(), why);
}
