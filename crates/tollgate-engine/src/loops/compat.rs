//! A 32-bit program of a few hundred bytes, kept in this one and started from memory. It reads orders from its standard input, times
//! the loop of a benchmark, and writes results to its standard output. `compat.s` of tollgate-arch is the frame with the clock; a benchmark's loop is
//! appended. The program needs no loader, libc or file system: it has an ELF header, one segment and one entry point.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;

use tollgate_arch::compat::{BASE, frame};
use tollgate_model::traced::Ended;
use tollgate_os::memfd;
use tollgate_os::process::{self, Child};

use crate::loops::events::Tally;
use crate::loops::runner::{Batch, Order, Runner};
use crate::machine::clock::Clock;
use crate::refusal::{OrRefused, Refusal, Result};

/// Offsets of p_filesz and p_memsz, words 5 and 6 of the program header after the 52-byte ELF header (System V ABI, i386).
const FILE_SIZE: usize = 52 + 16;
const MEMORY_SIZE: usize = 52 + 20;

/// The address of the loop's first instruction in the program, directly after the frame.
pub(crate) fn loop_address() -> u64 {
    BASE + frame().len() as u64
}

const SCRATCH: u32 = 4096;

pub(crate) struct Program {
    process: Child,
    orders: PipeWriter,
    answers: PipeReader,
    check: fn(u32) -> Result<(), String>,
    entry: Entry,
}

/// How `__kernel_vsyscall` enters the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// SYSENTER.
    Sysenter,
    /// SYSCALL in compatibility mode (AMD).
    Syscall,
    /// INT 80h, if it has neither of the others.
    Int80,
    /// There is no 32-bit vDSO, or its code has none of these instructions.
    Unknown,
}

impl Entry {
    /// Reads the start of `__kernel_vsyscall` (arch/x86/entry/vdso/vdso32/system_call.S): pushes and moves, then the entry.
    fn from_code(code: &[u8]) -> Self {
        let first = |pattern: [u8; 2]| code.windows(2).position(|pair| pair == pattern);
        let found = [
            (first([0x0f, 0x34]), Self::Sysenter),
            (first([0x0f, 0x05]), Self::Syscall),
            (first([0xcd, 0x80]), Self::Int80),
        ];
        found
            .into_iter()
            .filter_map(|(at, entry)| Some((at?, entry)))
            .min_by_key(|(at, _)| *at)
            .map_or(Self::Unknown, |(_, entry)| entry)
    }

    /// Returns the instruction's name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sysenter => "sysenter",
            Self::Syscall => "syscall",
            Self::Int80 => "int 0x80",
            Self::Unknown => "unknown",
        }
    }
}

/// The length of the program's first message: the address of `__kernel_vsyscall` and the code there.
const HELLO: usize = 4 + 32;

#[derive(Debug, Clone, Copy)]
struct Answer {
    /// Ticks of the empty loop, the benchmark's loop, and the empty loop again.
    ticks: [u64; 3],
    stayed: bool,
    /// Its context switches, minor and major faults during that.
    usage: [u64; 3],
    result: u32,
}

impl Answer {
    const BYTES: usize = 72;

    fn parse(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[4 * at], bytes[4 * at + 1], bytes[4 * at + 2], bytes[4 * at + 3]])
        };
        let ticks = |at: usize| u64::from(word(at)) | u64::from(word(at + 1)) << 32;
        let added = |at: usize| u64::from(word(at + 4).wrapping_sub(word(at)));
        Self {
            ticks: [ticks(0), ticks(3), ticks(6)],
            stayed: [2, 5, 8].into_iter().all(|at| word(at) == 0),
            usage: [added(9) + added(10), added(11), added(12)],
            result: word(17),
        }
    }
}

impl Program {
    pub fn start(code: &[u8], check: fn(u32) -> Result<(), String>) -> Result<Self> {
        let no_pipe = |error: io::Error| fail!("no pipe: {}", tollgate_model::text::plainly(&error));
        let (orders_out, orders) = io::pipe().map_err(no_pipe)?;
        let (answers, answers_in) = io::pipe().map_err(no_pipe)?;
        let process = spawn(&image(code), &orders_out, &answers_in)?;
        drop((orders_out, answers_in));
        let mut program = Self { process, orders, answers, check, entry: Entry::Unknown };
        let mut hello = [0; HELLO];
        if program.answers.read_exact(&mut hello).is_err() {
            return Err(program.died());
        }
        program.entry = Entry::from_code(&hello[4..]);
        Ok(program)
    }

    pub fn entry(&self) -> Entry {
        self.entry
    }

    fn ask(&mut self, order: Order) -> Result<Answer> {
        let word = |count: u64| u32::try_from(count).unwrap_or(u32::MAX / 2).to_le_bytes();
        let words = [word(order.iterations.max(1)), word(order.extra)];
        let mut answer = [0; Answer::BYTES];
        let exchanged =
            self.orders.write_all(words.as_flattened()).and_then(|()| self.answers.read_exact(&mut answer));
        match exchanged {
            Ok(()) => Ok(Answer::parse(&answer)),
            Err(_) => Err(self.died()),
        }
    }

