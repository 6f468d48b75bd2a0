//! Copies from a file or from memory through a pipe into memory, either with a copy at each step or by moving pages.
//!
//! read(2) always copies from the pipe into the receiver's memory. The step before it differs: read(2) and write(2) copy twice,
//! splice(2) and sendfile(2) put the file's pages into the pipe, vmsplice(2) the sender's.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use tollgate_os::memfd;

use super::endpoint::{Subject, Verified, is_readable};
use crate::prelude::*;
use crate::processes::raw;

// Words of all loops: 0: the source; 1 and 2: the pipe's ends for writing and for reading; 3: the offset, unless the loop's
// comment says otherwise; 4: bytes per operation; 5: the sum of all calls' results; 6: the receiver's memory.

timed_loop! {
    /// pread64(2) of the file, write(2), read(2). Word 3: the memory in between.
    read_write: called
        "mov rdi, [r13]", "mov rsi, [r13 + 24]", "mov rdx, [r13 + 32]", "xor r10d, r10d", "mov eax, 17",
        "syscall",
        "add [r13 + 40], rax",
        "mov rdi, [r13 + 8]", "mov rsi, [r13 + 24]", "mov rdx, [r13 + 32]", "mov eax, 1",
        "syscall",
        "add [r13 + 40], rax",
        "mov rdi, [r13 + 16]", "mov rsi, [r13 + 48]", "mov rdx, [r13 + 32]", "xor eax, eax",
        "syscall",
        "add [r13 + 40], rax";
    aarch64
        "ldr x0, [x20]", "ldr x1, [x20, #24]", "ldr x2, [x20, #32]", "mov x3, 0", "mov x8, 67",
        "svc 0",
        "ldr x9, [x20, #40]", "add x9, x9, x0", "str x9, [x20, #40]",
        "ldr x0, [x20, #8]", "ldr x1, [x20, #24]", "ldr x2, [x20, #32]", "mov x8, 64",
        "svc 0",
        "ldr x9, [x20, #40]", "add x9, x9, x0", "str x9, [x20, #40]",
        "ldr x0, [x20, #16]", "ldr x1, [x20, #48]", "ldr x2, [x20, #32]", "mov x8, 63",
        "svc 0",
        "ldr x9, [x20, #40]", "add x9, x9, x0", "str x9, [x20, #40]"
}

timed_loop! {
    /// splice(2) of the file from its beginning, read(2).
    splice: called
        "xor eax, eax", "mov [r13 + 24], rax",
        // SPLICE_F_NONBLOCK
        "mov rdi, [r13]", "lea rsi, [r13 + 24]", "mov rdx, [r13 + 8]", "xor r10d, r10d", "mov r8, [r13 + 32]",
        "mov r9d, 2", "mov eax, 275",
        "syscall",
        "add [r13 + 40], rax",
        "mov rdi, [r13 + 16]", "mov rsi, [r13 + 48]", "mov rdx, [r13 + 32]", "xor eax, eax",
        "syscall",
        "add [r13 + 40], rax";
    aarch64
        "str xzr, [x20, #24]",
        "ldr x0, [x20]", "add x1, x20, #24", "ldr x2, [x20, #8]", "mov x3, 0", "ldr x4, [x20, #32]", "mov x5, 2",
        "mov x8, 76",
        "svc 0",
        "ldr x9, [x20, #40]", "add x9, x9, x0", "str x9, [x20, #40]",
        "ldr x0, [x20, #16]", "ldr x1, [x20, #48]", "ldr x2, [x20, #32]", "mov x8, 63",
        "svc 0",
        "ldr x9, [x20, #40]", "add x9, x9, x0", "str x9, [x20, #40]"
}

