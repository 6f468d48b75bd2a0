use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tollgate_arch::signal::{FRAME_MASK, copy_frame};

use super::handler::{Handled, SIGNALS, tried};
use super::memory::Region;
use crate::prelude::*;

timed_loop! {
    /// rt_sigreturn(2), number 15, from a frame that continues after this call, with this stack, with r12 and r13
    /// unchanged and 1 in r14. Word 0: the frame's ucontext; word 1: how often r14 returned as 1.
    ///
    /// A ucontext has its registers from 40 on: r12, r13, then rsp and rip at the numbers 4, 5, 15 and 16. That of arm64 has them
    /// from 184 on, the stack at 432, the address at 440 and v8 at 608; its mark is in x21, and the stack begins 128 bytes before.
    rt_sigreturn: called
        "mov rcx, [r13]", "lea rdx, [rip + 3f]",
        "mov [rcx + 72], r12", "mov [rcx + 80], r13", "mov [rcx + 160], rsp", "mov [rcx + 168], rdx",
        "xor r14d, r14d",
        "mov rsp, rcx",
        "mov eax, 15",
        "syscall",
        "3:",
        "add [r13 + 8], r14";
    aarch64
        "ldr x9, [x20]", "adr x10, 3f", "mov x11, sp", "mov x12, x20",
        "stp x19, x12, [x9, 336]", "str x30, [x9, 424]", "stp x11, x10, [x9, 432]",
        // A caller keeps values in the low halves of these.
        "stp q8, q9, [x9, 608]", "stp q10, q11, [x9, 640]", "stp q12, q13, [x9, 672]", "stp q14, q15, [x9, 704]",
        "mov x21, 0",
        "sub sp, x9, 128",
        "mov x8, 139",
        "svc 0",
        "3:",
        "ldr x9, [x20, #8]", "add x9, x9, x21", "str x9, [x20, #8]"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/sigreturn",
    operation: "One rt_sigreturn(2) that restores all registers from a signal frame: the second half of a signal.",
    avoid: "Send fewer signals; signalfd reads them without a frame on the stack.",
    source: "sigreturn(2); signalfd(2)",
    crosses: &[KernelEntry, SystemCall, KernelCode, Signal, UserCopy],
    timed: |_| Timed::once("syscall/svc", TimedLoop::Long(rt_sigreturn)),
    counts: Some("returns"),
    kind: Kind::Instance(|timed, _, _| {
        let around = FromFrame::captured()?;
        // SAFETY: before each batch word 0 is set to a frame that the kernel made for this thread; the loop fills in
        // its target. The loop's hooks own the frame.
        let timed = unsafe { Loop::new(timed, [0; 7], None, from_the_frame) }?;
        Ok(tried(timed.with_hooks(around), 1, "rt_sigreturn(2)")?.here())
    }),
    absence: &[
        (libc::SIGSEGV, "rt_sigreturn(2) does not accept the copy of a signal frame here"),
        KILLED_BY_FILTER,
    ],
    ..PLAIN
};

const MARK: u64 = 0x7011_6a7e;

fn from_the_frame(result: u64) -> Result<(), String> {
    match result {
        MARK => Ok(()),
        other => Err(format!("rt_sigreturn left {} instead of the frame's value", other as i64)),
    }
}

/// The offset of the copy in its region. Below it is the stack of the call, which a signal would need.
const COPY: usize = 32 << 10;
const LENGTH: usize = 64 << 10;

/// The destination of `capture`, a signal handler.
static DESTINATION: AtomicUsize = AtomicUsize::new(0);

/// A handler that copies its signal frame, for returns from the copy.
unsafe extern "C" fn capture(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let copy = DESTINATION.load(Relaxed) as *mut u8;
    // SAFETY: the kernel made the frame, and the destination has this room after the offset, which is a multiple of a page.
    if copy.is_null() || !unsafe { copy_frame(context.cast(), copy.add(COPY), LENGTH - COPY, MARK) } {
        return;
    }
    SIGNALS.store(SIGNALS.load(Relaxed) + 1, Relaxed);
}

struct FromFrame {
    region: Region,
}

impl FromFrame {
    fn captured() -> Result<Self> {
        let region = Region::anonymous(LENGTH, libc::PROT_READ | libc::PROT_WRITE)?;
        region.small_pages();
        DESTINATION.store(region.start() as usize, Relaxed);
        let mut handled = Handled::of_code(libc::SIGUSR1, capture, 0);
        handled.install()?;
        // SAFETY: the handler that was just installed handles the signal before the call returns.
        let raised = checked(unsafe { libc::raise(libc::SIGUSR1) });
        let frames = handled.remove();
        DESTINATION.store(0, Relaxed);
        raised.or_refused("tgkill(2) is refused")?;
        match frames {
            1 => Ok(Self { region }),
            _ => Err(skip!("no signal frame could be copied: its layout is not Linux's")),
        }
    }
}

impl BatchHooks for FromFrame {
    fn before(&mut self, context: &mut LoopContext, _: u64) -> Result<()> {
        let copy = self.region.start() + COPY as u64;
        let mask = (copy as usize + FRAME_MASK) as *mut u64;
        // The return also restores a mask: this is the current one.
        // SAFETY: with no set the call only writes 8 bytes within the region.
        unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, ptr::null::<u64>(), mask, 8) };
        context.words[0] = copy;
        context.words[1] = 0;
        Ok(())
    }

    fn after(&mut self, context: &LoopContext) -> Result<Option<u64>> {
        Ok(Some(context.words[1]))
    }
}
