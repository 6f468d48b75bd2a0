use crate::prelude::*;

timed_loop! {
    /// Number 110 in the 64-bit table.
    inline: "mov eax, 110", "syscall"; aarch64 "mov x8, 173", "svc 0"
}

timed_loop! {
    wrapper: "call [r13]"; aarch64 "ldr x9, [x20]", "blr x9"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/libc",
    operation: "One getppid: by a system call in the loop, or by the C library's function, which is called, enters the kernel and returns.",
    avoid: "Make fewer calls. The return after a kernel entry is mispredicted in every program. entry/return has the latency of deeper calls.",
    source: "getppid(2); Linux Documentation/admin-guide/hw-vuln/srso.rst",
    crosses: &[Call, KernelEntry, SystemCall, KernelCode],
    crossed_in: |params, boundary| boundary != Call || word(params, "by") == "wrapper",
    timed: |params| By::try_from(params).map_or(NOT_TIMED, By::value),
    cases: |_| each_word("by", By::WORDS),
    baseline: Baseline::Case(|_| Some(params(&[("by", "inline".into())]))),
    kind: Kind::Instance(|timed, params, _| {
        // SAFETY: getppid(2) has no preconditions.
        let parent = unsafe { libc::getppid() };
        let same = move |result: u64| {
            if result as i32 == parent {
                Ok(())
            } else {
                Err(format!("getppid returned {} instead of {parent}", result as i64))
            }
        };
        if By::try_from(params)? == By::Inline {
            return Ok(Loop::without_context(timed, same)?.here());
        }
        let function: unsafe extern "C" fn() -> libc::pid_t = libc::getppid;
        let words = [function as usize as u64, 0, 0, 0, 0, 0, 0];
        // SAFETY: word 0 is a function without parameters, which lives as long as the process.
        Ok(unsafe { Loop::new(timed, words, None, same) }?.here())
    }),
    ..PLAIN
};

words! {
    enum By("by"): Timed {
        Inline = "inline" => Timed::once("syscall/svc", TimedLoop::Long(inline)),
        Wrapper = "wrapper" => Timed::once("call/blr", TimedLoop::Long(wrapper)),
    }
}
