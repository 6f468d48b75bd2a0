//! How many processes and how much memory the environment allows a program. Benchmarks check before they use a part of it.
//!
//! Source: getrlimit(2), proc_sys_kernel(5), proc_meminfo(5), Documentation/admin-guide/cgroup-v2.rst.

use tollgate_model::FactValue;

use crate::machine::{Answer, Found, Machine};
use crate::{cgroup, limits, memory};

/// The lowest of several limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Tasks, or bytes.
    pub amount: u64,
    /// A file and key, or a call.
    pub source: String,
}

/// Limits of the environment; `None` if no limit was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Tasks at a time, including threads.
    pub processes: Option<Limit>,
    /// Bytes that can still be allocated.
    pub memory: Option<Limit>,
}

/// Finds the lowest limits of this process, its cgroups and the kernel.
pub fn allowance(machine: &Machine) -> Allowance {
    let number = |path: &str| of_answer(machine.number(path));
    let own = |name, resource| of_answer(limits::asked(machine, name, resource));
    let processes = [
        own("RLIMIT_NPROC", libc::RLIMIT_NPROC),
        of_limit(cgroup::pids_max(machine)),
        number("/proc/sys/kernel/pid_max"),
        number("/proc/sys/kernel/threads-max"),
    ];
    let memory = [
        own("RLIMIT_AS", libc::RLIMIT_AS),
        own("RLIMIT_DATA", libc::RLIMIT_DATA),
        of_limit(cgroup::memory_left(machine)),
        of_answer(memory::available(machine)),
    ];
    Allowance { processes: least(processes), memory: least(memory) }
}

fn least(limits: impl IntoIterator<Item = Option<Limit>>) -> Option<Limit> {
    limits.into_iter().flatten().min_by_key(|limit| limit.amount)
}

fn of_answer(answer: Answer<i64>) -> Option<Limit> {
    let found = answer.ok()?;
    Some(Limit { amount: u64::try_from(found.value).ok()?, source: found.source })
}

fn of_limit(answer: Answer<FactValue>) -> Option<Limit> {
    let found = answer.ok()?;
    let FactValue::Integer(value) = found.value else { return None };
    of_answer(Ok(Found { value, source: found.source }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tree;

    #[test]
    fn the_tightest_limit_counts_with_its_source() {
        let root = tree(&[
            ("proc/sys/kernel/pid_max", "4194304\n"),
            ("proc/sys/kernel/threads-max", "1000\n"),
            ("proc/meminfo", "MemTotal: 4000 kB\nMemFree: 100 kB\nMemAvailable: 3000 kB\n"),
            ("proc/self/cgroup", "0::/a/b\n"),
            ("proc/self/mountinfo", "25 20 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("sys/fs/cgroup/a/pids.max", "120\n"),
            ("sys/fs/cgroup/a/b/pids.max", "max\n"),
            ("sys/fs/cgroup/a/memory.max", "2000000\n"),
            ("sys/fs/cgroup/a/memory.current", "1500000\n"),
            ("sys/fs/cgroup/a/memory.stat", "anon 700000\ninactive_file 300000\nactive_file 200000\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
        ]);
        let allowance = allowance(&Machine::captured(root.path()));
        let limit = |amount, source: &str| Some(Limit { amount, source: source.to_owned() });
        assert_eq!(allowance.processes, limit(120, "/sys/fs/cgroup/a/pids.max"));
        // The kernel reclaims file pages when memory is needed.
        assert_eq!(allowance.memory, limit(1_000_000, "/sys/fs/cgroup/a/memory.max less memory.current"));
    }

    #[test]
    fn without_control_groups_the_machine_is_the_limit() {
        let root = tree(&[
            ("proc/sys/kernel/pid_max", "32768\n"),
            ("proc/meminfo", "MemTotal: 4000 kB\nMemAvailable: 3000 kB\n"),
        ]);
        let allowance = allowance(&Machine::captured(root.path()));
        assert_eq!(allowance.processes.map(|limit| limit.amount), Some(32768));
        assert_eq!(allowance.memory.map(|limit| limit.amount), Some(3000 << 10));
    }

    #[test]
    fn nothing_that_can_be_read_limits_nothing() {
        let root = tree::<&str>(&[]);
        assert_eq!(allowance(&Machine::captured(root.path())), Allowance::default());
    }

    #[test]
    fn this_machine_has_a_limit_of_either() {
        let here = allowance(&Machine::here());
        assert!(here.memory.is_some_and(|limit| limit.amount > 1 << 20));
        assert!(here.processes.is_none_or(|limit| limit.amount > 0));
    }
}
