//! Locks in instructions, written once: the same code is timed, stepped through, stressed, and measured in bytes.
//!
//! Every lock is a test-and-set and a release, as in the published comparison. `take` returns the word's old value in
//! `rax`; 0 means that the caller now holds the lock. Both get the [`Words`] in `rdi` and the [`Member`] in `rsi`,
//! preserve both, and may use `rax`, `rcx`, `rdx` and `r8` to `r11`. On arm64 the result is in `w0`, the arguments are in `x9` and
//! `x10`, and `x0` to `x17` may be used.
//!
//! Taking a lock has acquire semantics, and freeing it has release semantics. On x86-64 every load has the former and every store
//! the latter (Intel SDM vol. 3, 9.2.2), so a MOV frees a lock there; arm64 frees it by STLR, and takes it by a load-acquire. A lock
//! for one processor needs neither, since a processor sees its own stores in order (Arm ARM, B2.3).

use super::layout::{Member, Words};
use crate::prelude::*;

#[derive(Clone, Copy)]
pub(super) struct Code {
    /// Tries to acquire the lock; returns 0 on success.
    pub take: unsafe extern "C" fn(*mut Words, *mut Member) -> u32,
    pub release: unsafe extern "C" fn(*mut Words, *mut Member),
    /// A loop that acquires and releases. Words: 0: the words; 1: the member. Returns the OR of all results of `take`.
    pub uncontended: LongLoop,
    pub extent: Extent,
}

/// Address ranges, each from its first address to the one after its last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// The uncontended path.
    pub take: (usize, usize),
    pub release: (usize, usize),
    /// The contended paths and restarts.
    pub aside: [(usize, usize); 2],
    pub data: (usize, usize),
}

