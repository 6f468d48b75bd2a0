//! Children that share their parent's memory or are made without the C library, in instructions: a compiler could let the child write
//! to the parent's stack.

use std::arch::naked_asm;
use std::ffi::{c_char, c_void};

/// Writes a system call whose child calls exit_group (231) at once.
macro_rules! leaving_child {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*): $number:literal) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> i64 {
            naked_asm!(
                $number, "syscall", "test rax, rax", "jz 2f", "ret",
                "2:", "xor edi, edi", "mov eax, 231", "syscall",
            )
        }
    };
}

leaving_child! {
    /// vfork. The child shares our stack until it exits and does not touch it: it neither pushes nor calls.
    ///
    /// # Safety
    /// The caller must wait for the child.
    vfork_and_leave(): "mov eax, 58"
}

leaving_child! {
    /// clone3.
    ///
    /// # Safety
    /// `arguments` must point to `size` bytes of arguments (clone3(2)) without shared memory.
    clone3_and_leave(arguments: *const c_void, size: usize): "mov eax, 435"
}

/// vfork; the child calls execve (59), and on failure exit_group with the error number.
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
        "mov eax, 58",
        "syscall",
        "test rax, rax",
        "jz 2f",
        "ret",
        "2:",
        "mov eax, 59",
        "syscall",
        "neg eax",
        "mov edi, eax",
        "mov eax, 231",
        "syscall",
    )
}
