use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{io, mem, sync::Arc, sync::mpsc};

use super::handler::{TRAP, tried};
use super::memory::{FILLING, Region, filled};
use super::touched;
use crate::descriptor::owned;
use crate::prelude::*;
use crate::server::{Server, Stop};

// include/uapi/linux/userfaultfd.h
const UFFD_USER_MODE_ONLY: libc::c_int = 1;
const UFFD_API: u64 = 0xaa;
const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;
const UFFDIO_UNREGISTER: libc::c_ulong = 0x8010_aa01;
const UFFDIO_COPY: libc::c_ulong = 0xc028_aa03;
const UFFDIO_REGISTER_MODE_MISSING: u64 = 1;
const UFFD_EVENT_PAGEFAULT: u8 = 0x12;

/// Pages of the region, and the limit of faults in a batch.
const MOST: usize = 64;

timed_loop! {
    /// Loads from a page and advances to the next. Word 0: the page; word 1: its size.
    load: called "xor ecx, ecx", "add rcx, [r13]", "mov rax, [rcx]", "add qword ptr [r13], 4096";
    aarch64 "ldr x9, [x20]", "ldr x0, [x9]", "ldr x10, [x20, #8]", "add x9, x9, x10", "str x9, [x20]"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/userfaultfd",
    operation: "One load from a missing page that a thread on the same processor handles by userfaultfd(2) and UFFDIO_COPY.",
    avoid: "Resolve several pages with one UFFDIO_COPY, and handle them on another processor.",
    source: "userfaultfd(2); ioctl_userfaultfd(2)",
    crosses: &[KernelEntry, Exception, SystemCall, KernelCode, PageFault, UserCopy, ContextSwitch, WakeUp],
    timed: |_| Timed::once("mov/ldr", TimedLoop::Long(load)),
    counts: Some("events"),
    kind: Kind::Instance(|timed, _, _| {
        let around = Pager::new()?;
        // SAFETY: before each batch the hooks set word 0 to the start of their region, which has a page for each load.
        let timed = unsafe { Loop::new(timed, [0; 7], None, filled) }?.with_hooks(around);
        Ok(tried(timed, 1, "a page that userfaultfd(2) watches")?.here().with_most(MOST as u64))
    }),
    ..TRAP
};

/// struct uffdio_api.
#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// struct uffdio_register.
#[repr(C)]
struct Register {
    start: u64,
    length: u64,
    mode: u64,
    ioctls: u64,
}

/// struct uffdio_copy.
#[repr(C)]
struct Copy {
    to: u64,
    from: u64,
    length: u64,
    mode: u64,
    copied: i64,
}

/// struct uffd_msg, for a page fault.
#[repr(C)]
#[derive(Default)]
struct Message {
    event: u8,
    reserved: [u8; 7],
    flags: u64,
    address: u64,
    feature: u64,
}

/// Hooks around a batch of faults: a registered region, and during the batch the handling thread. Between batches there
/// is no thread, so that other instances have the process to themselves.
struct Pager {
    /// The first field, so that it ends before the region is unmapped.
    server: Option<Server>,
    region: Region,
    watch: Arc<OwnedFd>,
    /// The page that is copied.
    source: Arc<Mapping>,
    handled: Arc<AtomicU64>,
}

impl Pager {
    fn new() -> Result<Self> {
        let region = touched::small(MOST)?;
        let watch = open()?;
        let mut api = Api { api: UFFD_API, features: 0, ioctls: 0 };
        // SAFETY: the structure is uffdio_api as the kernel defines it.
        checked(unsafe { libc::ioctl(watch.as_raw_fd(), UFFDIO_API, &mut api) })
            .or_refused("ioctl(UFFDIO_API) is refused")?;
        let mut register = Register {
            start: region.start(),
            length: region.length() as u64,
            mode: UFFDIO_REGISTER_MODE_MISSING,
            ioctls: 0,
        };
        // SAFETY: the structure is uffdio_register as the kernel defines it, and the range is the region's.
        checked(unsafe { libc::ioctl(watch.as_raw_fd(), UFFDIO_REGISTER, &mut register) })
            .or_refused("ioctl(UFFDIO_REGISTER) is refused")?;
        let source = Mapping::anonymous(page_size(), libc::MAP_PRIVATE).or_refused("mmap(2) is refused")?;
        // SAFETY: nothing else refers to the new page.
        unsafe { source.address().write_bytes(FILLING, source.length()) };
        let (watch, source) = (Arc::new(watch), Arc::new(source));
        Ok(Self { server: None, region, watch, source, handled: Arc::default() })
    }

