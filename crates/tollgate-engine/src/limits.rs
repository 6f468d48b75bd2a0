//! Limits: how many processes and how much memory a bench process may take. Never more than a tenth of the processes
//! or half of the memory that the place allows: others live here as well.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};
use tollgate_model::text::plainly;

use super::runner::Refusal;

/// What the place allows; None where nothing is known to limit it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Tasks at a time.
    pub processes: Option<Allowed>,
    /// Bytes.
    pub memory: Option<Allowed>,
}

/// An amount, and who allows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowed {
    /// Tasks, or bytes.
    pub amount: u64,
    /// A file and key, or a call, such as `getrlimit(2) RLIMIT_NPROC`.
    pub by: String,
}

static ROOM: OnceLock<Limits> = OnceLock::new();
static PROCESSES: Account =
    Account { taken: AtomicU64::new(0), divisor: 10, part: "a tenth", unit: Count::Processes };
static MEMORY: Account = Account { taken: AtomicU64::new(0), divisor: 2, part: "half", unit: Count::Bytes };

/// Says what the place allows, once for this process.
pub(super) fn set(limits: Limits) {
    let _ = ROOM.set(limits);
}

/// Takes room for so many processes or threads beside the bench's own.
///
/// # Errors
/// [`Refusal::Skip`] with the limit where there is not so much.
pub fn take_processes(number: u64) -> Result<Taken, Refusal> {
    PROCESSES.take(number, ROOM.get().and_then(|limits| limits.processes.as_ref()))
}

/// Takes room for so many bytes of memory.
///
/// # Errors
/// [`Refusal::Skip`] with the limit where there is not so much.
pub fn take_memory(bytes: u64) -> Result<Taken, Refusal> {
    MEMORY.take(bytes, ROOM.get().and_then(|limits| limits.memory.as_ref()))
}

/// Amounts that others of the same process may take, one after the other, where there is room for them.
#[derive(Debug, Default)]
pub struct Contended {
    /// Tasks.
    pub processes: Vec<u64>,
    /// Bytes.
    pub bytes: Vec<u64>,
}

/// How many of something that takes one task and so many `bytes` each there is room for, `most` at the most, all
/// of `beside` granted; and what stands against more. It does not depend on what has been taken so far: each
/// process of a run must come to the same number.
pub fn how_many(most: u64, bytes: u64, contended: &Contended) -> (u64, Option<String>) {
    let limits = ROOM.get();
    let limits = [
        PROCESSES.limits_for(limits.and_then(|limits| limits.processes.as_ref()), 1, &contended.processes),
        MEMORY.limits_for(limits.and_then(|limits| limits.memory.as_ref()), bytes, &contended.bytes),
    ];
    let least = limits.into_iter().flatten().min_by_key(|(number, _)| *number);
    match least {
        Some((number, why)) if number < most => (number, Some(why)),
        _ => (most, None),
    }
}

/// Bytes of memory that each of so many may take, whoever asks first, and what limits it: an amount that every process
/// of a run comes to. None where nothing is known to limit it.
pub fn memory_for_each(parts: u64) -> Option<(u64, String)> {
    let allowed = ROOM.get()?.memory.as_ref()?;
    let each = MEMORY.limits_for(Some(allowed), parts.max(1), &[])?.0;
    Some((each, format!("one of {parts} equal parts of {}", MEMORY.limit(allowed))))
}

/// What it says of the place that one more process or thread was refused: `call` is who asked.
pub fn refused(call: &str, error: &io::Error) -> Refusal {
    let allowed = ROOM.get().and_then(|limits| limits.processes.as_ref());
    match (error.raw_os_error(), allowed) {
        (Some(libc::EAGAIN), Some(allowed)) => {
            let number = Count::Processes.show(allowed.amount);
            Refusal::Skip(format!("{call} is refused: {}; {} allows {number}", plainly(error), allowed.by))
        }
        (Some(libc::EAGAIN), None) => Refusal::Skip(format!(
            "{call} is refused: {}; RLIMIT_NPROC, pids.max of a cgroup or kernel.threads-max leaves no more",
            plainly(error)
        )),
        _ => Refusal::of(&format!("{call} is refused"), error),
    }
}

/// What was taken, until it is dropped.
#[derive(Debug)]
pub struct Taken {
    account: &'static Account,
    amount: u64,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.account.taken.fetch_sub(self.amount, Relaxed);
    }
}

#[derive(Debug)]
struct Account {
    taken: AtomicU64,
    divisor: u64,
    part: &'static str,
    unit: Count,
}

#[derive(Debug, Clone, Copy)]
enum Count {
    Processes,
    Bytes,
}

impl Account {
    fn take(&'static self, amount: u64, allowed: Option<&Allowed>) -> Result<Taken, Refusal> {
        let taken = self.taken.fetch_add(amount, Relaxed) + amount;
        // From here on it is given back, whatever happens.
        let held = Taken { account: self, amount };
        match allowed {
            Some(allowed) if taken > allowed.amount / self.divisor => Err(Refusal::Skip(format!(
                "{} would be more than {}",
                self.unit.show(taken),
                self.limit(allowed)
            ))),
            _ => Ok(held),
        }
    }

    /// How many of something there is room for of which each takes `each`, beside what others may take; and what
    /// limits it.
    fn limits_for(&self, allowed: Option<&Allowed>, each: u64, contended: &[u64]) -> Option<(u64, String)> {
        let allowed = allowed?;
        let share = allowed.amount / self.divisor;
        let granted = contended.iter().fold(0, |sum: u64, &amount| match sum.saturating_add(amount) {
            fitting if fitting <= share => fitting,
            _ => sum,
        });
        Some(((share - granted).checked_div(each)?, self.limit(allowed)))
    }

    /// `half of the 64 MiB that RLIMIT_AS allows`.
    fn limit(&self, allowed: &Allowed) -> String {
        format!("{} of the {} that {} allows", self.part, self.unit.show(allowed.amount), allowed.by)
    }
}

impl Count {
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

    static ACCOUNT: Account =
        Account { taken: AtomicU64::new(0), divisor: 2, part: "half", unit: Count::Bytes };

    #[test]
    fn no_more_is_taken_than_there_is_and_what_is_given_back_can_be_taken_again() {
        let allowed = Allowed { amount: 200 << 20, by: "memory.max".to_owned() };
        let first = ACCOUNT.take(64 << 20, Some(&allowed)).expect("room");
        let refused = ACCOUNT.take(64 << 20, Some(&allowed)).expect_err("no room");
        let why = "128 MiB would be more than half of the 200 MiB that memory.max allows";
        assert_eq!(refused, Refusal::Skip(why.to_owned()));
        drop(first);
        assert!(ACCOUNT.take(100 << 20, Some(&allowed)).is_ok());
        assert!(ACCOUNT.take(u64::MAX / 2, None).is_ok());
        assert_eq!(ACCOUNT.taken.load(Relaxed), 0);
    }

    #[test]
    fn what_others_may_take_is_left_to_them_as_far_as_it_fits() {
        let allowed = Allowed { amount: 200, by: "pids.max".to_owned() };
        let limits = |each, contended: &[u64]| {
            ACCOUNT.limits_for(Some(&allowed), each, contended).map(|(number, _)| number)
        };
        assert_eq!(limits(10, &[]), Some(10));
        // The second does not fit beside the first; the third does.
        assert_eq!(limits(10, &[60, 60, 20]), Some(2));
        assert_eq!(limits(0, &[]), None);
        assert_eq!(ACCOUNT.limits_for(None, 1, &[]), None);
    }
}
