//! Any bytes as what a captured tree keeps beside its files, and as the files that are not kept whole.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = (tollgate_inspect::fuzz::record(bytes), tollgate_inspect::fuzz::capture(bytes));
});
