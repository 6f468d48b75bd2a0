//! What real time is made of, and what two executions differ by: user, the kernel's work, each kind of waiting; and the same
//! time once more by system call.
//!
//! Real time is what was busy (some thread was on a processor) and what was idle. Busy time is divided as user to sys;
//! idle time by what was waited for then. A call's contribution is its time on a processor, scaled so that the whole tree's
//! time on processors makes the busy time, and its waiting of each kind, scaled so that all waiting of that kind makes the
//! idle time of that kind. What is left belongs to what was done outside of calls. So contributions sum to the real time to
//! the nanosecond. Of a command with one thread nothing is scaled and they are exact; where threads run side by side they are
//! an estimate, for nobody can say which of two threads the real time belongs to.

use std::collections::BTreeMap;

use super::{Call, Parts, Traced};

/// The real time of an execution, by what it was passed with; in nanoseconds. The fields sum to `real`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    /// All of it.
    pub real: u64,
    /// Busy, in user mode.
    pub user: u64,
    /// Busy, in the kernel.
    pub sys: u64,
    /// Idle: somebody was ready to run and had no processor.
    pub runqueue: u64,
    /// Idle: somebody waited for a disk.
    pub disk: u64,
    /// Idle: everybody slept.
    pub sleep: u64,
    /// Idle, and nobody can tell why: where [`Traced::idle`] is unknown it is what user and sys, one after the other, leave of the
    /// real time. That is the least that was waited, but for what ptrace(2) stopped the threads, which is in it.
    pub untold: u64,
}

/// The part of the real time that a call accounts for, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contribution {
    /// The call.
    pub name: String,
    /// Calls that returned.
    pub count: u64,
    /// Its share of the real time, by what it was passed with.
    pub parts: Parts,
}

/// The real time of an execution, taken apart in both ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blame {
    /// By what it was passed with.
    pub account: Account,
    /// By system call, in the order of their names.
    pub calls: Vec<Contribution>,
    /// What the calls leave of it: user mode, faults, and what else is outside of calls. Below 0 where a backend counted
    /// more inside calls than there was.
    pub outside_ns: i64,
}

/// A call on both sides of a comparison.
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
    /// How much more real time it accounts for in the other, in nanoseconds.
    pub fn total_ns(&self) -> i64 {
        less(self.parts[1].total_ns(), self.parts[0].total_ns())
    }
}

/// `a - b`.
pub fn less(a: u64, b: u64) -> i64 {
    let difference = i128::from(a) - i128::from(b);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}

/// The repetition whose real time is the median; of an even number the lower of the two in the middle.
pub fn median(repetitions: &[Traced]) -> Option<&Traced> {
    let mut sorted: Vec<&Traced> = repetitions.iter().collect();
    crate::sort::by_key(&mut sorted, |traced| traced.wall_ns);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// Whether contributions are exact: there was one thread, to which all real time belongs, and its times make the real time but
/// for what is not seen of its beginning and its end.
pub fn is_exact(traced: &Traced) -> bool {
    const UNSEEN: f64 = 0.02;
    let (Some(outside), Some(_), 1) = (traced.outside, traced.idle, traced.threads) else { return false };
    let told = traced.calls.iter().fold(outside, |sum, call| sum.plus(call.parts)).total_ns();
    (told as f64 - traced.wall_ns as f64).abs() <= UNSEEN * traced.wall_ns as f64
}

impl Account {
    /// Takes the real time of an execution apart.
    pub fn of(traced: &Traced) -> Self {
        let real = traced.wall_ns;
        let processor = traced.user_ns.saturating_add(traced.sys_ns);
        // Clocks of two kinds need not agree to the nanosecond: what exceeds the real time is cut off.
        let mut left = real;
        let mut take = |wanted: u64| {
            let taken = wanted.min(left);
            left -= taken;
            taken
        };
        let (runqueue, disk, sleep, untold) = match traced.idle {
            Some(idle) => (take(idle.runqueue_ns), take(idle.disk_ns), take(idle.sleep_ns), 0),
            None => (0, 0, 0, take(real.saturating_sub(processor))),
        };
        let busy = left;
        let user = if processor == 0 { 0 } else { share(traced.user_ns, busy, processor) };
        Self { real, user, sys: busy - user, runqueue, disk, sleep, untold }
    }

    /// Real time in which something of it was on a processor.
    pub fn busy(&self) -> u64 {
        self.user + self.sys
    }

    /// The parts with their names, in the order in which they are told.
    pub fn parts(&self) -> [(&'static str, u64); 6] {
        let Self { real: _, user, sys, runqueue, disk, sleep, untold } = *self;
        [
            ("user", user),
            ("kernel", sys),
            ("disk", disk),
            ("a processor", runqueue),
            ("asleep", sleep),
            ("waiting", untold),
        ]
    }
}

impl Blame {
    /// Takes the real time of an execution apart.
    pub fn of(traced: &Traced) -> Self {
        let account = Account::of(traced);
        let inside = traced.calls.iter().fold(Parts::default(), |sum, call| sum.plus(call.parts));
        let mut whole = inside.plus(traced.outside.unwrap_or_default());
        if traced.outside.is_none() {
            // What wait4(2) tells of the processors is of calls and of the rest.
            let processor = traced.user_ns.saturating_add(traced.sys_ns);
            whole.on_cpu_ns = inside.on_cpu_ns.max(processor);
        }
        let mut calls: BTreeMap<&str, Contribution> = BTreeMap::new();
        for Call { name, count, parts, .. } in &traced.calls {
            let scaled = scaled(*parts, &account, whole);
            let empty = || Contribution { name: name.clone(), count: 0, parts: Parts::default() };
            let known = calls.entry(name).or_insert_with(empty);
            known.count = known.count.saturating_add(*count);
            known.parts = known.parts.plus(scaled);
        }
        let calls: Vec<Contribution> = calls.into_values().collect();
        let told = calls.iter().map(|call| call.parts.total_ns()).fold(0, u64::saturating_add);
        Self { account, calls, outside_ns: less(account.real, told) }
    }
}

/// The part of the real time that some time of threads makes, of the whole tree's.
fn scaled(parts: Parts, account: &Account, whole: Parts) -> Parts {
    let waiting = whole.total_ns().saturating_sub(whole.on_cpu_ns);
    // Where it is not known what was waited for when nobody worked, all kinds are taken together.
    let kind = |part: u64, of_kind: u64, amount: u64| match account.untold {
        0 => share(part, amount, of_kind),
        untold => share(part, untold, waiting),
    };
    Parts {
        on_cpu_ns: share(parts.on_cpu_ns, account.busy(), whole.on_cpu_ns),
        sleep_ns: kind(parts.sleep_ns, whole.sleep_ns, account.sleep),
        disk_ns: kind(parts.disk_ns, whole.disk_ns, account.disk),
        runqueue_ns: kind(parts.runqueue_ns, whole.runqueue_ns, account.runqueue),
        untold_ns: kind(parts.untold_ns, whole.untold_ns, 0),
    }
}

/// The calls of both sides, those that differ most first.
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
    crate::sort::by_key(&mut differences, |difference| {
        std::cmp::Reverse(difference.total_ns().unsigned_abs())
    });
    differences
}

/// `part` of `whole`, of an amount: never more than the amount, and nothing of a whole that is nothing.
fn share(part: u64, amount: u64, whole: u64) -> u64 {
    if whole == 0 {
        return 0;
    }
    let scaled = u128::from(part.min(whole)) * u128::from(amount) / u128::from(whole);
    u64::try_from(scaled).unwrap_or(amount)
}

#[cfg(test)]
mod tests;
