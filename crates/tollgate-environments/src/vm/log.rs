//! QEMU's log of executed instructions: the addresses that a guest executed, in order.
//!
//! With one instruction per translated block and no jumps between blocks (`one-insn-per-tb`, before QEMU 8.1 `singlestep`),
//! the log item `exec` has a line for each instruction (QEMU, accel/tcg/cpu-exec.c). The monitor inherits a pipe for it, and
//! a thread reads it meanwhile, so memory is bounded and no file is left.
//!
//! An instruction that faults is logged but does nothing. QEMU subtracts it from its count of instructions if the fault comes
//! from within the instruction. The item `int` has a line for each fault, which makes the log agree with the count.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use tollgate_engine::session::{Stacks, Sums, is_kernel};
use tollgate_engine::versus::counted::MARK;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use super::qmp::Qmp;
use crate::error::{EnvironmentError, plainly, unusable};

/// Instructions that are kept. A batch of a benchmark has a few million at most.
const MOST: usize = 1 << 24;
/// Addresses with sums of their own. A large program executes some hundred thousand.
const MOST_ADDRESSES: usize = 1 << 22;
const MOST_LINE: usize = 1 << 9;
/// Exceptions that come from within an instruction: #DE, #TS, #NP, #SS, #PF, #MF, #AC, #XM. Those that the translator finds
/// before the instruction, such as #UD, are counted.
const TAKEN_BACK: [u8; 8] = [0, 10, 11, 12, 14, 16, 17, 19];
/// Interval in ns in which the reader checks whether the log has ended.
const LOOK: i64 = 20_000_000;
/// Commands that put each instruction in its own block, the newest first.
const STEPS: [&str; 2] = ["one-insn-per-tb", "singlestep"];

pub(super) struct Log {
    pipe: File,
    /// Name of the pipe's other end for the monitor.
    name: String,
    reader: Option<Reader>,
}

struct Reader {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Executed>>,
}

impl Log {
    /// Makes a log, and the file that the monitor must inherit under its number.
    pub fn new() -> io::Result<(Self, File)> {
        let (from, to) = io::pipe()?;
        let flags = rustix::fs::fcntl_getfl(&from)?;
        rustix::fs::fcntl_setfl(&from, flags | OFlags::NONBLOCK)?;
        let name = format!("/proc/self/fd/{}", to.as_raw_fd());
        Ok((Self { pipe: OwnedFd::from(from).into(), name, reader: None }, OwnedFd::from(to).into()))
    }

    /// Begins to keep the addresses.
    pub fn begin(&mut self, qmp: &mut Qmp) -> Result<(), EnvironmentError> {
        self.begin_as(Executed::default(), qmp)
    }

    /// Begins to sum what is executed between two marks, and to track these stacks.
    pub fn begin_sums(&mut self, stacks: Option<Stacks>, qmp: &mut Qmp) -> Result<(), EnvironmentError> {
        let sums = Sums { stacks, ..Sums::default() };
        let between = Some(Between { sums, ..Between::default() });
        self.begin_as(Executed { between, ..Executed::default() }, qmp)
    }

    fn begin_as(&mut self, executed: Executed, qmp: &mut Qmp) -> Result<(), EnvironmentError> {
        let fault = |error: io::Error| unusable!("vm: the log of instructions: {}", plainly(error));
        let pipe = self.pipe.try_clone().map_err(fault)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let of_thread = is_over.clone();
        let read = move || read(pipe, &of_thread, executed);
        let thread = std::thread::Builder::new().spawn(read).map_err(fault)?;
        self.reader = Some(Reader { is_over, thread });
        step(qmp, "on")?;
        silent(qmp, &format!("logfile {}", self.name))?;
        silent(qmp, "log exec,int,nochain")
    }

    /// Ends the log and returns the addresses. Fails if the monitor refuses or there are too many.
    pub fn end(&mut self, qmp: &mut Qmp) -> Result<Vec<u64>, EnvironmentError> {
        let executed = self.end_it(qmp)?;
        if executed.is_cut {
            Err(unusable!("vm: more than {MOST} instructions were executed while they were logged"))
        } else {
            Ok(executed.addresses)
        }
    }

    /// Ends the log and returns the sums between the marks. Fails if the monitor refuses or a mark is missing.
    pub fn end_sums(&mut self, qmp: &mut Qmp) -> Result<Sums, EnvironmentError> {
        let sums = self.end_it(qmp)?.between.and_then(Between::end);
        sums.ok_or_else(|| unusable!("vm: the log of instructions does not hold the whole execution"))
    }

