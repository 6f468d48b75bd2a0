//! Programs of known behaviour for tests to trace.
//!
//! - `calls N`: calls getppid(2) N times. `calls32 N`: does so by `int $0x80`. `errors N`: N calls of close(2) fail.
//! - `threads N`: N threads call getppid(2) once. `forks N`: forks N processes one after the other. `forking N`: does so with
//!   processes that end at once. `exec`: a second thread executes `true`. `busy MS`: computes until it has had MS of a processor.
//! - `pipe MS`: reads from a writer that does so once the reader sleeps. `daemon SECONDS`: ends at once, but leaves a running process.
//! - `killed`: kills a child in a call, then itself. `read FILE`: drops a file from the page cache and reads it.
//! - `copy FILE`: copies it by copy_file_range(2) to a file next to it.
//! - `removed FILE`: creates a file, removes it and writes to it, then a child does.
//! - `ignored`: prints which signals are ignored and blocked.
//! - `count FILE`: counts signals until none has arrived for a while, and writes the numbers to FILE; creates FILE.ready first.
//! - `own-filter`: prints the result of getppid(2) under a filter of its own that answers `SECCOMP_RET_TRACE`.
//! - `on-order N`: for each byte of its input it sleeps 2 ms, calls getppid(2) N times in each of two threads and in a child, and
//!   writes a byte. `sleepers N`: N threads sleep 150 µs again and again.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tollgate_os::process::{self, Child};
use tollgate_os::shared::Shared;
use tollgate_os::signals::{self, Disposition};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = arguments.get(1).and_then(|number| number.parse().ok()).unwrap_or(1u64);
    match arguments.first().map_or("", String::as_str) {
        "calls" => (0..number).for_each(|_| getppid()),
        "calls32" => (0..number).for_each(|_| getppid_32()),
        "errors" => (0..number).for_each(|_| {
            // SAFETY: there is no such descriptor.
            unsafe { libc::close(-1) };
        }),
        "threads" => {
            let threads: Vec<_> = (0..number).map(|_| std::thread::spawn(getppid)).collect();
            threads.into_iter().for_each(|thread| drop(thread.join()));
        }
        "forks" => (0..number).for_each(|_| drop(fork(getppid).wait())),
        "exec" => exec_from_a_thread(),
        "busy" => busy(number),
        "pipe" => pipe(number),
        "daemon" => {
            fork(|| {
                let _ = rustix::process::setsid();
                fork(|| std::thread::sleep(Duration::from_secs(number))).leave();
            })
            .leave();
        }
        "killed" => killed(),
        "read" => read(arguments.get(1).map_or("", String::as_str)),
        "copy" => copy(arguments.get(1).map_or("", String::as_str)),
        "removed" => removed(arguments.get(1).map_or("", String::as_str)),
        "count" => count(arguments.get(1).map_or("", String::as_str)),
        "own-filter" => own_filter(),
        "sleepers" => sleepers(number),
        "forking" => (0..number).for_each(|_| drop(fork(|| ()).wait())),
        "on-order" => on_order(number),
        "ignored" => {
            let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
            for line in status.lines().filter(|line| line.starts_with("SigIgn") || line.starts_with("SigBlk"))
            {
                println!("{line}");
            }
        }
        other => eprintln!("{other} is not known"),
    }
}

fn getppid() {
    // SAFETY: getppid(2) has no preconditions.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

#[cfg(target_arch = "x86_64")]
fn getppid_32() {
    // SAFETY: call 64 of the 32-bit table has no arguments and writes only rax.
    unsafe {
        std::arch::asm!("int 0x80", inlateout("rax") 64u64 => _, out("r8") _, out("r9") _, out("r10") _, out("r11") _)
    };
}

/// Dies as on a kernel without 32-bit calls: 64-bit programs of other architectures make none.
#[cfg(not(target_arch = "x86_64"))]
fn getppid_32() {
    // SAFETY: it only ends the process.
    unsafe { libc::raise(libc::SIGSEGV) };
}

/// Forks this process, which has one thread; the child calls `work` and exits.
fn fork(work: impl FnOnce()) -> Child {
    let life = || {
        work();
        0
    };
    process::fork(life).expect("a process")
}

/// Other work makes this take longer, never shorter. The clock is read a few hundred times a second.
fn busy(ms: u64) {
    let until = Duration::from_millis(ms);
    let mut x = 1u64;
    while used() < until {
        for _ in 0..1_000_000 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
    }
}

/// Returns the processor time of this process.
fn used() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.try_into().expect("not negative")
}

