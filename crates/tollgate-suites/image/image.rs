//! The program that the suite of processes starts: once with the C library linked in, once with the dynamic loader.
//!
//! It replaces itself by its first argument with one argument less, as long as there is one, and then ends with
//! status 0. So a chain of so many executions is as long as the list of its arguments.

// Without Rust's standard library the dynamic one needs the C library and nothing else. The static one is linked
// as the standard library links it: a static C library needs more than itself.
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

/// Called by the C library: what Rust would do before its own main is left out.
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
    // It comes back only where it failed.
    126
}

#[cfg(not(target_feature = "crt-static"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
