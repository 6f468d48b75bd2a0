//! The memory of processes and of the machine (proc_pid_smaps(5), proc_meminfo(5)).

use std::io::{ErrorKind, Read};
use std::{fs::File, io};

use tollgate_model::text::plainly;

use crate::refusal::Refusal;

/// An upper bound of the size of such a file, in bytes.
const MOST: u64 = 1 << 20;

/// The total proportional set size of these processes, in bytes: each counts only its share of a shared page.
pub fn proportional(pids: &[libc::pid_t]) -> Result<f64, Refusal> {
    let mut sum = 0.0;
    for pid in pids {
        let path = format!("/proc/{pid}/smaps_rollup");
        match read(&path) {
            Ok(text) => {
                let bytes = kilobytes(&text, "Pss").ok_or_else(|| skip!("{path} has no Pss"))?;
                sum += bytes as f64;
            }
            // The process has ended (ESRCH if its file was open by then).
            Err(error)
                if error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(error) => {
                let why = format!("the memory of one of its processes cannot be read: {}", plainly(&error));
                return Err(Refusal::NotMeasured(why));
            }
        }
    }
    if sum > 0.0 { Ok(sum) } else { Err(skip!("no process of it has a file smaps_rollup in /proc")) }
}

/// The pages of files and devices that this machine keeps in memory, in bytes. Files in memory count.
pub fn page_cache() -> Result<f64, Refusal> {
    let text = meminfo()?;
    let of = |key| kilobytes(&text, key).ok_or_else(|| skip!("/proc/meminfo has no {key}"));
    Ok((of("Cached")? + of("Buffers")?) as f64)
}

/// The memory in use by this kernel's account, in bytes: all that is not available without swapping.
pub fn used() -> Result<u64, Refusal> {
    let text = meminfo()?;
    let of = |key| kilobytes(&text, key).ok_or_else(|| skip!("/proc/meminfo has no {key}"));
    // Before Linux 3.14 there is no estimate of available memory.
    let available = of("MemAvailable").or_else(|_| of("MemFree"))?;
    Ok(of("MemTotal")?.saturating_sub(available))
}

pub fn available() -> Option<u64> {
    let text = meminfo().ok()?;
    kilobytes(&text, "MemAvailable").or_else(|| kilobytes(&text, "MemFree"))
}

fn meminfo() -> Result<String, Refusal> {
    read("/proc/meminfo").map_err(|error| skip!("/proc/meminfo cannot be read: {}", plainly(&error)))
}

fn read(path: &str) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MOST).read_to_string(&mut text)?;
    Ok(text)
}

fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let of_line = |line: &str| line.strip_prefix(key)?.strip_prefix(':').map(str::to_owned);
    let value = text.lines().find_map(of_line)?;
    value.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_that_of_its_whole_key() {
        let text = "Pss_Dirty:   7 kB\nPss:      1234 kB\nCached: x kB\n";
        assert_eq!(kilobytes(text, "Pss"), Some(1234 << 10));
        assert_eq!(kilobytes(text, "Cached"), None);
        assert_eq!(kilobytes(text, "Buffers"), None);
        assert_eq!(kilobytes("Pss: 18446744073709551615 kB", "Pss"), None);
    }

    #[test]
    fn a_process_has_memory_and_one_that_is_gone_has_none() {
        let own = tollgate_os::process::own_pid();
        let one = proportional(&[own]).expect("smaps_rollup");
        assert!(one > 1e5, "{one}");
        assert!(matches!(proportional(&[i32::MAX]), Err(Refusal::Skip(_))));
        assert!(page_cache().is_ok_and(|bytes| bytes >= 0.0));
        assert!(used().expect("meminfo") > 0 && available().is_some());
    }
}
