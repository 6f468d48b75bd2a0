//! Settings and rights of this process: `/proc/self/status`, proc_pid_status(5).

use tollgate_model::Unknown;

use crate::calls;
use crate::machine::{Answer, Machine, found};
use crate::text::{digits, keyed, zero_or_one};

const STATUS: &str = "/proc/self/status";

fn listed(machine: &Machine, key: &str) -> Answer<String> {
    machine.text(STATUS)?.part(key, |text| keyed(text, key).map(str::to_owned))
}

pub(crate) fn status(machine: &Machine, key: &str) -> Answer<String> {
    match listed(machine, key)? {
        line if line.value.is_empty() => {
            Err(Unknown::Unreadable(format!("{STATUS} has nothing after {key:?}")))
        }
        line => Ok(line),
    }
}

pub(crate) fn seccomp_mode(machine: &Machine) -> Answer<&'static str> {
    let number = number(machine, "Seccomp");
    let number = machine.or_call(number, "prctl(2) PR_GET_SECCOMP", calls::seccomp_mode);
    number.and_then(|number| number.map(|number| number.to_string()).parse("a seccomp mode", mode))
}

/// `SECCOMP_MODE_*` in linux/seccomp.h.
fn mode(number: &str) -> Option<&'static str> {
    match number {
        "0" => Some("disabled"),
        "1" => Some("strict"),
        "2" => Some("filter"),
        _ => None,
    }
}

pub(crate) fn no_new_privileges(machine: &Machine) -> Answer<bool> {
    let listed = status(machine, "NoNewPrivs").and_then(|line| line.parse("0 or 1", zero_or_one));
    let ask = || calls::no_new_privileges().map(|answer| answer == 1);
    machine.or_call(listed, "prctl(2) PR_GET_NO_NEW_PRIVS", ask)
}

pub(crate) fn number(machine: &Machine, key: &str) -> Answer<i64> {
    status(machine, key)?.parse("a whole number", digits)
}

/// Since Linux 6.6; `none` if empty.
pub(crate) fn thread_features(machine: &Machine) -> Answer<String> {
    let features = listed(machine, "x86_Thread_features")?;
    Ok(features.map(|features| if features.is_empty() { "none".to_owned() } else { features }))
}

/// False if `PR_SET_THP_DISABLE` of `prctl(2)` was set.
pub(crate) fn huge_pages(machine: &Machine) -> Answer<bool> {
    status(machine, "THP_enabled")?.parse("0 or 1", zero_or_one)
}

/// In nanoseconds.
pub(crate) fn timer_slack(machine: &Machine) -> Answer<i64> {
    let listed = machine.number("/proc/self/timerslack_ns");
    machine.or_call(listed, "prctl(2) PR_GET_TIMERSLACK", calls::timer_slack)
}

/// `PR_SPEC_*` in linux/prctl.h.
pub(crate) fn l1d_flush(machine: &Machine) -> Answer<&'static str> {
    let answer = machine.call("prctl(2) PR_GET_SPECULATION_CTRL PR_SPEC_L1D_FLUSH", calls::flushes_l1d);
    answer.and_then(|answer| {
        let source = answer.source;
        match answer.value {
            0 => found("not affected", source),
            bits if bits & 1 << 3 != 0 => found("switched off", source),
            bits if bits & 1 << 1 != 0 => found("flushed", source),
            bits if bits & 1 << 2 != 0 => found("not flushed", source),
            bits => Err(Unknown::Unreadable(format!("{source}: {bits:#x} is not a valid answer"))),
        }
    })
}

/// `SCHED_*` in linux/sched.h.
pub(crate) fn policy(machine: &Machine) -> Answer<&'static str> {
    let number = machine.call("sched_getscheduler(2)", calls::scheduling_policy);
    number.and_then(|number| {
        number.map(|policy| (policy & 0xff).to_string()).parse("a scheduling policy", |number| {
            Some(match number {
                "0" => "other",
                "1" => "fifo",
                "2" => "rr",
                "3" => "batch",
                "5" => "idle",
                "6" => "deadline",
                "7" => "ext",
                _ => return None,
            })
        })
    })
}

/// Always unknown: only a tracer may ask (`PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG`).
pub(crate) fn user_dispatch(_: &Machine) -> Answer<bool> {
    let why = "no file or call shows a process its own; execve(2) switches it off, so this program started without it";
    Err(Unknown::Absent(why.to_owned()))
}

/// The effective user ID, the second of four.
pub(crate) fn user(machine: &Machine) -> Answer<i64> {
    let effective = |text: &str| digits::<i64>(text.split_whitespace().nth(1)?);
    let listed = status(machine, "Uid").and_then(|line| line.parse("four user numbers", effective));
    machine.or_call(listed, "geteuid(2)", || Some(calls::user()))
}

/// The effective capabilities, in the kernel's hexadecimal form: one bit for each of capabilities(7).
pub(crate) fn capabilities(machine: &Machine) -> Answer<String> {
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok().map(|_| text.to_owned());
    status(machine, "CapEff")?.parse("a hexadecimal number", hexadecimal)
}