    fn end_it(&mut self, qmp: &mut Qmp) -> Result<Executed, EnvironmentError> {
        let ended = silent(qmp, "log none").and_then(|()| step(qmp, "off"));
        let executed = self.join();
        ended?;
        executed
    }

    fn join(&mut self) -> Result<Executed, EnvironmentError> {
        let reader = self.reader.take().ok_or_else(|| unusable!("vm: no instructions are logged"))?;
        reader.is_over.store(true, Ordering::Relaxed);
        let read = reader.thread.join().map_err(|_| unusable!("vm: the reader of QEMU's log ended early"))?;
        read.map_err(|error| unusable!("vm: QEMU's log: {}", plainly(error)))
    }
}

/// Turns single-instruction blocks on or off.
fn step(qmp: &mut Qmp, how: &str) -> Result<(), EnvironmentError> {
    let mut said = String::new();
    for command in STEPS {
        said = qmp.human(&format!("{command} {how}"))?;
        if said.is_empty() {
            return Ok(());
        }
    }
    Err(unusable!("vm: QEMU does not execute single instructions: {said}"))
}

/// Executes a command that prints nothing on success.
fn silent(qmp: &mut Qmp, line: &str) -> Result<(), EnvironmentError> {
    match qmp.human(line)? {
        said if said.is_empty() => Ok(()),
        said => Err(unusable!("vm: QEMU's monitor refused {line}: {said}")),
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if self.reader.is_some() {
            let _ = self.join();
        }
    }
}

/// Reads until the log is over and the pipe is empty.
fn read(mut pipe: File, is_over: &AtomicBool, mut executed: Executed) -> io::Result<Executed> {
    let mut bytes = vec![0; 1 << 16];
    loop {
        // Loaded before reading, so that everything that was written before is still read.
        let is_last = is_over.load(Ordering::Relaxed);
        match pipe.read(&mut bytes) {
            Ok(0) => return Ok(executed),
            Ok(read) => executed.push(&bytes[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && is_last => return Ok(executed),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut all = [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)];
                let _ = poll(&mut all, Some(&Timespec { tv_sec: 0, tv_nsec: LOOK }));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[derive(Debug, Default)]
struct Executed {
    addresses: Vec<u64>,
    is_cut: bool,
    /// An incomplete line.
    line: Vec<u8>,
    /// Sums, instead of the addresses.
    between: Option<Between>,
}

impl Executed {
    fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let room = MOST_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.add(&line);
                // Reuses its memory.
                self.line = line;
                self.line.clear();
            }
        }
    }

    fn add(&mut self, line: &[u8]) {
        let entry = Entry::parse(line);
        if let Some(between) = &mut self.between {
            return entry.into_iter().for_each(|entry| between.add(entry));
        }
        match entry {
            Some(Entry::Executed(_)) if self.addresses.len() >= MOST => self.is_cut = true,
            Some(Entry::Executed(address)) => self.addresses.push(address),
            // It was logged, but not executed.
            Some(Entry::Undone(address)) if self.addresses.last() == Some(&address) => {
                self.addresses.pop();
            }
            _ => {}
        }
    }
}

/// Sums between two marks. A mark is one instruction that is executed [`MARK`] times in a row; both marks are the same one.
#[derive(Debug, Default)]
struct Between {
    /// It was logged, and may still be undone.
    announced: Option<u64>,
    /// The last executed address, and how often in a row.
    last: (u64, u64),
    /// Address of the mark, once it was seen.
    mark: Option<u64>,
    sums: Sums,
    is_over: bool,
}

impl Between {
    fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Executed(address) => {
                if let Some(before) = self.announced.replace(address) {
                    self.executed(before);
                }
            }
            Entry::Undone(address) if self.announced == Some(address) => self.announced = None,
            Entry::Undone(_) => {}
        }
    }

    fn executed(&mut self, address: u64) {
        if self.is_over {
            return;
        }
        let (last, times) = self.last;
        let is_repeated = last == address;
        if is_repeated {
            self.last.1 += 1;
            self.sums.repeated[usize::from(is_kernel(address))] += 1;
        } else {
            if times == MARK && !is_kernel(last) {
                self.marked(last);
                if self.is_over {
                    return;
                }
            }
            self.last = (address, 1);
            if let Some(stacks) = &mut self.sums.stacks {
                stacks.executed(address);
            }
            let side = if is_kernel(address) { &mut self.sums.kernel } else { &mut self.sums.user };
            *side += 1;
        }
        // Code that is generated at run time can have any number of addresses.
        if self.sums.addresses.len() < MOST_ADDRESSES || self.sums.addresses.contains_key(&address) {
            self.sums.addresses.entry(address).or_default()[usize::from(is_repeated)] += 1;
        }
    }

    fn marked(&mut self, address: u64) {
        match self.mark {
            None => {
                let mut stacks = self.sums.stacks.take();
                stacks.iter_mut().for_each(Stacks::clear);
                (self.mark, self.sums) = (Some(address), Sums { stacks, ..Sums::default() });
            }
            Some(mark) if mark == address => {
                self.sums.user -= 1;
                self.sums.repeated[0] -= MARK - 1;
                self.sums.addresses.remove(&address);
                self.is_over = true;
            }
            Some(_) => {}
        }
    }

    /// `None` if a mark is missing.
    fn end(mut self) -> Option<Sums> {
        if let Some(last) = self.announced.take() {
            self.executed(last);
        }
        self.is_over.then_some(self.sums)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Executed(u64),
    /// The block at this address was logged, but left before its first instruction, to be executed again.
    Undone(u64),
}

