//! Limits of a bench process: at most a tenth of the processes and half of the memory that the environment allows, because other
//! programs run there too.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{io, sync::Arc};

use serde::{Deserialize, Serialize};
use tollgate_model::text::plainly;

use crate::refusal::{Refusal, Result};

/// Limits of the environment; `None` if no limit is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Tasks at a time.
    pub processes: Option<Allowed>,
    /// Bytes.
    pub memory: Option<Allowed>,
}

/// An amount and the source of the limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowed {
    /// Tasks, or bytes.
    pub amount: u64,
    /// A file and key, or a call, such as `getrlimit(2) RLIMIT_NPROC`.
    pub by: String,
}

/// The amounts that a bench process and its instances may still take. Clones share one account.
#[derive(Debug, Clone)]
pub struct Quota {
    processes: Arc<Account>,
    memory: Arc<Account>,
}

impl Default for Quota {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Quota {
    /// Makes accounts for shares of these limits.
    pub fn new(limits: Limits) -> Self {
        let account = |allowed, unit| Arc::new(Account { allowed, taken: AtomicU64::new(0), unit });
        Self {
            processes: account(limits.processes, Count::Processes),
            memory: account(limits.memory, Count::Bytes),
        }
    }

    /// Reserves this many processes or threads in addition to the bench process.
    ///
    /// # Errors
    /// [`Refusal::Skip`] with the limit that it would exceed.
    pub fn take_processes(&self, number: u64) -> Result<Taken> {
        self.processes.take(number)
    }

    /// Reserves this many bytes of memory.
    ///
    /// # Errors
    /// [`Refusal::Skip`] with the limit that it would exceed.
    pub fn take_memory(&self, bytes: u64) -> Result<Taken> {
        self.memory.take(bytes)
    }

    /// Returns how many tasks of `bytes` each fit into the limits next to `reserved`, at most `most`; and the limit if it allows
    /// fewer. The result does not depend on current reservations, because each process of a run must get the same number.
    pub fn how_many(&self, most: u64, bytes: u64, reserved: &Reserved) -> (u64, Option<String>) {
        let limits =
            [self.processes.capacity(1, &reserved.processes), self.memory.capacity(bytes, &reserved.bytes)];
        let least = limits.into_iter().flatten().min_by_key(|(number, _)| *number);
        match least {
            Some((number, why)) if number < most => (number, Some(why)),
            _ => (most, None),
        }
    }

    /// Returns the bytes of memory for each of `parts` equal takers, and the limit. Every process of a run gets the same amount.
    /// `None` if no limit is known.
    pub fn memory_for_each(&self, parts: u64) -> Option<(u64, String)> {
        let (each, limit) = self.memory.capacity(parts.max(1), &[])?;
        Some((each, format!("one of {parts} equal parts of {limit}")))
    }

    /// Returns the refusal of one more process or thread by `call`.
    pub fn refused(&self, call: &str, error: &io::Error) -> Refusal {
        match (error.raw_os_error(), &self.processes.allowed) {
            (Some(libc::EAGAIN), Some(allowed)) => {
                let number = Count::Processes.show(allowed.amount);
                let why = plainly(error);
                skip!("{call} is refused: {why}; {} allows {number}", allowed.by)
            }
            (Some(libc::EAGAIN), None) => skip!(
                "{call} is refused: {}; RLIMIT_NPROC, pids.max of a cgroup or kernel.threads-max allows no more",
                plainly(error)
            ),
            _ => Refusal::new(&format!("{call} is refused"), error),
        }
    }
}

/// Parses the reason why a case was left out. If it is a lack of memory, returns the MiB that the case needs and the limit.
pub fn lack_of_memory(why: &str) -> Option<(u64, &str)> {
    let (need, limit) = why.split_once(MORE)?;
    Some((need.strip_suffix(" MiB")?.parse().ok()?, limit))
}

/// Stands between a need and the limit that it exceeds.
pub const MORE: &str = " would be more than ";

/// Amounts that other instances of the same process reserve, one after the other, as far as the limit allows.
#[derive(Debug, Default)]
pub struct Reserved {
    /// Tasks.
    pub processes: Vec<u64>,
    /// Bytes.
    pub bytes: Vec<u64>,
}

/// A reservation, released on drop.
#[derive(Debug)]
pub struct Taken {
    account: Arc<Account>,
    amount: u64,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.account.taken.fetch_sub(self.amount, Relaxed);
    }
}