    fn start(&mut self) -> Result<()> {
        let (ready, started) = mpsc::sync_channel(1);
        let (watch, source, handled) = (self.watch.clone(), self.source.clone(), self.handled.clone());
        handled.store(0, Relaxed);
        let range = [self.region.start(), self.region.length() as u64];
        let serve = move |stop: &Stop| {
            let fill =
                || bring(&watch, &source).map(|brought| _ = handled.fetch_add(u64::from(brought), Relaxed));
            if ready.send(()).is_ok() && stop.serve(&watch, fill).is_err() {
                give_up(&watch, range);
            }
        };
        self.server = Some(Server::start(serve)?);
        started.recv().map_err(|_| fail!("the thread that fills pages ended early"))
    }

    fn stop(&mut self) {
        self.server = None;
    }
}

impl BatchHooks for Pager {
    fn before(&mut self, context: &mut LoopContext, iterations: u64) -> Result<()> {
        if iterations > MOST as u64 {
            return Err(fail!("{iterations} loads were requested, there are {MOST} pages"));
        }
        self.stop();
        self.region.discard()?;
        context.words[..2].copy_from_slice(&[self.region.start(), page_size() as u64]);
        self.start()
    }

    fn after(&mut self, _: &LoopContext) -> Result<Option<u64>> {
        self.stop();
        self.region.discard()?;
        Ok(Some(self.handled.load(Relaxed)))
    }

    fn blocks(&self) -> bool {
        true
    }
}

fn open() -> Result<OwnedFd> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: the call takes flags only.
    let call = |flags: libc::c_int| owned(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) });
    // Before Linux 5.11 there was no flag for user faults only.
    let opened = call(flags | UFFD_USER_MODE_ONLY).or_else(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => call(flags),
        _ => Err(error),
    });
    opened.or_refused("userfaultfd(2) is refused")
}

/// Unregisters the region, which wakes a waiting load: a wrong page is detected, but a missing one would hang.
fn give_up(watch: &OwnedFd, mut range: [u64; 2]) {
    // SAFETY: the two words are uffdio_range as the kernel defines it.
    unsafe { libc::ioctl(watch.as_raw_fd(), UFFDIO_UNREGISTER, range.as_mut_ptr()) };
}

/// Reads one event and fills its page. Returns false if there is no event.
fn bring(watch: &OwnedFd, source: &Mapping) -> io::Result<bool> {
    let mut message = Message::default();
    // SAFETY: `message` is valid for writing its own length.
    let length =
        unsafe { libc::read(watch.as_raw_fd(), (&raw mut message).cast(), mem::size_of::<Message>()) };
    if length < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::WouldBlock { Ok(false) } else { Err(error) };
    }
    if message.event != UFFD_EVENT_PAGEFAULT {
        return Ok(false);
    }
    let (from, length) = (source.address() as u64, source.length() as u64);
    let mut copy = Copy { to: message.address & !(length - 1), from, length, mode: 0, copied: 0 };
    // SAFETY: the structure is uffdio_copy as the kernel defines it; it fills a missing page.
    checked(unsafe { libc::ioctl(watch.as_raw_fd(), UFFDIO_COPY, &mut copy) }).map(|_| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_load_waits_for_an_ended_thread() {
        let pager = match Pager::new() {
            Ok(pager) => pager,
            Err(refusal) => return eprintln!("skipped: {refusal:?}"),
        };
        let (watch, range) = (pager.watch.clone(), [pager.region.start(), pager.region.length() as u64]);
        let quitter = std::thread::spawn(move || {
            // The fault is pending.
            let mut asked = libc::pollfd { fd: watch.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one entry, valid for writing.
            unsafe { libc::poll(&mut asked, 1, 10_000) };
            give_up(&watch, range);
        });
        assert_eq!(pager.region.read(0), 0, "the kernel's page, not the thread's");
        quitter.join().expect("no panic");
    }
}
