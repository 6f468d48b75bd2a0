//! QEMU's plugin: its file, the memory that it shares with this process, and the thread that reads that.

use std::ffi::c_int;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tollgate_engine::Architecture;
use tollgate_engine::session::{InstructionLog, Sums, Watch};
use tollgate_model::text::excerpt;
use tollgate_os::memfd;
use tollgate_os::shared::Shared;

use super::executed::Executed;
use super::layout::GATE;
use super::qemu::{Machine, Qemu};
use super::qmp::Qmp;
use super::ring::{DATA, HEAD, IS_LAST, IS_READ, IS_REGISTERED, SKIP, TAIL, TAKE, WORDS};
use crate::error::{EnvironmentError, plainly, unusable};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plugin.so"));
/// Why there is none, if there is none.
const WHY_NONE: &str = env!("TOLLGATE_WHY_NO_PLUGIN");
/// How long the reader waits for more words.
const WAIT: Duration = Duration::from_millis(1);
const VECTORS: usize = 256;

/// A plugin for one guest.
pub(super) struct Plugin {
    /// Its file in memory, or why there is none.
    object: Result<File, String>,
    memory: File,
    shared: Arc<Shared<WORDS>>,
    running: Arc<Mutex<Running>>,
}

/// The last start: its monitor, and the blocks that it described.
#[derive(Default)]
struct Running {
    qmp: Option<Qmp>,
    executed: Executed,
}

impl Plugin {
    pub fn new(qemu: &Qemu, machine: &Machine, stop: &dyn Fn() -> bool) -> Result<Self, EnvironmentError> {
        let object = if !machine.is_counting() {
            Err("its instructions are not counted".to_owned())
        } else if machine.arch != Architecture::X86_64 {
            Err("tollgate's plugin for QEMU knows the exceptions of x86-64 alone".to_owned())
        } else if !WHY_NONE.is_empty() {
            Err(format!("tollgate was built without its plugin for QEMU: {WHY_NONE}"))
        } else if !qemu.has_plugins(stop)? {
            Err(format!("{} is built without plugins, which count by address", qemu.program.display()))
        } else {
            let file = memfd::create_executable("plugin.so");
            let file = file.and_then(|mut file| file.write_all(OBJECT).map(|()| file));
            file.map_err(|error| format!("a file in memory that can be executed: {}", plainly(error)))
        };
        let fault = |error: io::Error| unusable!("vm: memory for its plugin: {}", plainly(error));
        let memory = memfd::create_bounded("ring", 8 * WORDS as u64).map_err(fault)?;
        let shared = Arc::new(Shared::of(&memory).map_err(fault)?);
        Ok(Self { object, memory, shared, running: Arc::default() })
    }

    /// For a start: QEMU's arguments, and the files that it must inherit under their numbers.
    pub fn start(&self) -> io::Result<(Vec<String>, Vec<File>)> {
        let (own, theirs) = UnixStream::pair()?;
        let mut arguments = vec![
            "-chardev".to_owned(),
            format!("socket,id=monitor,fd={}", theirs.as_raw_fd()),
            "-mon".to_owned(),
            "chardev=monitor,mode=control".to_owned(),
        ];
        let mut files = vec![OwnedFd::from(theirs).into()];
        if let Ok(object) = &self.object {
            let (object, memory) = (object.try_clone()?, self.memory.try_clone()?);
            let [plugin, ring] = [&object, &memory].map(|file| format!("/proc/self/fd/{}", file.as_raw_fd()));
            let (gate, guests) = UnixStream::pair()?;
            hold_little(&guests)?;
            let [gate, guests] = [gate, guests].map(|end| File::from(OwnedFd::from(end)));
            arguments.extend([
                "-plugin".to_owned(),
                format!("{plugin},ring={ring},gate={}", gate.as_raw_fd()),
                "-chardev".to_owned(),
                format!("socket,id=gate,fd={}", guests.as_raw_fd()),
                "-device".to_owned(),
                format!("isa-debugcon,iobase={GATE},chardev=gate"),
            ]);
            files.extend([object, memory, gate, guests]);
        }
        [HEAD, TAIL, IS_REGISTERED].iter().for_each(|at| self.shared[*at].store(0, Relaxed));
        *locked(&self.running) = Running { qmp: Some(Qmp::on(own)?), executed: Executed::default() };
        Ok((arguments, files))
    }

    pub fn log(&self) -> GuestLog {
        let (shared, running) = (self.shared.clone(), self.running.clone());
        GuestLog { why_none: self.object.as_ref().err().cloned(), shared, running, reader: None }
    }
}

/// A log of the instructions that the guest executes. It may begin before the guest starts.
pub(super) struct GuestLog {
    why_none: Option<String>,
    shared: Arc<Shared<WORDS>>,
    running: Arc<Mutex<Running>>,
    reader: Option<Reader>,
}

struct Reader {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Sums>, EnvironmentError>>,
}

