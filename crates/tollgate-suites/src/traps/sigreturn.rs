use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::handler::{Handled, SIGNALS, tried};
use super::memory::Region;
use crate::prelude::*;

timed_loop! {
    /// rt_sigreturn(2), number 15, from a frame that continues after this call, with this stack, with r12 and r13
    /// unchanged and 1 in r14. Word 0: the frame's ucontext; word 1: how often r14 returned as 1.
    ///
    /// A ucontext has its registers from 40 on: r12, r13, then rsp and rip at the numbers 4, 5, 15 and 16.
    rt_sigreturn: called
        "mov rcx, [r13]", "lea rdx, [rip + 3f]",
        "mov [rcx + 72], r12", "mov [rcx + 80], r13", "mov [rcx + 160], rsp", "mov [rcx + 168], rdx",
        "xor r14d, r14d",
        "mov rsp, rcx",
        "mov eax, 15",
        "syscall",
        "3:",
        "add [r13 + 8], r14"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/sigreturn",
    operation: "One rt_sigreturn(2) that restores all registers from a signal frame: the second half of a signal.",
    avoid: "Send fewer signals; signalfd reads them without a frame on the stack.",
    source: "sigreturn(2); signalfd(2)",
    crosses: &[KernelEntry, SystemCall, KernelCode, Signal, UserCopy],
    timed: |_| Timed::once("syscall", TimedLoop::Long(rt_sigreturn)),
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
        other => Err(format!("rt_sigreturn left {} in rax instead of the frame's value", other as i64)),
    }
}

// The kernel's struct ucontext (include/uapi/asm-generic/ucontext.h, arch/x86/include/uapi/asm/sigcontext.h): flags,
// link and stack, then 23 registers and the address of the floating-point state, 8 reserved words, the mask.
const UCONTEXT: usize = 304;
const R14: usize = 40 + 6 * 8;
const RAX: usize = 40 + 13 * 8;
const STATE: usize = 40 + 23 * 8;
const MASK: usize = 40 + 32 * 8;

// struct _fpx_sw_bytes: the kernel's description of the state, in bytes that the processor does not use.
const SOFTWARE: usize = 464;
const MAGIC: u32 = 0x4650_5853;
/// Size of the state with FXSAVE only.
const LEGACY: usize = 512;

/// The offset of the copy in its region. Below it is the stack of the call, which a signal would need.
const COPY: usize = 32 << 10;
/// The offset of the state's copy: XRSTOR needs it aligned to 64.
const COPY_OF_STATE: usize = COPY + 512;
const LENGTH: usize = 64 << 10;

/// The destination of `capture`, a signal handler.
static DESTINATION: AtomicUsize = AtomicUsize::new(0);

/// A handler that copies its signal frame, for returns from the copy.
unsafe extern "C" fn capture(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let copy = DESTINATION.load(Relaxed) as *mut u8;
    let context = context.cast::<u8>();
    // SAFETY: the kernel made the frame; the destination fits the context and, by the check here, the state.
    unsafe {
        let state = context.add(STATE).cast::<*const u8>().read();
        if copy.is_null() || state.is_null() {
            return;
        }
        let software = state.add(SOFTWARE).cast::<u32>();
        let length = if software.read() == MAGIC { software.add(1).read() as usize } else { LEGACY };
        if length > LENGTH - COPY_OF_STATE {
            return;
        }
        ptr::copy_nonoverlapping(context, copy.add(COPY), UCONTEXT);
        ptr::copy_nonoverlapping(state, copy.add(COPY_OF_STATE), length);
        copy.add(COPY + STATE).cast::<*mut u8>().write(copy.add(COPY_OF_STATE));
        copy.add(COPY + R14).cast::<u64>().write(1);
        copy.add(COPY + RAX).cast::<u64>().write(MARK);
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
        let mask = (copy as usize + MASK) as *mut u64;
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
