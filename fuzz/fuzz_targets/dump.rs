//! Any text, read and joined; and each line of it in the format that its first byte chooses.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_dump::{FORMATS, fuzz, join, read};

fuzz_target!(|text: &[u8]| {
    fuzz(text);
    if let [choice, text @ ..] = text {
        let spec = &FORMATS[usize::from(*choice) % FORMATS.len()];
        join(&read(text, Some(spec.format)), None);
    }
});
