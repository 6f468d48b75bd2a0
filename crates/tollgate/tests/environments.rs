//! The program in other environments: an empty root, another user, a strict seccomp profile, gVisor. In each a run ends, and
//! every row has a median or a reason.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

mod common;

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::sync::{Mutex, PoisonError};

use common::{is_root, program, readable_copy};
use serde_json::Value;
use tollgate_arch::abi::AUDIT_ARCH;
use tollgate_os::calls::number;

const RUN: [&str; 9] =
    ["run", "entry", "traps", "files", "scaling", "--processes=1", "--format", "json", "--quiet"];

#[test]
fn in_an_empty_root() {
    if !is_root() {
        return println!("skipped: only root may change the root directory");
    }
    let temporary = tempfile::tempdir().expect("a directory");
    fs::copy(program(), temporary.path().join("tollgate")).expect("a copy of the program");
    let inside = temporary.path().to_owned();
    let (_, status) = measured(|| {
        let (mut command, inside) = (Command::new("/tollgate"), inside.clone());
        command.args(RUN).env_clear();
        unsafe_pre_exec(&mut command, move || {
            std::os::unix::fs::chroot(&inside)?;
            std::env::set_current_dir("/")
        });
        command
    });
    assert!(status.success(), "{status}");
}

#[test]
fn as_another_user() {
    if !is_root() {
        return println!("skipped: only root may become another user");
    }
    let temporary = common::public_directory();
    let program = readable_copy(temporary.path());
    measured(|| {
        let mut command = Command::new(&program);
        command.args(RUN).env("HOME", "/nonexistent").uid(65534).gid(65534).current_dir("/");
        command
    });
}

#[test]
fn under_a_strict_seccomp_profile() {
    let temporary = tempfile::tempdir().expect("a directory");
    let (document, status) = measured(|| {
        let (mut command, filter) = (Command::new(program()), strict_filter());
        command.args(RUN).env("XDG_DATA_HOME", temporary.path());
        unsafe_pre_exec(&mut command, move || install(&filter));
        command
    });
    assert!(status.success(), "{status}");
    // The filter kills a process that makes a 32-bit call.
    for benchmark in ["entry/io-uring-nop", "entry/int80"] {
        assert_eq!(common::row(&document, benchmark)["status"], "skipped");
    }
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn in_gvisor() {
    let Some(runsc) = std::env::var_os("TOLLGATE_RUNSC") else {
        return println!("skipped: TOLLGATE_RUNSC does not name a runsc");
    };
    let (document, _) = measured(|| {
        let mut command = Command::new(&runsc);
        command.args(["--network=none", "--ignore-cgroups", "do"]).arg(program()).args(RUN);
        command
    });
    assert_eq!(document["environment"], "sandbox");
    // gVisor's CLOCK_MONOTONIC_RAW takes microseconds; RDTSCP takes as long as outside.
    let outside = common::Home::new().json(["run", "entry/call", "--time=10", "--format=json", "--quiet"]);
    let is_trapped = |document: &Value| document["facts"]["run.clock"].to_string().contains("trapped");
    assert_eq!(is_trapped(&document), is_trapped(&outside), "{}", document["facts"]["run.clock"]);
    // Values that a guest does not count are not measurements.
    for name in ["load.before", "steal.before", "switches.before"] {
        assert_eq!(document["facts"][name]["status"], "unknown", "{name}");
    }
    // It accepts an affinity and ignores it. With few processors two threads may not run at once.
    let affinity = &document["facts"]["run.affinity"];
    if affinity["value"] == "binds" {
        return println!("skipped: the sandbox ran two threads on one processor: {affinity}");
    }
    assert_eq!(affinity["value"], "does not bind", "{affinity}");
    let mut command = Command::new(&runsc);
    command.args(["--network=none", "--ignore-cgroups", "do"]).arg(program()).args(PINNED);
    let output = command.output().expect("the program starts");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    if document["facts"]["run.affinity"]["value"] == "binds" {
        return println!("skipped: the sandbox ran two threads on one processor");
    }
    let rows = document["measurements"].as_array().expect("measurements").clone();
    let refused = rows.iter().filter(|row| row["status"] == "refused").count();
    assert!(refused > 20, "what needs one processor is refused: {refused}");
    let on_one = |row: &&Value| {
        let params = &row["params"];
        row["benchmark"] == "processes/ring"
            || params["placement"] == "same-cpu"
            || params["cpus"] == "one"
            || (row["benchmark"] == "locks/uncontended" && params["by"] == "lamport-up")
    };
    let on_one: Vec<&Value> = rows.iter().filter(on_one).collect();
    assert!(on_one.len() > 20, "only {} rows", on_one.len());
    for row in on_one {
        let why = row["why"].as_str().unwrap_or_default();
        assert!(row["status"] != "measured", "{row}");
        assert!(row["status"] != "refused" || why.contains("does not bind"), "{row}");
    }
    let uncontended = rows.iter().find(|row| row["benchmark"] == "locks/uncontended").expect("a row");
    assert_ne!(uncontended["status"], "refused", "a lock that needs no processor of its own");
}

/// Cases that need one processor, and others.
const PINNED: [&str; 9] = [
    "run",
    "locks/handover",
    "locks/uncontended",
    "processes/ring",
    "processes/switch",
    "entry/syscall",
    "--processes=1",
    "--format=json",
    "--quiet",
];

/// Two runs at a time would be each other's noise.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs it. Returns the document, in which each row has a median or a reason, and the exit status.
fn measured(mut command: impl FnMut() -> Command) -> (Value, ExitStatus) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let output = command().output().expect("the program starts");
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let rows = document["measurements"].as_array().expect("measurements");
    assert!(rows.len() > 100, "only {} rows", rows.len());
    rows.iter().for_each(common::expect_answer);
    assert_eq!(common::row(&document, "entry/syscall")["status"], "measured");
    (document, output.status)
}

