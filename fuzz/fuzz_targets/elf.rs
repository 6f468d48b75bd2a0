//! Any bytes as a program.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = tollgate_inspect::fuzz::elf(bytes);
});