timed_loop! {
    /// sendfile(2) of the file from its beginning, read(2).
    sendfile: called
        "xor eax, eax", "mov [r13 + 24], rax",
        "mov rdi, [r13 + 8]", "mov rsi, [r13]", "lea rdx, [r13 + 24]", "mov r10, [r13 + 32]", "mov eax, 40",
        "syscall",
        "add [r13 + 40], rax",
        "mov rdi, [r13 + 16]", "mov rsi, [r13 + 48]", "mov rdx, [r13 + 32]", "xor eax, eax",
        "syscall",
        "add [r13 + 40], rax";
    aarch64
        "str xzr, [x20, #24]",
        "ldr x0, [x20, #8]", "ldr x1, [x20]", "add x2, x20, #24", "ldr x3, [x20, #32]", "mov x8, 71",
        "svc 0",
        "ldr x9, [x20, #40]", "add x9, x9, x0", "str x9, [x20, #40]",
        "ldr x0, [x20, #16]", "ldr x1, [x20, #48]", "ldr x2, [x20, #32]", "mov x8, 63",
        "svc 0",
        "ldr x9, [x20, #40]", "add x9, x9, x0", "str x9, [x20, #40]"
}

timed_loop! {
    /// vmsplice(2) of the sender's memory, read(2). Word 3: the iovec.
    vmsplice: called
        // SPLICE_F_NONBLOCK
        "mov rdi, [r13 + 8]", "mov rsi, [r13 + 24]", "mov edx, 1", "mov r10d, 2", "mov eax, 278",
        "syscall",
        "add [r13 + 40], rax",
        "mov rdi, [r13 + 16]", "mov rsi, [r13 + 48]", "mov rdx, [r13 + 32]", "xor eax, eax",
        "syscall",
        "add [r13 + 40], rax";
    aarch64
        "ldr x0, [x20, #8]", "ldr x1, [x20, #24]", "mov x2, 1", "mov x3, 2", "mov x8, 75",
        "svc 0",
        "ldr x9, [x20, #40]", "add x9, x9, x0", "str x9, [x20, #40]",
        "ldr x0, [x20, #16]", "ldr x1, [x20, #48]", "ldr x2, [x20, #32]", "mov x8, 63",
        "svc 0",
        "ldr x9, [x20, #40]", "add x9, x9, x0", "str x9, [x20, #40]"
}

/// The word with the sum of all calls' results.
const BYTES: usize = 5;
/// Copies between new data and a batch.
const WARM_UP: usize = 2;

words! {
    enum Method("by") { ReadWrite = "read-write", Splice = "splice", Sendfile = "sendfile", Vmsplice = "vmsplice" }
}

/// The default capacity of a pipe in bytes (pipe(7)).
const USUAL: u64 = 64 << 10;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "ipc/copy",
    operation: "This many bytes put into a pipe and read out of it, by one thread: from a cached file by pread and write, by splice or by sendfile; from memory by vmsplice.",
    avoid: "Send files by splice or sendfile, and share memory where both sides may.",
    source: "splice(2); sendfile(2); vmsplice(2); pipe(7); fs/splice.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, UserCopy, PageCache],
    crossed_in: |params, boundary| boundary != PageCache || Method::try_from(params) != Ok(Method::Vmsplice),
    timed: |params| match Method::try_from(params) {
        Ok(method) => {
            let (code, times) = method.code();
            Timed::Loop { code: TimedLoop::Long(code), instruction: "syscall/svc", times }
        }
        Err(_) => NOT_TIMED,
    },
    cases: |_| rows(&[4 << 10, USUAL]),
    thorough_cases: |_| rows(&[1 << 20]),
    in_everything: |params, _| {
        matches!(word(params, "by"), "read-write" | "splice") && number(params, "bytes") == USUAL
    },
    bytes: |params| Some(number(params, "bytes")),
    kind: Kind::Instance(|timed, params, _| {
        let copies = Copies::new(Method::try_from(params)?, number(params, "bytes") as usize)?;
        let words = copies.words();
        // SAFETY: the kernel reads and writes memory of the copies, which the hooks keep.
        let timed = unsafe { Loop::new(timed, words, None, any) }?;
        Ok(timed.with_hooks(Verified::new(copies)).here())
    }),
    uncounted: Some(TIME_OF_MEMORY),
    absence: &[KILLED_BY_FILTER],
    ..PLAIN
};

