//! Any bytes as a kernel configuration, plain, packed or in an image.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = tollgate_kconfig::read(bytes);
});