impl Entry {
    /// Parses an exception, `    7: v=0e e=0006 i=0 cpl=3 IP=0033:address pc=address SP=…`; a block,
    /// `Trace 0: 0x7f3a… [cs_base/address/flags/cflags] symbol`; or a block that was left,
    /// `Stopped execution of TB chain before 0x7f3a… [address] symbol` or `cpu_io_recompile: rewound execution of TB to address`.
    fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        let bracket = || line.split_once('[')?.1.split_once(']').map(|(inside, _)| inside);
        if line.starts_with("Trace ") {
            return Some(Self::Executed(address(bracket()?.split('/').nth(1)?)?));
        }
        if line.starts_with("Stopped execution of TB chain before ") {
            return Some(Self::Undone(address(bracket()?)?));
        }
        if let Some(rewound) = line.strip_prefix("cpu_io_recompile: rewound execution of TB to ") {
            return Some(Self::Undone(address(rewound.trim())?));
        }
        let value = |name: &str| line.split_ascii_whitespace().find_map(|word| word.strip_prefix(name));
        let vector = u8::from_str_radix(value("v=")?, 16).ok()?;
        let is_fault = value("i=")? == "0" && TAKEN_BACK.contains(&vector);
        Some(Self::Undone(address(value("pc=")?)?)).filter(|_| is_fault)
    }
}