impl Method {
    fn code(self) -> (LongLoop, usize) {
        match self {
            Self::ReadWrite => (read_write, 3),
            Self::Splice => (splice, 2),
            Self::Sendfile => (sendfile, 2),
            Self::Vmsplice => (vmsplice, 2),
        }
    }
}

fn rows(bytes: &[u64]) -> Vec<Params> {
    let case = |by: &str, bytes: u64| params(&[("by", by.into()), ("bytes", bytes.into())]);
    Method::WORDS.iter().flat_map(|by| bytes.iter().map(move |&bytes| case(by, bytes))).collect()
}

struct Copies {
    source: Source,
    bytes: usize,
    /// The ends for reading and for writing.
    pipe: (OwnedFd, OwnedFd),
    received: Mapping,
    seed: u64,
}

enum Source {
    /// A file in memory, and the buffer between its read and its write.
    ReadWrite(File, Mapping),
    Splice(File),
    Sendfile(File),
    Memory(Mapping, Box<[u64; 2]>),
}

impl Copies {
    fn new(method: Method, bytes: usize) -> Result<Self> {
        let source = match method {
            Method::ReadWrite => Source::ReadWrite(file()?, memory(bytes)?),
            Method::Splice => Source::Splice(file()?),
            Method::Sendfile => Source::Sendfile(file()?),
            Method::Vmsplice => {
                let memory = memory(bytes)?;
                let vector = [memory.address() as u64, bytes as u64];
                Source::Memory(memory, Box::new(vector))
            }
        };
        let mut copies = Self { source, bytes, pipe: pipe(bytes)?, received: memory(bytes)?, seed: 0 };
        copies.send_other()?;
        copies.try_one()?;
        Ok(copies)
    }

    fn words(&self) -> [u64; 7] {
        let (from, extra) = match &self.source {
            Source::ReadWrite(file, between) => (file.as_raw_fd(), between.address() as u64),
            Source::Splice(file) | Source::Sendfile(file) => (file.as_raw_fd(), 0),
            Source::Memory(_, vector) => (-1, vector.as_ptr() as u64),
        };
        let (out, into) = (self.pipe.0.as_raw_fd() as u64, self.pipe.1.as_raw_fd() as u64);
        [from as u64, into, out, extra, self.bytes as u64, 0, self.received.address() as u64]
    }

    fn calls(&self) -> u64 {
        if matches!(self.source, Source::ReadWrite(..)) { 3 } else { 2 }
    }

    fn send_other(&mut self) -> Result<()> {
        self.seed += 1;
        let data = pattern(self.seed, self.bytes);
        match &mut self.source {
            Source::ReadWrite(file, _) | Source::Splice(file) | Source::Sendfile(file) => {
                file.write_all_at(&data, 0).or_refused("a file in memory cannot be written")
            }
            Source::Memory(memory, _) => {
                bytes_of(memory, self.bytes).copy_from_slice(&data);
                Ok(())
            }
        }
    }

    fn try_one(&mut self) -> Result<()> {
        let call = self.copy_one()?;
        if *bytes_of(&mut self.received, self.bytes) == *pattern(self.seed, self.bytes) {
            Ok(())
        } else {
            Err(fail!("what came out of the pipe is not what {call} put into it"))
        }
    }

