//! Memory accounts of a process, and of the machine.
//!
//! Source: proc_pid_smaps(5), proc_pid_status(5), proc_meminfo(5), proc_zoneinfo(5).

use std::{fs::File, io::Read};

use crate::prelude::*;

/// Private memory of a process, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Footprint {
    pub dirty: i64,
    pub tables: i64,
}

impl Footprint {
    pub fn total(self) -> i64 {
        self.dirty.saturating_add(self.tables)
    }
}

/// Returns the private memory of the process with this directory in /proc.
pub(super) fn footprint(process: impl std::fmt::Display) -> Result<Footprint> {
    let dirty = kilobytes(&format!("/proc/{process}/smaps_rollup"), "Private_Dirty")?;
    let tables = kilobytes(&format!("/proc/{process}/status"), "VmPTE")?;
    Ok(Footprint { dirty, tables })
}

/// Memory of the whole machine, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Accounts {
    pub free: i64,
    pub kernel_stacks: i64,
}

impl Accounts {
    pub fn of_the_machine() -> Result<Self> {
        let text = read("/proc/meminfo")?;
        let of = |key| value(&text, key).ok_or_else(|| lacks("/proc/meminfo", key));
        Ok(Self { free: of("MemFree")?, kernel_stacks: of("KernelStack")? })
    }
}

/// Returns bytes of free pages on per-CPU lists (`zoneinfo_show_print`, mm/vmstat.c).
pub(super) fn on_lists() -> Result<i64> {
    const PATH: &str = "/proc/zoneinfo";
    let text = read(PATH)?;
    pages_on_lists(&text)
        .and_then(|pages| pages.checked_mul(page_size() as i64))
        .ok_or_else(|| lacks(PATH, "count"))
}

/// Sums the lines `count: pages`, one for each processor and zone.
fn pages_on_lists(zoneinfo: &str) -> Option<i64> {
    let counts = zoneinfo.lines().filter_map(|line| line.trim_start().strip_prefix("count:"));
    let counts: Vec<i64> = counts.map(|count| count.trim().parse()).collect::<Result<_, _>>().ok()?;
    counts.into_iter().reduce(i64::saturating_add)
}

/// Returns the bytes in a line `key:  value kB` of a file.
fn kilobytes(path: &str, key: &str) -> Result<i64> {
    value(&read(path)?, key).ok_or_else(|| lacks(path, key))
}

fn lacks(path: &str, key: &str) -> Refusal {
    skip!("{path} has no {key}")
}

fn read(path: &str) -> Result<String> {
    /// An upper bound for the files' size: /proc/zoneinfo has lines for each processor in each zone.
    const MOST: u64 = 1 << 24;
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MOST).read_to_string(&mut text))
        .map_err(|error| skip!("{path} cannot be read: {}", tollgate_model::text::plainly(&error)))?;
    Ok(text)
}

fn value(text: &str, key: &str) -> Option<i64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    let kilobytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::raw::tests::in_a_process_of_its_own;

    #[test]
    fn a_line_is_a_key_and_kilobytes() {
        let text =
            "VmPTE:\t      44 kB\nVmPTExtra: 5 kB\nThreads:\t1\nKernelStack:    9223372036854775807 kB\n";
        assert_eq!(value(text, "VmPTE"), Some(44 << 10));
        assert_eq!(value(text, "Threads"), None);
        assert_eq!(value(text, "KernelStack"), None);
        assert_eq!(value("", "VmPTE"), None);
    }

    #[test]
    fn lists_of_all_processors_and_zones_are_added_up() {
        let text = "Node 0, zone    DMA32\n  pages free     7\n  pagesets\n    cpu: 0\n              count:    12\n\
                    \x20             high:     99\n    cpu: 1\n              count:    30\n";
        assert_eq!(pages_on_lists(text), Some(42));
        assert_eq!(pages_on_lists("count: x\n"), None);
        assert_eq!(pages_on_lists(""), None);
    }

    #[test]
    fn written_memory_is_accounted() {
        // Other tests may free memory at the same time.
        in_a_process_of_its_own(|| {
            let Ok(before) = footprint("self") else {
                println!("skipped: no /proc here");
                return;
            };
            let written = std::hint::black_box(vec![1u8; 32 << 20]);
            let after = footprint("self").expect("as before");
            let grown = after.dirty - before.dirty;
            assert!(grown > 24 << 20, "{grown} bytes");
            drop(written);
        });
    }
}
