//! The parts of an execution's real time, and of the difference between two executions: user, kernel and each kind of waiting;
//! and the same time by system call.
//!
//! Times of threads sum to more than the real time. Each is scaled: time on processors to the time in which some thread ran,
//! waiting of each kind to the time in which none did. So contributions sum to the real time to the nanosecond; with one thread
//! nothing is scaled, with parallel threads they are an estimate.
//!
//! A parent that waits for its child sleeps while the child sleeps: that time is the child's. A wait for a child, see
//! [`Call::waits_for_child`], gets nothing if children were traced, and otherwise what all other waiting leaves.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use super::{Backend, Call, Parts, Traced};

/// The real time of an execution, by its parts; in nanoseconds. The others sum to `real`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    /// The sum of the others.
    pub real: u64,
    /// Busy, in user mode.
    pub user: u64,
    /// Busy, in the kernel.
    pub sys: u64,
    /// Idle: a thread was ready to run, without a processor.
    pub runqueue: u64,
    /// Idle: a thread waited for a disk.
    pub disk: u64,
    /// Idle: all threads slept.
    pub sleep: u64,
    /// Not accounted for: before the command's first event and after its last, and in calls that did not return. If
    /// [`Traced::idle`] is unknown it is the real time less user and sys: a lower bound of the waiting, which includes the stops
    /// of ptrace(2).
    pub unaccounted: u64,
}

/// A part of the real time: a field of [`Account`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Busy, in user mode.
    User,
    /// Busy, in the kernel.
    Sys,
    /// Idle, for a disk.
    Disk,
    /// Idle, for a processor.
    Runqueue,
    /// Idle, asleep.
    Sleep,
    /// Not accounted for.
    Unaccounted,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Sys => "kernel",
            Self::Disk => "disk",
            Self::Runqueue => "a processor",
            Self::Sleep => "asleep",
            Self::Unaccounted => "unaccounted",
        })
    }
}

/// The part of the real time that a call accounts for, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contribution {
    /// The call.
    pub name: String,
    /// Calls that returned.
    pub count: u64,
    /// Its share of the real time, by parts.
    pub parts: Parts,
}

/// The real time of an execution, by parts and by calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blame {
    /// By parts.
    pub account: Account,
    /// By system call, in the order of their names.
    pub calls: Vec<Contribution>,
    /// Time outside of calls: user mode, faults and the rest. Below 0 if a backend counted more inside calls than the real time.
    pub outside_ns: i64,
}

/// A call in both executions of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The call.
    pub name: String,
    /// Calls that returned, in the base and in the other.
    pub counts: [u64; 2],
    /// Its contributions.
    pub parts: [Parts; 2],
}

impl Difference {
    /// Its contribution in the other less that in the base, in nanoseconds.
    pub fn total_ns(&self) -> i64 {
        less(self.parts[1].total_ns(), self.parts[0].total_ns())
    }
}

/// `a - b`.
pub fn less(a: u64, b: u64) -> i64 {
    let difference = i128::from(a) - i128::from(b);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}