    /// Puts bytes into the pipe through the C library, so that an error is known, and then reads them.
    fn copy_one(&mut self) -> Result<&'static str> {
        let (into, mut offset, flags) = (self.pipe.1.as_raw_fd(), 0, libc::SPLICE_F_NONBLOCK);
        let nothing = std::ptr::null_mut();
        if let Source::ReadWrite(file, between) = &mut self.source {
            let between = bytes_of(between, self.bytes);
            file.read_exact_at(between, 0).or_refused("a file in memory cannot be read")?;
        }
        // SAFETY: the memory is valid for reading `self.bytes` bytes, and the offset for writing.
        let (call, moved) = unsafe {
            match &self.source {
                Source::ReadWrite(_, between) => {
                    ("write(2)", libc::write(into, between.address().cast(), self.bytes))
                }
                Source::Splice(file) => {
                    let file = file.as_raw_fd();
                    ("splice(2)", libc::splice(file, &mut offset, into, nothing, self.bytes, flags))
                }
                Source::Sendfile(file) => {
                    ("sendfile(2)", libc::sendfile(into, file.as_raw_fd(), &mut offset, self.bytes))
                }
                Source::Memory(_, vector) => {
                    ("vmsplice(2)", libc::vmsplice(into, vector.as_ptr().cast(), 1, flags))
                }
            }
        };
        let moved = checked(moved as i64).or_refused(&format!("{call} into a pipe is refused"))?;
        if moved != self.bytes {
            return Err(fail!("{call} moved {moved} of {} bytes", self.bytes));
        }
        match read(&self.pipe.0, bytes_of(&mut self.received, self.bytes))? {
            whole if whole == self.bytes => Ok(call),
            less => Err(fail!("{less} of {} bytes came out of the pipe", self.bytes)),
        }
    }

    /// Clears a word of each received page, so that a copy that skips a page is noticed.
    fn forget_received(&mut self) {
        bytes_of(&mut self.received, self.bytes)
            .chunks_mut(4096)
            .filter_map(|page| page.get_mut(..8))
            .for_each(|word| word.fill(0));
    }
}

impl Subject for Copies {
    /// A batch has few copies of 64 KiB. Without warm-up the first would find caches as new data left them, not as copies do.
    fn before(&mut self, context: &mut LoopContext) -> Result<()> {
        self.send_other()?;
        for _ in 0..WARM_UP {
            self.copy_one()?;
            self.forget_received();
        }
        context.words[BYTES] = 0;
        Ok(())
    }

    fn after(&mut self, context: &LoopContext, iterations: u64) -> Result<()> {
        let expected = self.calls() * self.bytes as u64 * iterations;
        let moved = context.words[BYTES];
        if moved != expected {
            return Err(fail!("the calls moved {} bytes together instead of {expected}", moved as i64));
        }
        if is_readable(self.pipe.0.as_raw_fd()) {
            return Err(fail!("the pipe has more bytes than were put into it"));
        }
        let received = bytes_of(&mut self.received, self.bytes);
        if *received == *pattern(self.seed, self.bytes) {
            Ok(())
        } else {
            Err(fail!("the bytes that came out of the pipe are not those that were sent"))
        }
    }
}