    fn died(&mut self) -> Refusal {
        match self.process.wait() {
            Err(_) => fail!("the 32-bit program ended unexpectedly"),
            Ok(Ended::Signal(libc::SIGSYS)) => {
                skip!("a seccomp filter kills 32-bit system calls")
            }
            Ok(Ended::Signal(signal)) => {
                fail!("the 32-bit program was killed by {}", crate::machine::ending::signal_name(signal))
            }
            Ok(Ended::Exit(EXEC_REFUSED)) => {
                skip!("this environment does not start programs from memory")
            }
            Ok(Ended::Exit(EXEC_UNKNOWN)) => {
                skip!("the kernel does not run 32-bit programs (no IA-32 emulation)")
            }
            Ok(Ended::Exit(code)) => fail!("the 32-bit program ended with status {code}"),
        }
    }
}

impl Runner for Program {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        if clock == Clock::Kernel {
            let why = "a 32-bit program needs the TSC as its clock, but the TSC is not usable here (see the fact run.clock)";
            return Err(Refusal::Skip(why.to_owned()));
        }
        let Answer { ticks: [empty, work, empty_again], stayed, usage, result } = self.ask(order)?;
        (self.check)(result).map_err(Refusal::Fail)?;
        let tally = Tally::of_operations(usage, 1, 1);
        Ok(Batch { tally, ..Batch::new(work, empty.min(empty_again), stayed && usage[0] == 0) })
    }
}

/// Appends the loop to the frame, and sets the sizes in the program header.
fn image(code: &[u8]) -> Vec<u8> {
    let mut image = frame().to_vec();
    image.extend_from_slice(code);
    let file_size = image.len() as u32;
    image[FILE_SIZE..FILE_SIZE + 4].copy_from_slice(&file_size.to_le_bytes());
    image[MEMORY_SIZE..MEMORY_SIZE + 4].copy_from_slice(&(file_size + SCRATCH).to_le_bytes());
    image
}

const EXEC_REFUSED: i32 = 126;
const EXEC_UNKNOWN: i32 = 127;

fn spawn(image: &[u8], input: &PipeReader, output: &PipeWriter) -> Result<Child> {
    let mut file = memfd::create("tollgate-compat")
        .or_refused("this environment does not start programs from memory: memfd_create")?;
    file.write_all(image).map_err(|error| {
        fail!("the 32-bit program cannot be written: {}", tollgate_model::text::plainly(&error))
    })?;

    let arguments = [c"tollgate-compat".as_ptr(), std::ptr::null()];
    let environment = [std::ptr::null::<libc::c_char>()];
    let become_it = || {
        // SAFETY: plain system calls; all pointers stay valid in the copy of our memory.
        let error = unsafe {
            libc::dup2(input.as_raw_fd(), 0);
            libc::dup2(output.as_raw_fd(), 1);
            libc::syscall(
                libc::SYS_execveat,
                file.as_raw_fd(),
                c"".as_ptr(),
                arguments.as_ptr(),
                environment.as_ptr(),
                libc::AT_EMPTY_PATH,
            );
            *libc::__errno_location()
        };
        if error == libc::ENOEXEC { EXEC_UNKNOWN } else { EXEC_REFUSED }
    };
    process::fork_bound(become_it).or_refused("no process can be started")
}

#[cfg(test)]
mod tests {
    use tollgate_arch::architecture::{Architecture, HERE};

    use super::*;

    #[test]
    fn entry_instructions_are_recognised() {
        // push ecx, push edx, push ebp, mov ebp, esp, then the entry, then int 80h for restarts.
        let code =
            |entry: [u8; 2]| [0x51, 0x52, 0x55, 0x89, 0xe5, entry[0], entry[1], 0xcd, 0x80, 0x5d, 0x5a];
        assert_eq!(Entry::from_code(&code([0x0f, 0x34])), Entry::Sysenter);
        assert_eq!(Entry::from_code(&code([0x0f, 0x05])), Entry::Syscall);
        assert_eq!(Entry::from_code(&code([0x90, 0x90])), Entry::Int80);
        assert_eq!(Entry::from_code(&[0; 32]), Entry::Unknown);
    }

    #[test]
    fn the_image_is_an_elf_file_that_says_its_own_size() {
        if HERE == Architecture::Arm64 {
            return println!("skipped: 32-bit programs are of x86");
        }
        let image = image(&[0xc3; 10]);
        assert_eq!(&image[..5], b"\x7fELF\x01");
        let size = u32::from_le_bytes(image[FILE_SIZE..FILE_SIZE + 4].try_into().expect("four bytes"));
        assert_eq!(size as usize, image.len());
    }
}
