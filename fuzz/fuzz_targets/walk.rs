//! A machine and a crossing on it, made up of any bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = tollgate_x86::walk::walk_generated(bytes);
});