/// Returns bytes each word of which depends on a number (splitmix64, of Steele, Lea and Flood, OOPSLA 2014).
fn pattern(seed: u64, bytes: usize) -> Vec<u8> {
    let word = |at: u64| {
        let mut word = (seed << 32 ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    };
    (0..bytes as u64 / 8).flat_map(|at| word(at).to_le_bytes()).collect()
}

fn file() -> Result<File> {
    memfd::create("tollgate-copy").or_refused("memfd_create(2) is refused")
}

/// Maps memory and writes it once, so that each page is present.
fn memory(bytes: usize) -> Result<Mapping> {
    let mut memory = Mapping::anonymous(bytes, libc::MAP_PRIVATE).or_refused("mmap is refused")?;
    bytes_of(&mut memory, bytes).fill(0xa5);
    Ok(memory)
}

fn bytes_of(memory: &mut Mapping, bytes: usize) -> &mut [u8] {
    // SAFETY: the slice lies within the mapping, and nothing else refers to it. A pipe is emptied before its pages change.
    unsafe { std::slice::from_raw_parts_mut(memory.address(), bytes.min(memory.length())) }
}

/// Makes a nonblocking pipe with at least this capacity.
fn pipe(bytes: usize) -> Result<(OwnedFd, OwnedFd)> {
    let (out, into) = raw::pipe().or_refused("pipe2 is refused")?;
    for end in [&out, &into] {
        // SAFETY: F_SETFL takes a number.
        let set = unsafe { libc::fcntl(end.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        checked(set).or_refused("fcntl(2), F_SETFL, is refused")?;
    }
    // SAFETY: F_GETPIPE_SZ takes nothing.
    let room = checked(unsafe { libc::fcntl(into.as_raw_fd(), libc::F_GETPIPE_SZ) });
    if room.or_refused("fcntl(2), F_GETPIPE_SZ, is refused")? < bytes {
        // SAFETY: F_SETPIPE_SZ takes a number.
        let set = checked(unsafe { libc::fcntl(into.as_raw_fd(), libc::F_SETPIPE_SZ, bytes as libc::c_int) });
        set.map_err(|error| {
            skip!("a pipe cannot have {bytes} bytes (fs.pipe-max-size, fs.pipe-user-pages-soft): {error}")
        })?;
    }
    Ok((out, into))
}

fn read(pipe: &OwnedFd, bytes: &mut [u8]) -> Result<usize> {
    // SAFETY: `bytes` is valid for writing its own length.
    let came =
        checked(unsafe { libc::read(pipe.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) } as i64);
    match came {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(0),
        came => came.or_refused("a read of a pipe is refused"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ready;

    fn run(case: &Params, copies: Copies, times: u64) -> Result<Batch> {
        let words = copies.words();
        let timed = (BENCHMARK.timed)(case);
        // SAFETY: as in the benchmark.
        let timed = unsafe { Loop::new(timed, words, None, any) }?;
        timed.with_hooks(Verified::new(copies)).here().batch(Clock::Kernel, Order::new(times))
    }

    #[test]
    fn all_bytes_come_out_of_the_pipe() {
        for case in BENCHMARK.cases_in(Extent::Thorough, &Topology::default()) {
            let method = Method::try_from(&case).expect("a method");
            let Some(copies) = ready(&case, Copies::new(method, number(&case, "bytes") as usize)) else {
                continue;
            };
            let batch = run(&case, copies, 5);
            assert!(batch.as_ref().is_ok_and(|batch| batch.work > 0), "{case:?}: {batch:?}");
        }
    }

    #[test]
    fn a_byte_more_or_less_or_another_one_fails() {
        for case in rows(&[4 << 10]) {
            let (method, by) = (Method::try_from(&case).expect("a method"), word(&case, "by"));
            let copies = || ready(by, Copies::new(method, 4 << 10));
            let Some(stray) = copies() else { continue };
            // SAFETY: the kernel reads one byte.
            assert_eq!(unsafe { libc::write(stray.pipe.1.as_raw_fd(), c"!".as_ptr().cast(), 1) }, 1);
            assert!(run(&case, stray, 3).is_err(), "{by}: a byte more");

            let Some(mut lost) = copies() else { continue };
            lost.pipe.1 = File::create("/dev/null").expect("it is there").into();
            assert!(run(&case, lost, 3).is_err(), "{by}: all bytes lost");

            let Some(mut other) = copies() else { continue };
            let mut context = LoopContext { words: other.words(), result: 0 };
            other.before(&mut context).expect("ready");
            // SAFETY: as in the benchmark.
            unsafe { method.code().0.run(3, &mut context) };
            assert_eq!(other.after(&context, 3), Ok(()), "{by}");
            assert!(other.after(&context, 4).is_err(), "{by}: one time less");
            bytes_of(&mut other.received, 4 << 10)[100] ^= 1;
            assert!(other.after(&context, 3).is_err(), "{by}: another byte");
        }
    }
}
