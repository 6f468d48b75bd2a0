//! The frames of loops.

/// The register of the context, as instructions name it.
pub const CONTEXT: &[u8; 3] = b"x20";

/// The text between that register and an offset.
pub const PLUS: &[u8; 3] = b", #";

/// Writes a loop as on x86-64, from what follows `; aarch64`: instructions, or `none "reason"` for an operation that arm64 does
/// not have.
///
/// In the body `x20` is the context and `x19` the counter, which must be kept, as must `x30` after `called`; all else is free.
/// `x0` is the result. Offsets from `x20` are checked at compile time.
#[macro_export]
macro_rules! timed_loop {
    ($(#[$doc:meta])* $name:ident: none $x86:literal; aarch64 $($body:tt)+) => {
        $(#[$doc])*
        #[allow(non_upper_case_globals)] // It stands for a function.
        const $name: $crate::frame::LongLoop = {
            $crate::timed_loop! { $name: ""; aarch64 $($body)+ }
            $name.absent_on($crate::architecture::Architecture::X86_64, Some($x86))
        };
    };
    ($(#[$doc:meta])* $name:ident: called none $x86:literal; aarch64 $($body:tt)+) => {
        $(#[$doc])*
        #[allow(non_upper_case_globals)] // It stands for a function.
        const $name: $crate::frame::LongLoop = {
            $crate::timed_loop! { $name: called ""; aarch64 $($body)+ }
            $name.absent_on($crate::architecture::Architecture::X86_64, Some($x86))
        };
    };
    ($(#[$doc:meta])* $name:ident: called call $call:ident($($a:tt $(, $b:tt $(, $c:tt $(, $d:tt $(, $e:tt $(, $f:tt)?)?)?)?)?)?)) => {
        $crate::timed_loop! {
            @ $(#[$doc])* $name: true; "bl 9f"; after ".p2align 6", "9:", $($crate::call_argument!("x0"; $a), $($crate::call_argument!("x1"; $b), $($crate::call_argument!("x2"; $c),
                $($crate::call_argument!("x3"; $d), $($crate::call_argument!("x4"; $e), $($crate::call_argument!("x5"; $f),)?)?)?)?)?)?
                "mov x8, {number}", "svc 0", "ret"; number $crate::libc::$call
        }
    };
    ($(#[$doc:meta])* $name:ident: called $($x86:literal),*; aarch64 none $why:literal) => {
        $crate::timed_loop! { @none $(#[$doc])* $name: true; $why }
    };
    ($(#[$doc:meta])* $name:ident: called $($x86:literal),*; aarch64 $($body:literal),+) => {
        $crate::timed_loop! {
            @ $(#[$doc])* $name: true; "bl 9f"; after ".p2align 6", "9:", $($body,)* "ret"
        }
    };
    // The frame.
    ($(#[$doc:meta])* $name:ident: called) => {
        $crate::timed_loop! { @ $(#[$doc])* $name: true; "bl 9f"; after ".p2align 6", "9:", "ret" }
    };
    ($(#[$doc:meta])* $name:ident:) => {
        $crate::timed_loop! { @ $(#[$doc])* $name: false; }
    };
    (
        $(#[$doc:meta])* $name:ident: $(first $($x86_first:literal),+;)? $($x86:literal),* $(; after $($x86_after:literal),+)?
        ; aarch64 none $why:literal
    ) => {
        $crate::timed_loop! { @none $(#[$doc])* $name: false; $why }
    };
    (
        $(#[$doc:meta])* $name:ident: $(first $($x86_first:literal),+;)? $($x86:literal),* $(; after $($x86_after:literal),+)?
        ; aarch64 $(first $($first:literal),+;)? $($body:literal),+ $(; after $($after:literal),+)?
    ) => {
        $crate::timed_loop! {
            @ $(#[$doc])* $name: false; $(first $($first),+;)? $($body),* $(; after $($after),+)?
        }
    };
    (@none $(#[$doc:meta])* $name:ident: $called:literal; $why:literal) => {
        $(#[$doc])*
        #[allow(non_upper_case_globals)] // It stands for a function.
        const $name: $crate::frame::LongLoop = $crate::frame::LongLoop::absent($called, $why);
    };
    (
        @ $(#[$doc:meta])* $name:ident: $called:literal; $(first $($first:literal),+;)? $($body:literal),* $(; after $($after:expr),+)?
        $(; number $number:expr)?
    ) => {
        $(#[$doc])*
        #[allow(non_upper_case_globals)] // It stands for a function.
        const $name: $crate::frame::LongLoop = {
            #[unsafe(naked)]
            unsafe extern "C" fn entry(iterations: u64, context: *mut $crate::frame::LoopContext) {
                core::arch::naked_asm!(
                    "stp x29, x30, [sp, -96]!",
                    "stp x19, x20, [sp, 16]", "stp x21, x22, [sp, 32]", "stp x23, x24, [sp, 48]",
                    "stp x25, x26, [sp, 64]", "stp x27, x28, [sp, 80]",
                    "mov x19, x0",
                    "mov x20, x1",
                    "mov x0, 0",
                    $($($first,)+)?
                    // A loop that straddles a fetch window would change its time from build to build.
                    ".p2align 6",
                    "2:",
                    $($body,)*
                    "subs x19, x19, 1",
                    "b.ne 2b",
                    "str x0, [x20, 56]",
                    "ldp x19, x20, [sp, 16]", "ldp x21, x22, [sp, 32]", "ldp x23, x24, [sp, 48]",
                    "ldp x25, x26, [sp, 64]", "ldp x27, x28, [sp, 80]",
                    "ldp x29, x30, [sp], 96",
                    "ret",
                    $($($after,)+)?
                    $(number = const $number as i32,)?
                )
            }
            const INSTRUCTIONS: &[&str] = &[$($($first,)+)? $($body,)* $($($after,)+)?];
            // SAFETY: these are the loop's instructions. By the macro's contract, a loop that uses no `x20` is sound in any process.
            unsafe { $crate::frame::LongLoop::written(entry, INSTRUCTIONS, $called) }
        };
    };
}

/// Writes a function of instructions as on x86-64, from the block after `aarch64`. Without that block the function ends the process:
/// only its loop calls it, and this architecture does not have the loop.
#[macro_export]
macro_rules! code {
    (
        $(#[$doc:meta])* $visible:vis fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? { $($x86:tt)* }
        aarch64 { $($body:tt)* }
    ) => {
        $(#[$doc])*
        #[unsafe(naked)]
        $visible unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            core::arch::naked_asm!($($body)*)
        }
    };
    ($(#[$doc:meta])* $visible:vis fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? { $($body:tt)* }) => {
        $(#[$doc])*
        $visible unsafe extern "C" fn $name($(_: $type),*) $(-> $result)? {
            std::process::abort()
        }
    };
}

/// An instruction that loads an argument of a call into a register.
#[doc(hidden)]
#[macro_export]
macro_rules! call_argument {
    ($register:literal; [$at:literal]) => {
        concat!("ldr ", $register, ", [x20, #", $at, "]")
    };
    ($register:literal; ($at:literal)) => {
        concat!("add ", $register, ", x20, #", $at)
    };
    ($register:literal; $number:literal) => {
        concat!("mov ", $register, ", ", $number)
    };
}

/// Writes the loop of another thread as on x86-64, from what follows `; aarch64`. In the body `x20` points to the
/// [`Side`](crate::frame::Side); `x19` must be kept.
#[macro_export]
macro_rules! contending_loop {
    ($(#[$doc:meta])* $name:ident: none; aarch64 $($body:tt)+) => {
        $crate::contending_loop! { $(#[$doc])* $name: "none"; aarch64 $($body)+ }
    };
    ($(#[$doc:meta])* $name:ident: $($x86:literal),*; aarch64 $($body:literal),*) => {
        const _: bool = $crate::frame::uses_words(&[$($body),*], $crate::frame::WORDS * 8);
        $(#[$doc])*
        #[unsafe(naked)]
        unsafe extern "C" fn $name(side: *mut $crate::frame::Side) {
            core::arch::naked_asm!(
                "stp x29, x30, [sp, -32]!",
                "stp x19, x20, [sp, 16]",
                "mov x20, x0",
                "isb", "mrs x19, cntvct_el0",
                "str x19, [x20, 96]",
                ".p2align 6",
                "2:",
                $($body,)*
                "isb", "mrs x9, cntvct_el0",
                "sub x10, x9, x19", "mov x19, x9",
                "ldr x11, [x20, 112]", "cmp x10, x11", "b.ls 8f",
                "ldr x11, [x20, 120]", "and x12, x11, 63", "add x12, x20, x12, lsl 4",
                "str x9, [x12, 384]", "str x10, [x12, 392]",
                "add x11, x11, 1", "str x11, [x20, 120]",
                "8:",
                "add x12, x20, 128", "ldr x11, [x12]", "add x11, x11, 1", "stlr x11, [x12]",
                "ldr x11, [x20, 256]",
                "cbz x11, 2b",
                "str x19, [x20, 104]",
                "ldp x19, x20, [sp, 16]",
                "ldp x29, x30, [sp], 32",
                "ret",
            )
        }
    };
}
