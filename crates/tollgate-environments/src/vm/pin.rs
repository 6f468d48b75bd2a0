//! Keeps the threads of a guest's monitor apart. Each virtual processor runs on the host's processor of the same number, so that
//! host and guest measure on the same one. All other threads run where nothing is measured.
//!
//! QEMU names its threads with `-name debug-threads=on` (qemu-options.hx). A virtual processor's is `CPU 0/KVM` or `CPU 0/TCG`.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tollgate_os::affinity;

use crate::error::plainly;

/// Time for the monitor to start the threads of its processors. Tests also run on emulated machines.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 5 });
const LOOK: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thread {
    id: i32,
    /// Number of the virtual processor that it runs, if any.
    cpu: Option<usize>,
}

/// Pins the threads of a monitor with `cpus` virtual processors to `allowed` processors. Returns the processor of each
/// virtual one; `None` if it may use any, because the host has none of its number. An error is a clause: the threads are
/// missing or may not be pinned.
pub(super) fn pin(monitor: i32, cpus: usize, allowed: &[usize]) -> Result<Vec<Option<usize>>, String> {
    let places: Vec<Option<usize>> = (0..cpus).map(|cpu| allowed.contains(&cpu).then_some(cpu)).collect();
    let elsewhere = elsewhere(allowed, &places);
    let threads = threads(monitor, cpus)?;
    for thread in &threads {
        let own = thread.cpu.and_then(|cpu| *places.get(cpu)?);
        let pinned = match own {
            Some(place) => affinity::pin(thread.id, &[place]),
            None => affinity::pin(thread.id, &elsewhere),
        };
        match pinned {
            // A thread that served one request has ended by now.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            pinned => pinned.map_err(|error| format!("sched_setaffinity(2): {}", plainly(error)))?,
        }
    }
    Ok(places)
}

/// Processors for the other threads: not the last virtual processor's, which measures.
fn elsewhere(allowed: &[usize], places: &[Option<usize>]) -> Vec<usize> {
    let measured = places.iter().rev().find_map(|place| *place);
    let others: Vec<usize> = allowed.iter().copied().filter(|cpu| Some(*cpu) != measured).collect();
    if others.is_empty() { allowed.to_vec() } else { others }
}

/// All threads, once every virtual processor has one.
fn threads(monitor: i32, cpus: usize) -> Result<Vec<Thread>, String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let found = now(monitor)?;
        if (0..cpus).all(|cpu| found.iter().any(|thread| thread.cpu == Some(cpu))) {
            return Ok(found);
        }
        if Instant::now() > until {
            return Err(format!("QEMU has not named the threads of {cpus} processors"));
        }
        std::thread::sleep(LOOK);
    }
}

fn now(monitor: i32) -> Result<Vec<Thread>, String> {
    let directory = PathBuf::from(format!("/proc/{monitor}/task"));
    let entries = fs::read_dir(&directory).map_err(|error| format!("QEMU's threads: {}", plainly(error)))?;
    let thread = |entry: fs::DirEntry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        Some(Thread { id, cpu: cpu_of(&name) })
    };
    Ok(entries.flatten().filter_map(thread).collect())
}

/// The number in `CPU 0/KVM`.
fn cpu_of(name: &str) -> Option<usize> {
    name.trim_end().strip_prefix("CPU ")?.split_once('/')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use tollgate_os::process::Program;

    use super::*;

    const PROGRAM: &str = "qemu-system-x86_64";

    #[test]
    fn threads_of_processors_have_their_numbers() {
        assert_eq!(cpu_of("CPU 0/KVM\n"), Some(0));
        assert_eq!(cpu_of("CPU 12/TCG"), Some(12));
        assert_eq!(
            (cpu_of("ALL CPUs/TCG"), cpu_of("qemu-system-x86"), cpu_of("CPU x/KVM")),
            (None, None, None)
        );
    }

    #[test]
    fn the_measured_processor_is_left_to_the_guest() {
        assert_eq!(elsewhere(&[0, 1, 2], &[Some(0), Some(1)]), [0, 2]);
        assert_eq!(elsewhere(&[4, 5], &[None, None]), [4, 5]);
        assert_eq!(elsewhere(&[0], &[Some(0)]), [0]);
    }

    #[test]
    fn each_thread_of_a_monitor_is_pinned() {
        let allowed = affinity::allowed(0).unwrap();
        let guest = Command::new(PROGRAM)
            .args(["-accel", "tcg,thread=multi", "-smp", "2", "-nodefaults", "-display", "none", "-S"])
            .args(["-name", "tollgate,debug-threads=on", "-m", "32M"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = guest else { return println!("skipped: {PROGRAM} cannot be started") };
        let guest = Program(child);
        let pid = guest.0.id().cast_signed();
        let places = pin(pid, 2, &allowed).unwrap();
        assert_eq!(places, [0, 1].map(|cpu| allowed.contains(&cpu).then_some(cpu)));
        let elsewhere = elsewhere(&allowed, &places);
        let threads = now(pid).unwrap();
        assert!(threads.len() > 2, "{threads:?}");
        for thread in threads {
            let place = thread.cpu.and_then(|cpu| places[cpu]);
            let wanted = place.map_or_else(|| elsewhere.clone(), |place| vec![place]);
            assert_eq!(affinity::allowed(thread.id).unwrap(), wanted, "{thread:?}");
        }
    }
}
