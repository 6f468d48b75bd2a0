//! Waits for the disk, and the file that was waited for.

use tollgate_arch::architecture::{Architecture, HERE};

use super::harness::{run_traced, run_traced_c};
use super::truths::{command, sums_hold};
use crate::request::Request;

/// A directory that may be on a disk: that of the sources, if this user may write there.
#[expect(clippy::disallowed_methods, reason = "a test's own files")]
fn disk() -> std::path::PathBuf {
    let sources = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    if tempfile::tempfile_in(&sources).is_ok() { sources } else { std::env::temp_dir() }
}

#[test]
fn a_cold_file_shows_disk() {
    let file = tempfile::NamedTempFile::new_in(disk()).unwrap();
    std::fs::write(file.path(), vec![7u8; 32 << 20]).unwrap();
    file.as_file().sync_all().unwrap();
    rustix::fs::fadvise(file.as_file(), 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let Some(outcome) = run_traced(command(&["/bin/cat", file.path().to_str().unwrap()])) else { return };
    sums_hold(&outcome);
    let read = outcome
        .collected
        .calls
        .iter()
        .find(|call| matches!(&*call.name, "read" | "copy_file_range"))
        .unwrap();
    if read.parts.disk_ns == 0 {
        println!("skipped: this file system does not read from a disk");
        return;
    }
    assert!(read.parts.disk_ns > read.parts.sleep_ns, "{read:?}");
}

#[test]
fn files_are_counted_by_path() {
    let directory = tempfile::tempdir_in(disk()).unwrap();
    let source = r#"
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <stdio.h>
        #include <string.h>
        #include <sys/stat.h>
        #include <unistd.h>
        int main(int argc, char **argv) {
            struct stat s; char b[100]; int ends[2];
            chdir(argv[1]);
            mkdir("inner", 0700);
            int fd = open("inner/first", O_CREAT | O_RDWR, 0600);
            write(fd, b, 100); write(fd, b, 50); fsync(fd); lseek(fd, 0, 0); fstat(fd, &s);
            read(fd, b, 30); close(fd);
            open("inner/none", O_RDONLY); open("/no/such/file", O_RDONLY);
            stat("inner/first", &s); access("inner/./first", R_OK);
            rename("inner/first", "inner/second");
            int at = open("inner", O_RDONLY | O_DIRECTORY);
            fd = openat(at, "second", O_RDONLY);
            read(fd, b, 20); close(fd);
            fstatat(at, "second", &s, 0);
            unlinkat(at, "second", 0);
            pipe(ends); write(ends[1], b, 10); read(ends[0], b, 10);
            close(99);
            return 0;
        }
    "#;
    let root = directory.path().canonicalize().unwrap();
    let with_files = |request: &mut Request| request.files = true;
    let Some(outcome) = run_traced_c(source, &[root.to_str().unwrap()], with_files) else { return };
    sums_hold(&outcome);
    assert_eq!(outcome.collected.missed, []);
    let found = |path: &str| {
        let file = outcome.collected.files.iter().find(|file| file.path == path);
        let file = file.unwrap_or_else(|| panic!("{path}: {:#?}", outcome.collected.files));
        let mut all: Vec<_> =
            file.operations.iter().map(|o| (&*o.operation, o.count, o.errors, o.bytes)).collect();
        all.sort_unstable();
        all
    };
    let path = |name: &str| format!("{}/{name}", root.display());
    // arm64 has these calls with a directory's descriptor alone.
    let [access, rename, mkdir] = match HERE {
        Architecture::X86_64 => ["access", "rename", "mkdir"],
        Architecture::Arm64 => ["faccessat", "renameat", "mkdirat"],
    };
    let mut first = [
        (access, 1, 0, 0),
        ("close", 1, 0, 0),
        ("open", 1, 0, 0),
        ("read", 1, 0, 30),
        (rename, 1, 0, 0),
        ("stat", 2, 0, 0),
        ("sync", 1, 0, 0),
        ("write", 2, 0, 150),
    ];
    first.sort_unstable();
    assert_eq!(found(&path("inner/first")), first);
    assert_eq!(
        found(&path("inner/second")),
        [("close", 1, 0, 0), ("open", 1, 0, 0), ("read", 1, 0, 20), ("stat", 1, 0, 0), ("unlink", 1, 0, 0)]
    );
    assert_eq!(found(&path("inner")), [(mkdir, 1, 0, 0), ("open", 1, 0, 0)]);
    assert_eq!(found(&path("inner/none")), [("open", 1, 1, 0)]);
    assert_eq!(found("/no/such/file"), [("open", 1, 1, 0)]);
    assert_eq!(found("pipe"), [("read", 1, 0, 10), ("write", 1, 0, 10)]);
    assert!(found("/etc/ld.so.cache").contains(&("open", 1, 0, 0)));
}

#[test]
fn pages_of_a_cold_mapped_file_are_waited_for() {
    let directory = tempfile::tempdir_in(disk()).unwrap();
    let source = r#"
        #include <fcntl.h>
        #include <sys/mman.h>
        int main(int argc, char **argv) {
            volatile char *p = mmap(0, 4 << 20, PROT_READ, MAP_PRIVATE, open(argv[1], O_RDONLY), 0);
            int sum = 0;
            madvise((void *)p, 4 << 20, MADV_RANDOM);
            for (int at = 0; at < 4 << 20; at += 65536) sum += p[at];
            return sum == 0;
        }
    "#;
    let path = directory.path().canonicalize().unwrap().join("cold");
    std::fs::write(&path, vec![7u8; 4 << 20]).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let with_files = |request: &mut Request| request.files = true;
    let Some(outcome) = run_traced_c(source, &[path.to_str().unwrap()], with_files) else { return };
    sums_hold(&outcome);
    if outcome.collected.outside.unwrap().disk_ns == 0 || !outcome.collected.notes.is_empty() {
        println!("skipped: {:?}, or this file system does not read from a disk", outcome.collected.notes);
        return;
    }
    let cold = outcome.collected.files.iter().find(|file| Some(&*file.path) == path.to_str()).unwrap();
    let fault = cold.operations.iter().find(|operation| operation.operation == "fault").unwrap();
    assert!(fault.count >= 64 && fault.parts.disk_ns > 0, "{fault:?}");
    assert!(fault.parts.disk_ns <= outcome.collected.outside.unwrap().disk_ns);
}

/// Repeated calls are added up outside of the maps, in places that other calls displace them from.
#[test]
fn calls_on_many_files_in_turn_are_counted_by_file_and_by_process() {
    let directory = tempfile::tempdir().unwrap();
    let source = r#"
        #include <fcntl.h>
        #include <stdio.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(int argc, char **argv) {
            char b[64];
            int f[20];
            chdir(argv[1]);
            for (int n = 0; n < 20; n++) {
                sprintf(b, "file%d", n);
                f[n] = open(b, O_CREAT | O_RDWR, 0600);
                write(f[n], b, 64);
            }
            if (!fork()) { for (int k = 0; k < 30; k++) pread(f[k % 3], b, 9, 0); _exit(0); }
            for (int k = 0; k < 50; k++) for (int n = 0; n < 20; n++) { pread(f[n], b, n + 1, 0); pwrite(f[n], b, 1, 0); }
            pwrite(f[0], b, 1, -1);
            wait(0);
            return 0;
        }
    "#;
    let root = directory.path().canonicalize().unwrap();
    let with_all = |request: &mut Request| (request.files, request.tree) = (true, true);
    let Some(outcome) = run_traced_c(source, &[root.to_str().unwrap()], with_all) else { return };
    sums_hold(&outcome);
    assert_eq!(outcome.collected.missed, []);
    for n in 0..20u64 {
        let path = format!("{}/file{n}", root.display());
        let file = outcome.collected.files.iter().find(|file| file.path == path).unwrap();
        let of = |name: &str| file.operations.iter().find(|operation| operation.operation == name).unwrap();
        let by_child = if n < 3 { 10 } else { 0 };
        let read = of("read");
        assert_eq!((read.count, read.bytes), (50 + by_child, 50 * (n + 1) + 9 * by_child), "{n}");
        let (write, failed) = (of("write"), u64::from(n == 0));
        assert_eq!((write.count, write.errors, write.bytes), (51 + failed, failed, 64 + 50), "{n}");
    }
    let tree = &outcome.collected.tree;
    let reads = |process: usize| tree[process].calls.iter().find(|call| call.name == "pread64").unwrap();
    // So the dynamic loader of x86-64 alone reads headers of the C library.
    let of_loader = if HERE == Architecture::X86_64 { 2 } else { 0 };
    assert_eq!((reads(0).count - reads(1).count, reads(1).count), (1000 - 30 + of_loader, 30));
    for process in tree {
        for call in &process.calls {
            assert!(call.max_ns <= call.total_ns && call.count >= call.errors, "{call:?}");
        }
    }
}