/// Writes a lock: `lock_code! { /// doc … name: take "instruction", …; aside "instruction", …; data "directive", …;
/// release "instruction", …; aside "instruction", …; aarch64 take …; aside …; release …; aside …; }`. Data and, on x86-64, `aside`
/// code go to other sections: the uncontended path is short. On arm64 `aside` code follows the return, because a conditional branch
/// reaches 1 MiB. Both have the same data.
///
/// Labels are numbers from 30 on, and from 40 on after `release`, because the loop contains all of them.
macro_rules! lock_code {
    ($(#[$doc:meta])* $name:ident:
        take $($take:literal),+;
        $(aside $($aside:literal),+;)?
        $(data $($data:literal),+;)?
        release $($release:literal),+;
        $(aside $($late:literal),+;)?
        aarch64
        take $($arm_take:literal),+;
        $(aside $($arm_aside:literal),+;)?
        release $($arm_release:literal),+;
        $(aside $($arm_late:literal),+;)?
    ) => {
        $(#[$doc])*
        #[allow(named_asm_labels, reason = "older compilers do not know that a naked function is there once")]
        pub(super) mod $name {
            use super::*;
            use tollgate_engine::timed_loop;

            tollgate_arch::code! {
                fn take(words: *mut Words, member: *mut Member) -> u32 {
                    // The stack is aligned to 16, as in the loop.
                    "sub rsp, 8",
                    lock_code!(@label $name "take"),
                    $($take,)+
                    lock_code!(@label $name "take_end"),
                    "add rsp, 8",
                    "ret",
                    concat!(".pushsection .text.tollgate_lock_", stringify!($name), ", \"ax\", @progbits"),
                    lock_code!(@label $name "aside"),
                    $($($aside,)+)?
                    lock_code!(@label $name "aside_end"),
                    ".popsection",
                    concat!(".pushsection .data.rel.ro.tollgate_lock_", stringify!($name), ", \"aw\", @progbits"),
                    ".balign 32",
                    lock_code!(@label $name "data"),
                    $($($data,)+)?
                    lock_code!(@label $name "data_end"),
                    ".popsection",
                }
                aarch64 {
                    "mov x9, x0",
                    "mov x10, x1",
                    lock_code!(@label $name "take"),
                    $($arm_take,)+
                    lock_code!(@label $name "take_end"),
                    "ret",
                    lock_code!(@label $name "aside"),
                    $($($arm_aside,)+)?
                    lock_code!(@label $name "aside_end"),
                    concat!(".pushsection .data.rel.ro.tollgate_lock_", stringify!($name), ", \"aw\", @progbits"),
                    ".balign 32",
                    lock_code!(@label $name "data"),
                    $($($data,)+)?
                    lock_code!(@label $name "data_end"),
                    ".popsection",
                }
            }

            tollgate_arch::code! {
                fn release(words: *mut Words, member: *mut Member) {
                    "sub rsp, 8",
                    lock_code!(@label $name "release"),
                    $($release,)+
                    lock_code!(@label $name "release_end"),
                    "add rsp, 8",
                    "ret",
                    concat!(".pushsection .text.tollgate_lock_", stringify!($name), ", \"ax\", @progbits"),
                    lock_code!(@label $name "late"),
                    $($($late,)+)?
                    lock_code!(@label $name "late_end"),
                    ".popsection",
                }
                aarch64 {
                    "mov x9, x0",
                    "mov x10, x1",
                    lock_code!(@label $name "release"),
                    $($arm_release,)+
                    lock_code!(@label $name "release_end"),
                    "ret",
                    lock_code!(@label $name "late"),
                    $($($arm_late,)+)?
                    lock_code!(@label $name "late_end"),
                }
            }

            timed_loop! {
                uncontended:
                    first "mov rdi, [r13]", "mov rsi, [r13 + 8]", "xor ebx, ebx";
                    $($take,)+
                    "or ebx, eax",
                    $($release,)+
                    "mov eax, ebx";
                    after ".pushsection .text.tollgate_lock_aside, \"ax\", @progbits",
                    $($($aside,)+)?
                    $($($late,)+)?
                    ".popsection",
                    ".pushsection .data.rel.ro.tollgate_lock_data, \"aw\", @progbits",
                    ".balign 32",
                    $($($data,)+)?
                    ".popsection";
                aarch64
                    first "ldr x9, [x20]", "ldr x10, [x20, #8]", "mov w21, 0";
                    $($arm_take,)+
                    "orr w21, w21, w0",
                    $($arm_release,)+
                    "mov w0, w21";
                    after $($($arm_aside,)+)?
                    $($($arm_late,)+)?
                    ".pushsection .data.rel.ro.tollgate_lock_data, \"aw\", @progbits",
                    ".balign 32",
                    $($($data,)+)?
                    ".popsection"
            }

            pub(in crate::locks) fn code() -> Code {
                let extent = Extent {
                    take: lock_code!(@range $name "take"),
                    release: lock_code!(@range $name "release"),
                    aside: [lock_code!(@range $name "aside"), lock_code!(@range $name "late")],
                    data: lock_code!(@range $name "data"),
                };
                Code { take, release, uncontended, extent }
            }
        }
    };
    (@label $name:ident $part:literal) => {
        concat!(".globl tollgate_lock_", stringify!($name), "_", $part, "\n",
            ".hidden tollgate_lock_", stringify!($name), "_", $part, "\n",
            "tollgate_lock_", stringify!($name), "_", $part, ":")
    };
    (@range $name:ident $part:literal) => {
        tollgate_arch::addresses!(
            concat!("tollgate_lock_", stringify!($name), "_", $part),
            concat!("tollgate_lock_", stringify!($name), "_", $part, "_end")
        )
    };
}

lock_code! {
    /// A load and a store: a preemption between the two breaks mutual exclusion. Flawed on purpose, for tests only.
    plain:
        take "mov eax, [rdi]", "test eax, eax", "jnz 30f", "mov dword ptr [rdi], 1", "30:";
        release "mov dword ptr [rdi], 0";
    aarch64
        take "ldar w0, [x9]", "cbnz w0, 30f", "mov w11, 1", "str w11, [x9]", "30:";
        release "stlr wzr, [x9]";
}

lock_code! {
    /// XCHG with memory is atomic without a prefix (Intel SDM volume 3, 9.1.2.1). SWPA exchanges and acquires.
    xchg:
        take "mov eax, 1", "xchg [rdi], eax";
        release "mov dword ptr [rdi], 0";
    aarch64
        take ".arch_extension lse", "mov w0, 1", "swpa w0, w0, [x9]";
        release "stlr wzr, [x9]";
}

lock_code! {
    /// LOCK CMPXCHG, or an exclusive load and store, which every arm64 has: writes only if the lock is free.
    cmpxchg:
        take "xor eax, eax", "mov ecx, 1", "lock cmpxchg [rdi], ecx";
        release "mov dword ptr [rdi], 0";
    aarch64
        take "mov w11, 1", "30:", "ldaxr w0, [x9]", "cbnz w0, 31f", "stxr w12, w11, [x9]", "cbnz w12, 30b", "31:";
        release "stlr wzr, [x9]";
}

lock_code! {
    /// A restartable sequence (rseq(2); Documentation/userspace-api/rseq.rst). The kernel sends a thread that was
    /// preempted within it to its abort handler, so only an uninterrupted thread executes the store at its end. It
    /// replaces the published test-and-set, and like that is safe on one processor only.
    rseq:
        take
            "30:",
            // The descriptor is set before each sequence, because the kernel clears it at an abort.
            "mov rcx, [rsi]", "lea rax, [rip + 35f]", "mov [rcx + 8], rax",
            "31:",
            "mov eax, [rdi]", "test eax, eax", "jnz 33f",
            "mov dword ptr [rdi], 1",
            "32:",
            "33:";
        aside
            // UD1 with the signature as its operand, which rseq(2) requires before an abort handler.
            ".byte 0x0f, 0xb9, 0x3d", ".long 0x53053053",
            "34:", "inc qword ptr [rsi + 8]", "jmp 30b";
        data "35:", ".long 0, 0", ".quad 31b, 32b - 31b, 34b";
        release "mov dword ptr [rdi], 0";
    aarch64
        take
            "30:",
            "ldr x11, [x10]", "adrp x12, 35f", "add x12, x12, :lo12:35f", "str x12, [x11, 8]",
            "31:",
            "ldr w0, [x9]", "cbnz w0, 33f",
            "mov w12, 1",
            "str w12, [x9]",
            "32:",
            "33:";
        aside
            // The signature is BRK with a number of its own.
            ".inst 0xd428bc00",
            "34:", "ldr x12, [x10, 8]", "add x12, x12, 1", "str x12, [x10, 8]", "b 30b";
        release "str wzr, [x9]";
}

lock_code! {
    /// Like `rseq`, but checks within the sequence that this is the lock's processor. Elsewhere it returns 2 and
    /// writes nothing, so it is safe even if threads migrate. A thread may release it elsewhere, so it acquires and releases.
    rseq_cpu:
        take
            "30:",
            "mov rcx, [rsi]", "lea rax, [rip + 35f]", "mov [rcx + 8], rax",
            "31:",
            "mov edx, [rdi + 64]", "cmp edx, [rcx + 4]", "jne 36f",
            "mov eax, [rdi]", "test eax, eax", "jnz 33f",
            "mov dword ptr [rdi], 1",
            "32:",
            "33:";
        aside
            ".byte 0x0f, 0xb9, 0x3d", ".long 0x53053053",
            "34:", "inc qword ptr [rsi + 8]", "jmp 30b",
            "36:", "mov eax, 2", "jmp 33b";
        data "35:", ".long 0, 0", ".quad 31b, 32b - 31b, 34b";
        release "mov dword ptr [rdi], 0";
    aarch64
        take
            "30:",
            "ldr x11, [x10]", "adrp x12, 35f", "add x12, x12, :lo12:35f", "str x12, [x11, 8]",
            "31:",
            "ldr w12, [x9, 64]", "ldr w13, [x11, 4]", "cmp w12, w13", "b.ne 36f",
            "ldar w0, [x9]", "cbnz w0, 33f",
            "mov w12, 1",
            "str w12, [x9]",
            "32:",
            "33:";
        aside
            ".inst 0xd428bc00",
            "34:", "ldr x12, [x10, 8]", "add x12, x12, 1", "str x12, [x10, 8]", "b 30b",
            "36:", "mov w0, 2", "b 33b";
        release "stlr wzr, [x9]";
}

/// The test and the set between the entry and the exit of Lamport's fast mutual exclusion (ACM TOCS 5(1), 1987,
/// algorithm 2). The parameter is the fence after x = i and after y = i. A waiting thread calls sched_yield(2).
///
/// The order of all other accesses is x86-64's own. On arm64 these instructions give it: x = i after `b[i]` = true, the reads of x
/// and of the lock before what follows them, y = 0 after the lock's store, and `b[i]` = false after y = 0.
macro_rules! lamport_code {
    (
        $(#[$doc:meta])* $name:ident: $fence:literal;
        aarch64 $barrier:literal, $set_x:literal, $get_x:literal, $get_lock:literal, $clear_y:literal, $clear_b:literal
    ) => {
        lock_code! {
            $(#[$doc])*
            $name:
                take
                    "mov rdx, [rsi + 32]", "mov ecx, [rsi + 16]",
                    "30:",
                    "mov byte ptr [rdx + rcx + 128], 1",
                    "mov [rdx], ecx",
                    $fence,
                    "cmp dword ptr [rdx + 64], 0", "jne 34f",
                    "mov [rdx + 64], ecx",
                    $fence,
                    "cmp [rdx], ecx", "jne 35f",
                    "31:",
                    "mov eax, [rdi]", "test eax, eax", "jnz 32f",
                    "mov dword ptr [rdi], 1",
                    "32:",
                    "mov dword ptr [rdx + 64], 0",
                    "mov byte ptr [rdx + rcx + 128], 0";
                aside
                    // y is not 0: b[i] = false, and wait until y is 0.
                    "34:", "mov byte ptr [rdx + rcx + 128], 0",
                    "36:", "mov eax, 24", "syscall", "inc qword ptr [rsi + 72]",
                    "cmp dword ptr [rdx + 64], 0", "jne 36b",
                    "mov ecx, [rsi + 16]", "jmp 30b",
                    // x is another's: wait until all b are false, then check y.
                    "35:", "mov byte ptr [rdx + rcx + 128], 0", "mov r8d, [rsi + 24]",
                    "37:", "cmp byte ptr [rdx + r8 + 128], 0", "je 38f",
                    "mov eax, 24", "syscall", "inc qword ptr [rsi + 72]", "jmp 37b",
                    "38:", "dec r8d", "jnz 37b",
                    "mov ecx, [rsi + 16]",
                    "cmp [rdx + 64], ecx", "je 31b",
                    "jmp 36b";
                release "mov dword ptr [rdi], 0";
            aarch64
                take
                    "ldr x11, [x10, 32]", "ldr w12, [x10, 16]",
                    "add x13, x11, x12", "add x13, x13, 128", "add x14, x11, 64", "mov w15, 1",
                    "30:",
                    "strb w15, [x13]",
                    $set_x,
                    $barrier,
                    "ldr w16, [x14]", "cbnz w16, 34f",
                    "str w12, [x14]",
                    $barrier,
                    $get_x, "cmp w16, w12", "b.ne 35f",
                    "31:",
                    $get_lock, "cbnz w0, 32f",
                    "str w15, [x9]",
                    "32:",
                    $clear_y,
                    $clear_b;
                aside
                    "34:", "strb wzr, [x13]",
                    "36:", "mov x8, 124", "svc 0", "ldr x16, [x10, 72]", "add x16, x16, 1", "str x16, [x10, 72]",
                    "ldr w16, [x14]", "cbnz w16, 36b",
                    "b 30b",
                    "35:", "strb wzr, [x13]", "ldr w17, [x10, 24]",
                    "37:", "add x1, x11, x17", "add x1, x1, 128", "ldarb w2, [x1]", "cbz w2, 38f",
                    "mov x8, 124", "svc 0", "ldr x16, [x10, 72]", "add x16, x16, 1", "str x16, [x10, 72]", "b 37b",
                    "38:", "subs w17, w17, 1", "b.ne 37b",
                    "ldar w16, [x14]", "cmp w16, w12", "b.eq 31b",
                    "b 36b";
                release "stlr wzr, [x9]";
        }
    };
}

lamport_code! {
    /// With fences, for several processors.
    lamport: "mfence";
    aarch64 "dmb ish", "stlr w12, [x11]", "ldar w16, [x11]", "ldar w0, [x9]", "stlr wzr, [x14]", "stlrb wzr, [x13]"
}

lamport_code! {
    /// Without fences, for one processor, which sees its own stores in order.
    lamport_up: "";
    aarch64 "", "str w12, [x11]", "ldr w16, [x11]", "ldr w0, [x9]", "str wzr, [x14]", "strb wzr, [x13]"
}

lock_code! {
    /// The kernel tests and sets: futex(2), FUTEX_TRYLOCK_PI, which writes the thread's ID. The release follows the
    /// manual page: CMPXCHG without waiters, else FUTEX_UNLOCK_PI.
    futex_trylock_pi:
        take
            "mov r8, rsi", "mov esi, 136", "mov eax, 202", "syscall", "mov rsi, r8";
        release
            "mov eax, [rsi + 40]", "xor ecx, ecx", "lock cmpxchg [rdi], ecx", "jne 41f",
            "40:";
        aside
            "41:", "mov r8, rsi", "mov esi, 135", "mov eax, 202", "syscall", "mov rsi, r8", "jmp 40b";
    aarch64
        take
            "mov x0, x9", "mov x1, 136", "mov x8, 98", "svc 0";
        release
            "ldr w11, [x10, 40]",
            "42:", "ldxr w12, [x9]", "cmp w12, w11", "b.ne 41f", "stlxr w12, wzr, [x9]", "cbnz w12, 42b",
            "40:";
        aside
            "41:", "mov x0, x9", "mov x1, 135", "mov x8, 98", "svc 0", "b 40b";
}

lock_code! {
    /// An eventfd(2) as a semaphore (EFD_SEMAPHORE, EFD_NONBLOCK): a read acquires it, a write releases it.
    eventfd:
        take
            "mov r8, rdi", "mov r9, rsi", "mov edi, [r9 + 48]", "lea rsi, [r9 + 56]", "mov edx, 8",
            "xor eax, eax", "syscall",
            "sub rax, 8", "mov rdi, r8", "mov rsi, r9";
        release
            "mov r8, rdi", "mov r9, rsi", "mov edi, [r9 + 48]", "lea rsi, [r9 + 56]", "mov edx, 8",
            "mov eax, 1", "syscall",
            "mov rdi, r8", "mov rsi, r9";
    aarch64
        take
            "ldr w0, [x10, 48]", "add x1, x10, 56", "mov x2, 8", "mov x8, 63", "svc 0", "sub x0, x0, 8";
        release
            "ldr w0, [x10, 48]", "add x1, x10, 56", "mov x2, 8", "mov x8, 64", "svc 0";
}

lock_code! {
    /// A System V semaphore (semop(2), IPC_NOWAIT).
    semop:
        take
            "mov r8, rdi", "mov r9, rsi", "mov edi, [r9 + 48]", "lea rsi, [r9 + 80]", "mov edx, 1",
            "mov eax, 65", "syscall",
            "mov rdi, r8", "mov rsi, r9";
        release
            "mov r8, rdi", "mov r9, rsi", "mov edi, [r9 + 48]", "lea rsi, [r9 + 88]", "mov edx, 1",
            "mov eax, 65", "syscall",
            "mov rdi, r8", "mov rsi, r9";
    aarch64
        take
            "ldr w0, [x10, 48]", "add x1, x10, 80", "mov x2, 1", "mov x8, 193", "svc 0";
        release
            "ldr w0, [x10, 48]", "add x1, x10, 88", "mov x2, 1", "mov x8, 193", "svc 0";
}

lock_code! {
    pthread_trylock:
        take
            "push rdi", "push rsi", "call qword ptr [rip + pthread_mutex_trylock@GOTPCREL]", "pop rsi", "pop rdi";
        release
            "push rdi", "push rsi", "call qword ptr [rip + pthread_mutex_unlock@GOTPCREL]", "pop rsi", "pop rdi";
    aarch64
        take
            "stp x9, x10, [sp, -32]!", "str x30, [sp, 16]", "mov x0, x9", "bl pthread_mutex_trylock", "ldr x30, [sp, 16]",
            "ldp x9, x10, [sp], 32";
        release
            "stp x9, x10, [sp, -32]!", "str x30, [sp, 16]", "mov x0, x9", "bl pthread_mutex_unlock", "ldr x30, [sp, 16]",
            "ldp x9, x10, [sp], 32";
}

lock_code! {
    sem_trywait:
        take
            "push rdi", "push rsi", "call qword ptr [rip + sem_trywait@GOTPCREL]", "pop rsi", "pop rdi";
        release
            "push rdi", "push rsi", "call qword ptr [rip + sem_post@GOTPCREL]", "pop rsi", "pop rdi";
    aarch64
        take
            "stp x9, x10, [sp, -32]!", "str x30, [sp, 16]", "mov x0, x9", "bl sem_trywait", "ldr x30, [sp, 16]",
            "ldp x9, x10, [sp], 32";
        release
            "stp x9, x10, [sp, -32]!", "str x30, [sp, 16]", "mov x0, x9", "bl sem_post", "ldr x30, [sp, 16]",
            "ldp x9, x10, [sp], 32";
}