#[derive(Debug)]
struct Account {
    allowed: Option<Allowed>,
    taken: AtomicU64,
    unit: Count,
}

#[derive(Debug, Clone, Copy)]
enum Count {
    Processes,
    Bytes,
}

impl Account {
    fn take(self: &Arc<Self>, amount: u64) -> Result<Taken> {
        let taken = self.taken.fetch_add(amount, Relaxed) + amount;
        let held = Taken { account: Arc::clone(self), amount };
        match &self.allowed {
            Some(allowed) if taken > allowed.amount / self.unit.share().0 => {
                Err(skip!("{}{MORE}{}", self.unit.show(taken), self.limit(allowed)))
            }
            _ => Ok(held),
        }
    }

    /// How many amounts of `each` fit next to `reserved`, and the limit.
    fn capacity(&self, each: u64, reserved: &[u64]) -> Option<(u64, String)> {
        let allowed = self.allowed.as_ref()?;
        let share = allowed.amount / self.unit.share().0;
        let granted = reserved.iter().fold(0, |sum: u64, &amount| match sum.saturating_add(amount) {
            fitting if fitting <= share => fitting,
            _ => sum,
        });
        Some(((share - granted).checked_div(each)?, self.limit(allowed)))
    }

    /// `half of the 64 MiB that RLIMIT_AS allows`.
    fn limit(&self, allowed: &Allowed) -> String {
        format!(
            "{} of the {} that {} allows",
            self.unit.share().1,
            self.unit.show(allowed.amount),
            allowed.by
        )
    }
}

impl Count {
    fn share(self) -> (u64, &'static str) {
        match self {
            Self::Processes => (10, "a tenth"),
            Self::Bytes => (2, "half"),
        }
    }

    fn show(self, amount: u64) -> String {
        match self {
            Self::Processes if amount == 1 => "1 process".to_owned(),
            Self::Processes => format!("{amount} processes"),
            Self::Bytes => format!("{} MiB", amount >> 20),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(amount: u64, by: &str) -> Quota {
        let allowed = Some(Allowed { amount, by: by.to_owned() });
        Quota::new(Limits { processes: allowed.clone(), memory: allowed })
    }

    #[test]
    fn reservations_stay_within_the_limit_and_are_released() {
        let quota = quota(200 << 20, "memory.max");
        let first = quota.take_memory(64 << 20).expect("within the limit");
        let refused = quota.clone().take_memory(64 << 20).expect_err("beyond the limit");
        let why = "128 MiB would be more than half of the 200 MiB that memory.max allows";
        assert_eq!(refused, Refusal::Skip(why.to_owned()));
        let limit = "half of the 200 MiB that memory.max allows";
        assert_eq!(lack_of_memory(why), Some((128, limit)));
        let Refusal::Skip(other) = quota.take_processes(u64::MAX / 2).expect_err("beyond") else { panic!() };
        assert_eq!(lack_of_memory(&other), None, "{other}");
        drop(first);
        assert!(quota.take_memory(100 << 20).is_ok());
        assert!(Quota::default().take_memory(u64::MAX / 2).is_ok());
        assert_eq!(quota.memory.taken.load(Relaxed), 0);
    }

    #[test]
    fn reserved_amounts_are_left_as_far_as_they_fit() {
        let account = quota(200, "pids.max").memory;
        let limits = |each, reserved: &[u64]| account.capacity(each, reserved).map(|(number, _)| number);
        assert_eq!(limits(10, &[]), Some(10));
        // The second does not fit next to the first; the third does.
        assert_eq!(limits(10, &[60, 60, 20]), Some(2));
        assert_eq!(limits(0, &[]), None);
        assert_eq!(Quota::default().memory.capacity(1, &[]), None);
    }
}
