//! Every way between the rings, on processors of both vendors.

use std::arch::global_asm;

use tollgate_lab::{Counts, Machine};
use tollgate_x86::Vendor;

use super::{machine, program, run};

global_asm!(
    ".section .tg_interpreter_crossings, \"a\", @progbits",
    include_str!("kit.s"),
    "kit tgx",
    include_str!("crossings.s"),
    ".text",
    options(att_syntax, raw)
);

pub(super) fn image() -> &'static [u8] {
    program!(tgx_start, tgx_end)
}

/// Letters of the handlers, digits of the counts: those of QEMU 7.2 with `-icount shift=0`, except for `f0 89 c8`, which its
/// translator executes as a MOV.
const INTEL: &str = "0i5c57b5u9uauag7p6e9ie.";
const AMD: &str = "0i5c57b5u9uauag7p6is.";

#[test]
fn every_way_goes_and_comes_back() {
    for (vendor, said) in [(Vendor::Intel, INTEL), (Vendor::Amd, AMD)] {
        let output = run(image(), machine(vendor));
        assert_eq!(output.cut_short, None);
        assert_eq!(String::from_utf8(output.serial).unwrap(), said, "{vendor:?}");
    }
}

#[test]
fn two_runs_are_identical() {
    let (first, second) = (run(image(), machine(Vendor::Amd)), run(image(), machine(Vendor::Amd)));
    assert_eq!(first, second);
    let Some(Counts { instructions, reads, writes, page_walks, page_entries }) = first.counts else {
        panic!("nothing is counted");
    };
    assert!(instructions > 300 && reads > 200 && writes > 100, "{:?}", first.counts);
    // Pages of 2 MiB: three levels.
    assert_eq!(page_entries, 3 * page_walks);
}

#[test]
fn a_limit_ends_the_run() {
    let all = run(image(), machine(Vendor::Intel)).serial;
    let limited = Machine { instructions: 300, ..machine(Vendor::Intel) };
    let part = run(image(), limited);
    assert!(part.serial.len() > 4 && part.serial.len() < all.len() && all.starts_with(&part.serial));
    assert!(part.cut_short.unwrap().starts_with("stopped after 300 instructions, at 10"));
}
