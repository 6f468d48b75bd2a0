//! Generated inputs: each parser soon ends with an answer for any bytes. (The parsers of dumps and of kernel configurations have
//! their own tests.)
//!
//! `TOLLGATE_FUZZ_INPUTS` is the number of inputs for each parser:
//! `TOLLGATE_FUZZ_INPUTS=10000000 cargo test --release -p tollgate-inspect --test all -- inputs:: --nocapture`.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "../../tollgate-kconfig/tests/generated/mod.rs"]
mod generated;

use generated::each;
use tollgate_inspect::fuzz;

#[test]
fn programs() {
    // The beginning of this program's file: its headers and its interpreter's name, if it has one.
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let seeds = [own[..4096].to_vec(), b"#!/bin/sh -e\n".to_vec(), own[..200].to_vec()];
    each("programs", 1, &seeds, fuzz::elf);
}

#[test]
fn records() {
    let record = br#"{"format": 1, "directory": "/srv", "cpuid": [{"leaf": 1, "subleaf": 0, "registers": [1, 2, 3, 4]}],
        "calls": {"uname(2) release": {"value": "6.1"}, "getauxval(3)": {"errno": 2}}, "errors": {"/proc/x": {"read": 13}}}"#;
    each("records", 1, &[record.to_vec()], fuzz::record);
}

#[test]
fn captures() {
    let seeds = [
        b"ffffffff81000000 T _stext\nffffffff81000000 T _text\n".to_vec(),
        b"Name:\tx\nUid:\t0\nGroups:\t7\n".to_vec(),
        b"quiet -- --token x\n".to_vec(),
        b"\x7fELF\x02\x01\x01".iter().copied().chain([0; 200]).collect(),
    ];
    // Counted if something was left out.
    each("captures", 1, &seeds, |bytes| fuzz::capture(bytes) < 4 * bytes.len());
}