/// The repetition whose real time is the median; for an even number the lower of the two in the middle.
pub fn median(repetitions: &[Traced]) -> Option<&Traced> {
    let mut sorted: Vec<&Traced> = repetitions.iter().collect();
    sorted.sort_by_key(|traced| traced.wall_ns);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// Whether contributions are exact: there was one thread, and its times sum to the real time except before the first and after
/// the last event.
pub fn is_exact(traced: &Traced) -> bool {
    const UNSEEN: f64 = 0.02;
    let (Some(outside), Some(_), 1) = (traced.outside, traced.idle, traced.threads) else { return false };
    let seen = traced.calls.iter().fold(outside, |sum, call| sum.plus(call.parts)).total_ns();
    (seen as f64 - traced.wall_ns as f64).abs() <= UNSEEN * traced.wall_ns as f64
}

impl Account {
    /// Divides the real time of an execution.
    pub fn from_traced(traced: &Traced) -> Self {
        let real = traced.wall_ns;
        let processor = traced.user_ns.saturating_add(traced.sys_ns);
        // Clocks of two kinds need not agree to the nanosecond: the excess over the real time is cut off.
        let mut left = real;
        let mut take = |wanted: u64| {
            let taken = wanted.min(left);
            left -= taken;
            taken
        };
        let idle = traced.idle.unwrap_or_default();
        let [runqueue, disk, sleep] = [idle.runqueue_ns, idle.disk_ns, idle.sleep_ns].map(&mut take);
        // Parallel threads were on processors for longer than the real time in which one of them ran.
        let busy = take(processor.min(traced.busy_ns.unwrap_or(u64::MAX)));
        let user = share(traced.user_ns, busy, processor);
        Self { real, user, sys: busy - user, runqueue, disk, sleep, unaccounted: left }
    }

    /// Real time in which one of its threads was on a processor.
    pub fn busy(&self) -> u64 {
        self.user + self.sys
    }

    /// Real time in which all of its threads waited, for a known reason.
    pub fn waiting(&self) -> u64 {
        self.runqueue + self.disk + self.sleep
    }

    /// The parts, in the order of tables.
    pub fn parts(&self) -> [(Part, u64); 6] {
        let Self { real: _, user, sys, runqueue, disk, sleep, unaccounted } = *self;
        [
            (Part::User, user),
            (Part::Sys, sys),
            (Part::Disk, disk),
            (Part::Runqueue, runqueue),
            (Part::Sleep, sleep),
            (Part::Unaccounted, unaccounted),
        ]
    }
}

impl Blame {
    /// Divides the real time of an execution.
    pub fn of(traced: &Traced) -> Self {
        let account = Account::from_traced(traced);
        let inside = traced.calls.iter().fold(Parts::default(), |sum, call| sum.plus(call.parts));
        let mut whole = inside.plus(traced.outside.unwrap_or_default());
        if traced.outside.is_none() {
            // The processor time of wait4(2) includes that outside of calls.
            let processor = traced.user_ns.saturating_add(traced.sys_ns);
            whole.on_cpu_ns = inside.on_cpu_ns.max(processor);
        }
        let waits = traced.calls.iter().filter(|call| call.waits_for_child());
        let waits = waits.fold(Parts::default(), |sum, call| sum.plus(call.parts));
        let has_children = traced.has_children();
        let mut calls: BTreeMap<&str, Contribution> = BTreeMap::new();
        for call @ Call { name, count, parts, .. } in &traced.calls {
            let unknown = traced.idle.is_none().then_some(match traced.backend {
                // It includes real time outside of calls.
                Backend::Strace => account.unaccounted.min(inside.total_ns()),
                _ => account.unaccounted,
            });
            let among = Among { whole, waits, is_wait: call.waits_for_child(), has_children };
            let scaled = scaled(*parts, &account, among, unknown);
            let empty = || Contribution { name: name.clone(), count: 0, parts: Parts::default() };
            let known = calls.entry(name).or_insert_with(empty);
            known.count = known.count.saturating_add(*count);
            known.parts = known.parts.plus(scaled);
        }
        let calls: Vec<Contribution> = calls.into_values().collect();
        let inside = calls.iter().map(|call| call.parts.total_ns()).fold(0, u64::saturating_add);
        Self { account, calls, outside_ns: less(account.real, inside) }
    }
}

#[derive(Clone, Copy)]
struct Among {
    whole: Parts,
    waits: Parts,
    is_wait: bool,
    has_children: bool,
}

/// The real time that `parts` of the whole tree's time account for. `unknown`: the idle time, if its causes are unknown.
fn scaled(parts: Parts, account: &Account, among: Among, unknown: Option<u64>) -> Parts {
    // If the cause of idle time is unknown, all kinds are taken together.
    let kind = |of: fn(Parts) -> u64, amount: u64| {
        let [whole, waits] = [among.whole, among.waits].map(|parts| match unknown {
            None => of(parts).into(),
            Some(_) => waiting(parts),
        });
        let amount = unknown.unwrap_or(amount);
        let others = whole.saturating_sub(waits);
        let left = u128::from(amount).saturating_sub(others).min(waits) as u64;
        if among.is_wait && among.has_children {
            0
        } else if among.is_wait {
            share_of(of(parts), left, waits)
        } else {
            share_of(of(parts), amount - left, others)
        }
    };
    Parts {
        on_cpu_ns: share(parts.on_cpu_ns, account.busy(), among.whole.on_cpu_ns),
        sleep_ns: kind(|parts| parts.sleep_ns, account.sleep),
        disk_ns: kind(|parts| parts.disk_ns, account.disk),
        // A parent that is ready without a processor waits for itself.
        runqueue_ns: match unknown {
            None => share(parts.runqueue_ns, account.runqueue, among.whole.runqueue_ns),
            Some(_) => kind(|parts| parts.runqueue_ns, 0),
        },
        unknown_ns: kind(|parts| parts.unknown_ns, 0),
    }
}

/// Four times of a hostile document together may exceed u64.
fn waiting(parts: Parts) -> u128 {
    [parts.sleep_ns, parts.disk_ns, parts.runqueue_ns, parts.unknown_ns].map(u128::from).iter().sum()
}

/// The calls of both executions, those that differ most first.
pub fn differences(base: &Blame, other: &Blame) -> Vec<Difference> {
    let mut joined: BTreeMap<&str, Difference> = BTreeMap::new();
    for (side, blame) in [base, other].into_iter().enumerate() {
        for call in &blame.calls {
            let empty =
                || Difference { name: call.name.clone(), counts: [0; 2], parts: [Parts::default(); 2] };
            let known = joined.entry(&call.name).or_insert_with(empty);
            known.counts[side] = call.count;
            known.parts[side] = call.parts;
        }
    }
    let mut differences: Vec<Difference> = joined.into_values().collect();
    differences.sort_by_key(|difference| Reverse(difference.total_ns().unsigned_abs()));
    differences
}

/// `amount * part / whole`: at most the amount, and 0 if the whole is 0.
fn share(part: u64, amount: u64, whole: u64) -> u64 {
    share_of(part, amount, whole.into())
}

fn share_of(part: u64, amount: u64, whole: u128) -> u64 {
    if whole == 0 {
        return 0;
    }
    let scaled = u128::from(part).min(whole) * u128::from(amount) / whole;
    u64::try_from(scaled).unwrap_or(amount)
}

#[cfg(test)]
mod tests;