fn on_order(calls: u64) {
    use io::{Read, Write};
    let (order, orders) = std::sync::mpsc::channel::<()>();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        while orders.recv().is_ok() {
            (0..calls).for_each(|_| getppid());
            let _ = tell.send(());
        }
    });
    let mut byte = [0];
    while matches!(io::stdin().read(&mut byte), Ok(1)) {
        std::thread::sleep(Duration::from_millis(2));
        (0..calls).for_each(|_| getppid());
        let _ = order.send(());
        let _ = told.recv();
        let _ = fork(|| (0..calls).for_each(|_| getppid())).wait();
        let _ = io::stdout().write_all(&byte).and_then(|()| io::stdout().flush());
    }
}

/// Sleeps 150 µs again and again in each thread, until the process is killed.
fn sleepers(number: u64) {
    let sleep = || {
        loop {
            std::thread::sleep(Duration::from_micros(150));
        }
    };
    let threads: Vec<_> = (0..number).map(|_| std::thread::spawn(sleep)).collect();
    threads.into_iter().for_each(|thread| drop(thread.join()));
}

fn exec_from_a_thread() {
    for _ in 0..4 {
        std::thread::spawn(|| std::thread::sleep(Duration::from_secs(100)));
    }
    std::thread::spawn(|| {
        others_sleep();
        let program = c"/bin/true";
        let argv = [program.as_ptr(), std::ptr::null()];
        // SAFETY: the string and the array are terminated as required.
        unsafe { libc::execv(program.as_ptr(), argv.as_ptr()) };
    });
    std::thread::sleep(Duration::from_secs(100));
}

/// Waits until all other threads are in clock_nanosleep(2).
fn others_sleep() {
    let own = rustix::thread::gettid().as_raw_nonzero().to_string();
    let sleeps = |task: &fs::DirEntry| {
        let call = fs::read_to_string(task.path().join("syscall")).unwrap_or_default();
        call.split(' ').next() == Some(&libc::SYS_clock_nanosleep.to_string())
            && state(&task.path()) == Some('S')
    };
    let others_sleep = || {
        let mut others = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        others.all(|task| task.file_name().to_str() == Some(&own) || sleeps(&task))
    };
    while !others_sleep() {
        std::thread::yield_now();
    }
}

/// The letter of proc_pid_stat(5).
fn state(task: &Path) -> Option<char> {
    fs::read_to_string(task.join("stat")).ok()?.rsplit(") ").next()?.chars().next()
}

fn pipe(ms: u64) {
    let mut ends = [0; 2];
    // SAFETY: the array holds two descriptors.
    unsafe { libc::pipe(ends.as_mut_ptr()) };
    let reader = Path::new("/proc").join(std::process::id().to_string());
    let reads = Shared::<1>::new().expect("memory");
    let mut writer = fork(|| {
        // The reader may also sleep before it reads. Yama may hide its call.
        let is_in_read = || {
            let call = fs::read_to_string(reader.join("syscall"));
            call.map_or(true, |call| call.split(' ').next() == Some(&*libc::SYS_read.to_string()))
        };
        while reads[0].load(Relaxed) == 0 || !is_in_read() || state(&reader) != Some('S') {
            std::thread::yield_now();
        }
        busy(ms);
        // SAFETY: one byte of a constant.
        unsafe { libc::write(ends[1], c"x".as_ptr().cast(), 1) };
    });
    let mut byte = 0u8;
    reads[0].store(1, Relaxed);
    // SAFETY: there is room for one byte.
    unsafe { libc::read(ends[0], (&raw mut byte).cast(), 1) };
    let _ = writer.wait();
}

