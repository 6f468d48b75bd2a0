use crate::prelude::*;
use crate::uring::{Ring, refused};

timed_loop! {
    /// Submits a batch of prepared no-operations, waits for all of them, and consumes their completions. Words: 0: the
    /// ring's descriptor; 1: the batch; addresses: 2: submission tail; 3: completion head; 4: completion tail.
    ///
    /// On x86 a plain store is a release and a plain load an acquire, as the ring's protocol requires; arm64 has instructions for these.
    submit_and_reap: called
        "mov rcx, [r13 + 16]", "mov eax, [rcx]", "add eax, [r13 + 8]", "mov [rcx], eax",
        "mov rdi, [r13]", "mov rsi, [r13 + 8]", "mov rdx, rsi", "mov r10d, 1", "xor r8d, r8d", "xor r9d, r9d",
        "mov eax, 426",
        "syscall",
        "mov rcx, [r13 + 32]", "mov edx, [rcx]", "mov rcx, [r13 + 24]", "mov [rcx], edx";
    aarch64
        "ldr x9, [x20, #16]", "ldr w10, [x9]", "ldr w11, [x20, #8]", "add w10, w10, w11", "stlr w10, [x9]",
        "ldr x0, [x20]", "ldr x1, [x20, #8]", "mov x2, x1", "mov x3, 1", "mov x4, 0", "mov x5, 0", "mov x8, 426",
        "svc 0",
        "ldr x9, [x20, #32]", "ldar w10, [x9]", "ldr x9, [x20, #24]", "stlr w10, [x9]"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/io-uring-nop",
    operation: "One io_uring no-operation; one system call submits a batch of this size and waits for it.",
    avoid: "Submit several requests with each io_uring_enter, or let the kernel poll the queue (IORING_SETUP_SQPOLL).",
    source: "io_uring_enter(2); io_uring_setup(2)",
    crosses: &[KernelEntry, SystemCall, KernelCode, IoUring],
    timed: |_| Timed::once("syscall/svc", TimedLoop::Long(submit_and_reap)),
    cases: |_| each("batch", &[1, 8, 64]),
    headlines: &[Headline::of(Section::Entry, "io_uring NOP, batch of 64", &[("batch", "64")])],
    kind: Kind::Instance(|timed, params, _| {
        let batch = number(params, "batch");
        let ring = Ring::new(batch as u32).map_err(|error| refused(&error))?;
        let words = ring.words(batch);
        let submitted = move |result: u64| match result as i64 {
            count if count == batch as i64 => Ok(()),
            other => Err(format!("io_uring_enter returned {other} instead of {batch}")),
        };
        // SAFETY: the instance owns the mappings; entries below `batch` stay no-operations, which the kernel reads.
        Ok(unsafe { Loop::new(timed, words, Some(Box::new(ring)), submitted) }?.here().with_ops(batch))
    }),
    ..PLAIN
};
