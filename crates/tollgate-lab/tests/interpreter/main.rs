//! Tests the interpreter from outside: small programs that set up long mode and cross the rings, its arithmetic compared with
//! the real processor's, and arbitrary bytes as programs.

// They are programs of x86-64, and need such a processor to compare with.
#![cfg(target_arch = "x86_64")]
// The programs' symbols, and the instructions that run on the real processor, need unsafe code; helpers may stop at the first
// surprise.
#![allow(unsafe_code, clippy::panic, clippy::unwrap_used)]

mod crossings;
mod differential;
mod programs;
mod properties;
mod refusals;
mod watching;
mod wild;

use std::time::Duration;

use tollgate_lab::{Engine, Interpreter, Machine, Output};
use tollgate_x86::Vendor;

const BASE: u64 = 0x10_0000;
/// Bytes of the multiboot header that a program begins with.
const HEADER: u64 = 32;

const fn machine(vendor: Vendor) -> Machine {
    Machine {
        memory: 16 << 20,
        vendor: Some(vendor),
        patience: Duration::from_secs(60),
        instructions: 10_000_000,
    }
}

fn run(image: &[u8], machine: Machine) -> Output {
    Interpreter.run(image, BASE, BASE + HEADER, machine).unwrap()
}

/// Returns the bytes between two symbols, a program.
macro_rules! program {
    ($start:ident, $end:ident) => {{
        unsafe extern "C" {
            static $start: u8;
            static $end: u8;
        }
        // SAFETY: the symbols are the program's first byte and the one after its last, in the same section of this file.
        unsafe {
            let (start, end) = (&raw const $start, &raw const $end);
            std::slice::from_raw_parts(start, end.offset_from_unsigned(start))
        }
    }};
}
pub(crate) use program;
