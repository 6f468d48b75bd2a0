//! Children that share their parent's memory or are made without the C library, in instructions: a compiler could let the child write
//! to the parent's stack.

use std::arch::naked_asm;
use std::ffi::{c_char, c_void};

/// Writes a system call whose child calls exit_group (94) at once.
macro_rules! leaving_child {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*): $($instruction:literal),*) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> i64 {
            naked_asm!(
                $($instruction,)* "svc 0", "cbz x0, 2f", "ret",
                "2:", "mov x0, 0", "mov x8, 94", "svc 0",
            )
        }
    };
}

leaving_child! {
    /// vfork: clone (220) with CLONE_VFORK, CLONE_VM and SIGCHLD. The child shares our stack until it exits and does not touch it: it
    /// neither pushes nor calls.
    ///
    /// # Safety
    /// The caller must wait for the child.
    vfork_and_leave(): "mov x0, 0x4111", "mov x1, 0", "mov x8, 220"
}

leaving_child! {
    /// clone3.
    ///
    /// # Safety
    /// `arguments` must point to `size` bytes of arguments (clone3(2)) without shared memory.
    clone3_and_leave(arguments: *const c_void, size: usize): "mov x8, 435"
}

/// vfork, as above; the child calls execve (221), and on failure exit_group with the error number.
///
/// # Safety
/// `path` must be a C string, the others must end in a null pointer.
#[unsafe(naked)]
pub unsafe extern "C" fn vfork_and_exec(
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> i64 {
    naked_asm!(
        // The kernel changes no register but x0.
        "mov x9, x0",
        "mov x10, x1",
        "mov x0, 0x4111",
        "mov x1, 0",
        "mov x8, 220",
        "svc 0",
        "cbz x0, 2f",
        "ret",
        "2:",
        "mov x0, x9",
        "mov x1, x10",
        "mov x8, 221",
        "svc 0",
        "neg w0, w0",
        "mov x8, 94",
        "svc 0",
    )
}
