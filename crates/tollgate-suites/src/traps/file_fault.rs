//! A minor fault on a cached file page (lmbench, lat_pagefault).

use tollgate_engine::cpu::minor_faults;

use super::handler::TRAP;
use super::memory::{Region, file_of, filled};
use super::touched::{Before, Counting, Touched};
use crate::prelude::*;

timed_loop! {
    /// Loads from a page and advances by a stride. Word 0: the page; word 1: the stride.
    load: called
        "xor ecx, ecx", "add rcx, [r13]", "mov rax, [rcx]",
        "xor edx, edx", "add rdx, [r13 + 8]", "add [r13], rdx";
    aarch64 "ldr x9, [x20]", "ldr x0, [x9]", "ldr x10, [x20, #8]", "add x9, x9, x10", "str x9, [x20]"
}

/// The file: 4 MiB.
const PAGES: usize = 1024;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/file-fault",
    operation: "One load from a mapped file whose page is cached but not mapped yet: one fault, however many pages it maps.",
    avoid: "Map with MAP_POPULATE, or read with pread; the kernel maps several cached pages with one fault.",
    source: "mmap(2); Linux mm/filemap.c, filemap_map_pages()",
    crosses: &[KernelEntry, Exception, KernelCode, PageFault, Tlb],
    timed: |_| Timed::once("mov/ldr", TimedLoop::Long(load)),
    counts: Some("minor faults"),
    kind: Kind::Instance(|timed, _, _| {
        let file = file_of(PAGES * page_size())?;
        let region = Region::of_file(&file, PAGES * page_size(), libc::PROT_READ, libc::MAP_SHARED)?;
        region.small_pages();
        let mapped = mapped_by_a_fault(&region)?;
        let note = match mapped {
            1 => "one fault maps one page".to_owned(),
            _ => format!("one fault maps {mapped} pages (fault-around)"),
        };
        let touched = Touched::new(region, mapped * page_size(), 0, Counting::Faults);
        let touched = Touched { before: Before::Forgotten, ..touched };
        Ok(touched.instance(timed, 1, filled)?.with_notes([note]))
    }),
    ..TRAP
};

/// Returns the number of pages that the kernel maps on one fault, including cached pages around it (do_fault_around,
/// mm/memory.c; fault_around_bytes in debugfs).
fn mapped_by_a_fault(region: &Region) -> Result<usize> {
    let trial = || {
        region.discard()?;
        let before = minor_faults();
        region.read(0);
        let first = minor_faults();
        if first == before {
            return Err(skip!("the kernel counts no minor faults here"));
        }
        let mut pages = 1..PAGES;
        let next = pages.find(|page| {
            region.read(page * page_size());
            minor_faults() != first
        });
        Ok(next.unwrap_or(PAGES))
    };
    // An unrelated fault makes the number too small, so this takes the largest.
    let mapped = trial()?.max(trial()?);
    match mapped {
        PAGES => Err(skip!("one fault maps all {PAGES} pages of the file")),
        mapped => Ok(mapped),
    }
}
