//! The interpreter, from outside: small programs of its own that set up long mode and cross the rings; the arithmetic of
//! the real processor beside its own; and anything at all as a program.

// The programs' symbols, and the instructions that run on the real processor; and helpers may stop at the first surprise.
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

/// Where programs are loaded.
const BASE: u64 = 0x10_0000;
/// How long a multiboot header is: what a program begins with.
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

/// The bytes between two symbols, and a place to run them by.
macro_rules! program {
    ($start:ident, $end:ident) => {{
        unsafe extern "C" {
            static $start: u8;
            static $end: u8;
        }
        // SAFETY: the symbols are the first byte of the program and the one behind its last, in the same section of this file.
        unsafe {
            let (start, end) = (&raw const $start, &raw const $end);
            std::slice::from_raw_parts(start, end.offset_from_unsigned(start))
        }
    }};
}
pub(crate) use program;