fn address(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LOG: &str = "Trace 0: 0x7f3a2c0b1d40 [0000000000000000/00007f4ee2a31000/0040c0b3/ff021201] \n\
        Trace 0: 0x7f3a2c0b1d40 [0000000000000000/ffffffff81c00000/0040c0b0/ff021201] entry\n\
        Stopped execution of TB chain before 0x7f3a2c0b1d40 [ffffffff81c00000] entry\n\
        Stopped execution of TB chain before 0x7f3a2c0b1d40 [0000000000000001] \n\
        another line\n\
        Trace 0: 0x7f3a2c0b1d40 [0000000000000000/ffffffff81c00000/0040c0b0/ff021201] entry\n\
        Trace 0: 0x7f3a2c0b1d40 [0000000000000000/ffffffff81c00004/0040c0b0/ff021201] entry\n\
        cpu_io_recompile: rewound execution of TB to ffffffff81c00004\n\
        Trace 0: 0x7f3a2c0b1d40 [0000000000000000/00007f4ee2a31004/0040c0b3/ff021201] \n   \
        12: v=0e e=0006 i=0 cpl=3 IP=0033:00007f4ee2a31004 pc=00007f4ee2a31004 SP=002b:00007ffc CR2=0\n\
        RAX=0000000000000000 RBX=0000000000000000\n\
        Trace 0: 0x7f3a2c0b1d40 [0000000000000000/00007f4ee2a31006/0040c0b3/ff021201] \n   \
        13: v=06 e=0000 i=0 cpl=3 IP=0033:00007f4ee2a31006 pc=00007f4ee2a31006 SP=002b:00007ffc env->regs[R_EAX]=0\n\
        Trace 0: 0x7f3a2c0b1d40 [0000000000000000/00007f4ee2a31008/0040c0b3/ff021201] \n   \
        14: v=80 e=0000 i=1 cpl=3 IP=0033:00007f4ee2a31008 pc=00007f4ee2a31008 SP=002b:00007ffc\n";
    /// The addresses that it executed.
    const EXECUTED: [u64; 4] = [0x7f4e_e2a3_1000, 0xffff_ffff_81c0_0000, 0x7f4e_e2a3_1006, 0x7f4e_e2a3_1008];

    fn addresses(log: &[u8], piece: usize) -> Vec<u64> {
        let mut executed = Executed::default();
        log.chunks(piece).for_each(|bytes| executed.push(bytes));
        executed.addresses
    }

    #[test]
    fn each_executed_instruction_has_its_address_however_the_bytes_are_cut() {
        for piece in 1..LOG.len() {
            assert_eq!(addresses(LOG.as_bytes(), piece), EXECUTED);
        }
    }

    #[test]
    fn a_line_without_an_end_takes_little_memory() {
        let mut executed = Executed::default();
        for _ in 0..1000 {
            executed.push(&[b'x'; 1000]);
        }
        assert!(executed.line.len() <= MOST_LINE);
        executed.push(b"\n");
        executed.push(LOG.as_bytes());
        assert_eq!(executed.addresses, EXECUTED);
    }

    #[test]
    fn what_was_written_before_its_end_is_read() {
        let (from, to) = io::pipe().unwrap();
        rustix::fs::fcntl_setfl(&from, OFlags::NONBLOCK).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let (pipe, flag) = (File::from(OwnedFd::from(from)), is_over.clone());
        let thread = std::thread::spawn(move || read(pipe, &flag, Executed::default()));
        for _ in 0..10_000 {
            io::Write::write_all(&mut &to, LOG.as_bytes()).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(thread.join().unwrap().unwrap().addresses.len(), 10_000 * EXECUTED.len());
    }

    #[test]
    fn what_is_executed_between_two_marks_is_summed() {
        const USER: u64 = 0x7fff_f7fc_0000;
        const KERNEL: u64 = 0xffff_ffff_8100_0000;
        let mark = || std::iter::repeat_n(Entry::Executed(USER), MARK as usize);
        let between = [
            Entry::Executed(USER + 8),
            Entry::Executed(KERNEL),
            // A fault undoes it, and it is executed again.
            Entry::Executed(USER + 16),
            Entry::Undone(USER + 16),
            Entry::Executed(KERNEL + 4),
            Entry::Executed(KERNEL + 4),
            Entry::Executed(KERNEL + 4),
            Entry::Executed(USER + 16),
        ];
        let sums = |entries: &[Entry]| {
            let mut all = Between::default();
            entries.iter().for_each(|entry| all.add(*entry));
            all.end()
        };
        let around = [Entry::Executed(KERNEL + 64), Entry::Executed(USER + 64)];
        let whole: Vec<Entry> =
            around.into_iter().chain(mark()).chain(between).chain(mark()).chain(around).collect();
        let found = sums(&whole).expect("both marks");
        assert_eq!((found.user, found.kernel, found.repeated), (2, 2, [0, 2]));
        assert_eq!(found.addresses[&(KERNEL + 4)], [1, 2]);
        assert_eq!(sums(&whole[..whole.len() / 2]), None);
        assert_eq!(sums(&[]), None);
    }

    #[test]
    fn stacks_begin_at_the_first_mark_and_an_instruction_that_repeats_itself_is_one() {
        const USER: u64 = 0x7fff_f7fc_0000;
        const KERNEL: u64 = 0xffff_ffff_8100_0000;
        let names = [(KERNEL, "entry"), (KERNEL + 4, "entry"), (KERNEL + 16, "copy")];
        let names = names.map(|(address, name)| (address, name.to_owned())).into();
        let mut all = Between {
            sums: Sums { stacks: Some(Stacks::of(&names)), ..Sums::default() },
            ..Between::default()
        };
        let mark = || std::iter::repeat_n(USER, MARK as usize);
        let executed = [KERNEL, KERNEL + 16, KERNEL + 16, KERNEL + 16, KERNEL + 4, USER + 8];
        let before = [KERNEL + 16, USER + 8];
        for address in
            before.into_iter().chain(mark()).chain(executed).chain(mark()).chain([USER + 8, USER + 8])
        {
            all.add(Entry::Executed(address));
        }
        let folded = all.end().and_then(|sums| sums.stacks).expect("both marks").folded();
        let lines: Vec<_> = folded.iter().map(|(stack, number)| (stack.as_str(), *number)).collect();
        let user = lines[0].1;
        assert_eq!(lines[1..], [("user space;entry", 2), ("user space;entry;copy", 1)]);
        // The program's own, and the mark after it.
        assert!((1..=3).contains(&user), "{user}");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let lines = [b"Trace ".as_slice(), &bytes, b"\nStopped execution of TB chain before [", &bytes, b"\nv=0e i=0 pc=", &bytes];
            addresses(&lines.concat(), 7);
        }
    }
}