fn unsafe_pre_exec(
    command: &mut Command,
    change: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) -> &mut Command {
    // SAFETY: what the tests do here are single system calls on memory that was made before.
    unsafe { command.pre_exec(change) }
}

/// The calls that a strict container profile permits: those of ordinary programs. Everything else is
/// EPERM; 32-bit calls kill the process.
fn strict_filter() -> Vec<libc::sock_filter> {
    // An architecture has some of them only in their later forms: openat(2) for open(2).
    const ALLOWED: &str = "
        read write open openat close stat fstat lstat newfstatat statx poll ppoll lseek mmap mprotect
        munmap mremap madvise brk rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack ioctl pread64
        pwrite64 readv writev access faccessat pipe pipe2 dup dup2 dup3 nanosleep clock_nanosleep
        getpid gettid getppid clone fork vfork execve execveat exit exit_group wait4 waitid kill tgkill
        uname fcntl fsync fdatasync ftruncate getcwd chdir rename renameat renameat2 mkdir mkdirat
        unlink unlinkat link linkat readlink readlinkat getdents64 getrusage sysinfo getuid getgid
        geteuid getegid setpgid prctl arch_prctl futex sched_getaffinity sched_yield set_tid_address
        set_robust_list rseq clock_gettime clock_getres getrandom memfd_create prlimit64 statfs fstatfs
        flock";
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let filter = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let mut program = vec![
        filter(LOAD, 0, 4),
        filter(EQUAL, 1, AUDIT_ARCH),
        filter(RETURN, 0, libc::SECCOMP_RET_KILL_PROCESS),
        filter(LOAD, 0, 0),
        // As in container profiles, so that a C library falls back to clone.
        libc::sock_filter { code: EQUAL, jt: 0, jf: 1, k: libc::SYS_clone3 as u32 },
        filter(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
    ];
    let allowed: Vec<u32> = ALLOWED.split_whitespace().filter_map(|name| number(name)?.long).collect();
    assert!(allowed.len() > 60, "{allowed:?}");
    for (index, number) in allowed.iter().enumerate() {
        // A jump to the last instruction, over the rest of the list and the refusal.
        program.push(filter(EQUAL, (allowed.len() - index) as u8, *number));
    }
    program.push(filter(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    program.push(filter(RETURN, 0, libc::SECCOMP_RET_ALLOW));
    program
}

fn install(filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: plain numbers, and a program that outlives the call.
    let outcome = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program)
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
