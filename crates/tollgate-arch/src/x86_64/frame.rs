//! The frames of loops.

/// The register of the context, as instructions name it.
pub const CONTEXT: &[u8; 3] = b"r13";

/// The text between that register and an offset.
pub const PLUS: &[u8; 3] = b" + ";

/// Writes a loop in 64-bit code: `timed_loop! { /// doc … name: "instruction", … }`. `; after "label:", …` may follow for code
/// that the loop calls, and `first "instruction", …;` may precede the body for code that runs once, before the loop.
///
/// In the body `r13` is the context and `r12` the counter, which must be kept; all else is free. Offsets from `r13` are checked
/// at compile time. A loop that does not use `r13` must be sound to run in any process: it can be made an instance without
/// `unsafe`, see `Loop::without_context` of tollgate-engine.
///
/// With `called` before the body, each iteration calls it and it returns, like a function of a program; the empty loop to
/// subtract makes the same call. Every loop that enters the kernel is written so. Kernels with safe returns (SRSO), and
/// processors that predict returns by a return stack, give the kernel's own returns two latencies: one for a loop without calls,
/// whose iterations all leave the predictors in the same state, and one for code that calls and returns, as all programs do.
///
/// `called call SYS_name(arguments)` is one system call, for both architectures: an argument is a number, `[N]` for the word at offset
/// N of the context, or `(N)` for its address.
///
/// After `; aarch64` come arm64's instructions, which this architecture ignores, or `none "reason"`, which it keeps to list the
/// operations that arm64 has. A loop that only arm64 has begins with `none "reason"`.
#[macro_export]
macro_rules! timed_loop {
    ($(#[$doc:meta])* $name:ident: none $why:literal; aarch64 $($other:tt)+) => {
        $(#[$doc])*
        #[allow(non_upper_case_globals)] // It stands for a function.
        const $name: $crate::frame::LongLoop = $crate::frame::LongLoop::absent(false, $why);
    };
    ($(#[$doc:meta])* $name:ident: called none $why:literal; aarch64 $($other:tt)+) => {
        $(#[$doc])*
        #[allow(non_upper_case_globals)] // It stands for a function.
        const $name: $crate::frame::LongLoop = $crate::frame::LongLoop::absent(true, $why);
    };
    ($(#[$doc:meta])* $name:ident: called call $call:ident($($a:tt $(, $b:tt $(, $c:tt $(, $d:tt $(, $e:tt $(, $f:tt)?)?)?)?)?)?)) => {
        $crate::timed_loop! {
            @ $(#[$doc])* $name: true; "call 9f"; after ".p2align 6", "9:", $($crate::call_argument!("rdi" "edi"; $a), $($crate::call_argument!("rsi" "esi"; $b), $($crate::call_argument!("rdx" "edx"; $c),
                $($crate::call_argument!("r10" "r10d"; $d), $($crate::call_argument!("r8" "r8d"; $e), $($crate::call_argument!("r9" "r9d"; $f),)?)?)?)?)?)?
                "mov eax, {number}", "syscall", "ret"; number $crate::libc::$call
        }
    };
    ($(#[$doc:meta])* $name:ident: called $($body:literal),* $(; aarch64 $($other:tt)*)?) => {
        $crate::timed_loop! {
            @ $(#[$doc])* $name: true; "call 9f"; after ".p2align 6", "9:", $($body,)* "ret" $(; aarch64 $($other)*)?
        }
    };
    (
        $(#[$doc:meta])* $name:ident: $(first $($first:literal),+;)? $($body:literal),* $(; after $($after:literal),+)?
        $(; aarch64 $($other:tt)*)?
    ) => {
        $crate::timed_loop! {
            @ $(#[$doc])* $name: false; $(first $($first),+;)? $($body),* $(; after $($after),+)?
                $(; aarch64 $($other)*)?
        }
    };
    (
        @ $(#[$doc:meta])* $name:ident: $called:literal; $(first $($first:literal),+;)? $($body:literal),* $(; after $($after:expr),+)?
        $(; number $number:expr)? $(; aarch64 $($other:tt)*)?
    ) => {
        $(#[$doc])*
        #[allow(non_upper_case_globals)] // It stands for a function.
        const $name: $crate::frame::LongLoop = {
            #[unsafe(naked)]
            unsafe extern "C" fn entry(iterations: u64, context: *mut $crate::frame::LoopContext) {
                core::arch::naked_asm!(
                    // Six pushes and 8 bytes keep the stack aligned to 16 for loops that call.
                    "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15", "sub rsp, 8",
                    "mov r12, rdi",
                    "mov r13, rsi",
                    "xor eax, eax",
                    $($($first,)+)?
                    // A loop that straddles a fetch window would change its time from build to build.
                    ".p2align 6",
                    "2:",
                    $($body,)*
                    "dec r12",
                    "jnz 2b",
                    "mov [r13 + 56], rax",
                    "add rsp, 8", "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
                    "ret",
                    $($($after,)+)?
                    $(number = const $number as i32,)?
                )
            }
            const INSTRUCTIONS: &[&str] = &[$($($first,)+)? $($body,)* $($($after,)+)?];
            // SAFETY: these are the loop's instructions. By the macro's contract, a loop that uses no `r13` is sound in any process.
            unsafe { $crate::frame::LongLoop::written(entry, INSTRUCTIONS, $called) }
                $(.absent_on($crate::architecture::Architecture::Arm64, $crate::why_none!($($other)*)))?
        };
    };
}
/// An instruction that loads an argument of a call into a register.
#[doc(hidden)]
#[macro_export]
macro_rules! call_argument {
    ($wide:literal $narrow:literal; 0) => {
        concat!("xor ", $narrow, ", ", $narrow)
    };
    ($wide:literal $narrow:literal; [$at:literal]) => {
        concat!("mov ", $wide, ", [r13 + ", $at, "]")
    };
    ($wide:literal $narrow:literal; ($at:literal)) => {
        concat!("lea ", $wide, ", [r13 + ", $at, "]")
    };
    ($wide:literal $narrow:literal; $number:literal) => {
        concat!("mov ", $narrow, ", ", $number)
    };
}

/// Writes a function of instructions: `code! { /// doc … name(argument: type, …) -> type { "instruction", … } }`. It is unsafe, in the C
/// calling convention. A block of arm64's instructions may follow, after `aarch64`.
#[macro_export]
macro_rules! code {
    (
        $(#[$doc:meta])* $visible:vis fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? { $($body:tt)* }
        $(aarch64 { $($other:tt)* })?
    ) => {
        $(#[$doc])*
        #[unsafe(naked)]
        $visible unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            core::arch::naked_asm!($($body)*)
        }
    };
}

/// Writes the loop of another thread: `contending_loop! { /// doc … name: "instruction", … }`. The body is one iteration. In it `r13`
/// points to the [`Side`](crate::frame::Side); `rbp` and `r12` must be kept. After each iteration, the loop takes a time stamp and checks the stop word, so an
/// iteration must end within about a microsecond. The partner of a loop that this architecture does not have is `none`.
///
/// The iteration count is stored with release semantics, so its reader sees what the iterations stored. Every x86-64 store has them.
#[macro_export]
macro_rules! contending_loop {
    ($(#[$doc:meta])* $name:ident: none; aarch64 $($other:tt)+) => {
        $(#[$doc])*
        #[allow(non_upper_case_globals)] // It stands for a function.
        const $name: $crate::frame::ContendingLoop = $crate::frame::no_contending_loop;
    };
    ($(#[$doc:meta])* $name:ident: $($body:literal),* $(; aarch64 $($other:tt)*)?) => {
        const _: bool = $crate::frame::uses_words(&[$($body),*], $crate::frame::WORDS * 8);
        $(#[$doc])*
        #[unsafe(naked)]
        unsafe extern "C" fn $name(side: *mut $crate::frame::Side) {
            core::arch::naked_asm!(
                "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15",
                "mov r13, rdi",
                "rdtsc", "shl rdx, 32", "or rax, rdx",
                "mov [r13 + 96], rax",
                "mov rbp, rax",
                ".p2align 6",
                "2:",
                $($body,)*
                "rdtsc", "shl rdx, 32", "or rax, rdx",
                "mov rcx, rax", "sub rcx, rbp", "mov rbp, rax",
                "cmp rcx, [r13 + 112]", "jbe 8f",
                "mov rdx, [r13 + 120]", "and edx, 63", "shl edx, 4",
                "mov [r13 + rdx + 384], rax", "mov [r13 + rdx + 392], rcx",
                "inc qword ptr [r13 + 120]",
                "8:",
                "inc qword ptr [r13 + 128]",
                "cmp qword ptr [r13 + 256], 0",
                "je 2b",
                "mov [r13 + 104], rbp",
                "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
                "ret",
            )
        }
    };
}
/// Writes a loop in 32-bit code as bytes between two symbols: `compat_loop! { /// doc … name = "symbol": "instruction", … }`. In
/// the body `edi` counts down and `esi` is `__kernel_vsyscall`; both must be kept.
#[macro_export]
macro_rules! compat_loop {
    ($(#[$doc:meta])* $name:ident = $symbol:literal: $($body:literal),*) => {
        core::arch::global_asm!(
            concat!(".pushsection .rodata.", $symbol, ", \"a\", @progbits"),
            ".code32",
            concat!($symbol, "_begin:"),
            "xor eax, eax",
            // A data section is padded with zeros by default, which are not NOPs.
            ".balign 64, 0x90",
            "2:",
            $($body,)*
            "dec edi",
            "jnz 2b",
            "ret",
            concat!($symbol, "_end:"),
            ".code64",
            ".popsection",
        );
        $(#[$doc])*
        fn $name() -> &'static [u8] {
            $crate::bytes_between!(concat!($symbol, "_begin"), concat!($symbol, "_end"))
        }
    };
}
#[cfg(test)]
mod tests {
    use crate::frame::uses_words;

    #[test]
    fn words_are_used_by_their_offset_below_the_limit() {
        assert!(!uses_words(&["mov rax, -1", "syscall"], 64));
        assert!(uses_words(&["mov rax, -1", "lea rsi, [r13 + 56]"], 64));
        for wrong in [
            "mov rax, [r13 + 57]",
            "mov r13, rax",
            "inc r13",
            "mov rax, [r13 + rcx]",
            "mov rax, [r13 - 8]",
            "push r13",
        ] {
            assert!(std::panic::catch_unwind(|| uses_words(&[wrong], 64)).is_err(), "{wrong}");
        }
    }
}
