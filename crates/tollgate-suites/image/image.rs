//! The program that the processes suite starts, linked statically or dynamically.
//!
//! Without arguments it exits with status 0. Otherwise it executes its first argument with one argument fewer, so the
//! number of arguments is the number of executions.

// Without Rust's standard library the dynamic program needs only the C library. The static one is linked as the
// standard library links it, because a static C library needs more than itself.
#![cfg_attr(not(target_feature = "crt-static"), no_std)]
#![no_main]

use core::ffi::{c_char, c_int};

#[cfg_attr(not(target_feature = "crt-static"), link(name = "c"))]
unsafe extern "C" {
    fn execve(
        path: *const c_char,
        arguments: *const *const c_char,
        facts: *const *const c_char,
    ) -> c_int;
}

#[unsafe(no_mangle)]
extern "C" fn main(
    count: c_int,
    arguments: *const *const c_char,
    facts: *const *const c_char,
) -> c_int {
    if count < 2 {
        return 0;
    }
    // SAFETY: the C library passes `count` arguments and a null pointer after them.
    unsafe {
        let rest = arguments.add(1);
        execve(*rest, rest, facts);
    }
    // execve(2) returns only on failure.
    126
}

#[cfg(not(target_feature = "crt-static"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