impl InstructionLog for GuestLog {
    fn begin(&mut self, watch: Watch) -> Result<(), String> {
        if let Some(why) = &self.why_none {
            return Err(why.clone());
        }
        let is_last = watch.is_last.into();
        for (at, value) in [(IS_LAST, is_last), (SKIP, watch.skip), (TAKE, watch.take), (IS_READ, 1)] {
            self.shared[at].store(value, Relaxed);
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let (shared, running, of_thread) = (self.shared.clone(), self.running.clone(), is_over.clone());
        let read = move || {
            let windows = read(&shared, &running, &of_thread, watch);
            // From now on the guest does not wait for a reader.
            [TAKE, IS_READ].iter().for_each(|at| shared[*at].store(0, Relaxed));
            windows
        };
        let thread = std::thread::Builder::new().spawn(read).map_err(plainly)?;
        self.reader = Some(Reader { is_over, thread });
        Ok(())
    }

    fn end(&mut self) -> Result<Vec<Sums>, String> {
        let Reader { is_over, thread } = self.reader.take().ok_or("no instructions are watched")?;
        is_over.store(true, Relaxed);
        let windows = thread.join().map_err(|_| "the reader of QEMU's plugin ended early")?;
        windows.map_err(|error| error.to_string())
    }
}

impl Drop for GuestLog {
    fn drop(&mut self) {
        if self.reader.is_some() {
            let _ = self.end();
        }
    }
}

/// Makes a socket hold as little as it can: some kilobytes, of which each message takes almost one (socket(7), SO_SNDBUF).
fn hold_little(socket: &UnixStream) -> io::Result<()> {
    let (least, size): (c_int, _) = (1, size_of::<c_int>() as libc::socklen_t);
    let at = (&raw const least).cast();
    // SAFETY: the kernel reads a number of this size, which outlives the call.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, at, size) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn locked(running: &Mutex<Running>) -> MutexGuard<'_, Running> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads until all windows have ended, or until `is_over` is set and the ring is empty: then some may be missing.
fn read(
    shared: &Shared<WORDS>,
    running: &Mutex<Running>,
    is_over: &AtomicBool,
    watch: Watch,
) -> Result<Vec<Sums>, EnvironmentError> {
    const ROOM: u64 = (WORDS - DATA) as u64;
    const STEP: u64 = 1 << 12;
    let take = watch.take as usize;
    let mut watch = Some(watch);
    loop {
        // Loaded before the ring is, so that everything that was written before is still read.
        let is_last = is_over.load(Relaxed);
        let (head, tail) = (shared[HEAD].load(Acquire), shared[TAIL].load(Relaxed));
        if head == tail && is_last {
            let windows = locked(running).executed.end().filter(|windows| !windows.is_empty());
            return windows.ok_or_else(|| match shared[IS_REGISTERED].load(Relaxed) {
                0 => unusable!("vm: the guest's kernel has no ioperm(2), by which /init starts QEMU's plugin (CONFIG_X86_IOPL_IOPERM)"),
                _ => unusable!("vm: QEMU's plugin reported no whole execution"),
            });
        } else if head == tail {
            std::thread::sleep(WAIT);
            continue;
        }
        // Only now, because before its first word the guest may not have started.
        let Running { qmp, executed } = &mut *locked(running);
        if let Some(watch) = watch.take() {
            executed.begin(watch);
        }
        if let (false, Some(qmp)) = (executed.knows_handlers(), qmp) {
            executed.know_handlers(&handlers(qmp)?);
        }
        let end = head.min(tail.saturating_add(STEP));
        (tail..end).for_each(|at| executed.add(shared[DATA + (at % ROOM) as usize].load(Relaxed)));
        shared[TAIL].store(end, Release);
        if executed.windows() >= take {
            return executed
                .end()
                .ok_or_else(|| unusable!("vm: QEMU's plugin reported too much, or nonsense"));
        }
    }
}

/// Returns the kernel's handlers by their vectors, from the descriptors of interrupts (Intel SDM, volume 3, 7.14.1).
fn handlers(qmp: &mut Qmp) -> Result<Vec<u64>, EnvironmentError> {
    let registers = qmp.human("info registers")?;
    let table = registers.lines().find_map(|line| line.strip_prefix("IDT=")?.split_whitespace().next());
    let table = table.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let table = table.ok_or_else(|| unusable!("vm: QEMU's monitor shows no table of interrupts"))?;
    let shown = qmp.human(&format!("x/{}xg {table:#x}", 2 * VECTORS))?;
    let words = shown.split_whitespace().filter_map(|word| word.strip_prefix("0x"));
    let words: Vec<u64> = words.filter_map(|digits| u64::from_str_radix(digits, 16).ok()).collect();
    let (descriptors, _) = words.as_chunks::<2>();
    let all: Vec<u64> =
        descriptors.iter().map(|[low, high]| high << 32 | low >> 48 << 16 | low & 0xffff).collect();
    match all.len() {
        VECTORS => Ok(all),
        _ => Err(unusable!("vm: QEMU's monitor does not show the kernel's handlers: {}", excerpt(&shown))),
    }
}