fn killed() {
    let child = fork(|| std::thread::sleep(Duration::from_secs(100)));
    // The child makes no other call in which it would sleep.
    let process = Path::new("/proc").join(child.pid().to_string());
    while state(&process) != Some('S') {
        std::thread::yield_now();
    }
    drop(child);
    signals::raise(libc::SIGKILL);
}

fn read(path: &str) {
    let read = || -> io::Result<usize> {
        let file = fs::File::open(path)?;
        file.sync_all()?;
        // SAFETY: a hint about an open descriptor.
        unsafe {
            libc::posix_fadvise(std::os::fd::AsRawFd::as_raw_fd(&file), 0, 0, libc::POSIX_FADV_DONTNEED)
        };
        Ok(fs::read(path)?.len())
    };
    if let Err(error) = read() {
        eprintln!("{path}: {error}");
    }
}

fn copy(path: &str) {
    let copy = || -> io::Result<()> {
        let (from, to) = (fs::File::open(path)?, fs::File::create(format!("{path}.copy"))?);
        let [from, to] = [&from, &to].map(std::os::fd::AsRawFd::as_raw_fd);
        let nowhere = std::ptr::null_mut::<libc::loff_t>();
        // SAFETY: two open descriptors, and no offsets.
        unsafe { libc::syscall(libc::SYS_copy_file_range, from, nowhere, to, nowhere, 1 << 20, 0) };
        Ok(())
    };
    if let Err(error) = copy() {
        eprintln!("{path}: {error}");
    }
}

fn removed(path: &str) {
    use std::io::Write;
    let write = || -> io::Result<()> {
        let mut file = fs::File::create(path)?;
        fs::remove_file(path)?;
        file.write_all(b"x")?;
        fork(|| drop(file.write_all(b"y"))).wait().map(drop)
    };
    if let Err(error) = write() {
        eprintln!("{path}: {error}");
    }
}

const COUNTED: [(libc::c_int, &str); 6] = [
    (libc::SIGHUP, "HUP"),
    (libc::SIGINT, "INT"),
    (libc::SIGQUIT, "QUIT"),
    (libc::SIGUSR1, "USR1"),
    (libc::SIGUSR2, "USR2"),
    (libc::SIGTERM, "TERM"),
];
static CAME: [AtomicU64; COUNTED.len()] = [const { AtomicU64::new(0) }; COUNTED.len()];

extern "C" fn counts(signal: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    for ((counted, _), came) in COUNTED.iter().zip(&CAME) {
        if *counted == signal {
            came.fetch_add(1, Relaxed);
        }
    }
}

fn count(path: &str) {
    /// Longer than a second copy of a signal may take.
    const QUIET: Duration = Duration::from_millis(1500);
    // SAFETY: the handler only increments a number.
    let counting = unsafe { Disposition::handler(counts, libc::SA_RESTART) };
    COUNTED.iter().for_each(|(signal, _)| drop(counting.set(*signal)));
    if let Err(error) = fs::write(format!("{path}.ready"), std::process::id().to_string()) {
        return eprintln!("{path}: {error}");
    }
    let all = || CAME.iter().map(|came| came.load(Relaxed)).sum::<u64>();
    let (began, mut before, mut since) = (Instant::now(), 0, Instant::now());
    while (before == 0 || since.elapsed() < QUIET) && began.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(5));
        if all() != before {
            (before, since) = (all(), Instant::now());
        }
    }
    let words = COUNTED.iter().zip(&CAME).filter(|(_, came)| came.load(Relaxed) > 0);
    let words: Vec<String> =
        words.map(|((_, name), came)| format!("{name}={}", came.load(Relaxed))).collect();
    if let Err(error) = fs::write(path, words.join(" ")) {
        eprintln!("{path}: {error}");
    }
}

fn own_filter() {
    let one = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filter = [
        one(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        one(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_getppid as u32, 0, 1),
        one(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_TRACE | 7, 0, 0),
        one(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the filter lives until the kernel has copied it; getppid(2) has no preconditions.
    let (installed, said) = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let installed =
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program);
        (installed, libc::syscall(libc::SYS_getppid))
    };
    let error = io::Error::last_os_error().raw_os_error();
    println!("{installed} {said} {}", error == Some(libc::ENOSYS));
}
