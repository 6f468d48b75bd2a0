//! What stands between this process and the kernel, and what it may do: `/proc/self/status`,
//! proc_pid_status(5).

use tollgate_model::{Fact, Unknown};

use crate::calls;
use crate::machine::{Answer, Machine, fact, found};
use crate::text::{digits, keyed, zero_or_one};

const STATUS: &str = "/proc/self/status";

/// One line of the status.
pub(crate) fn status(machine: &Machine, key: &str) -> Answer<String> {
    let text = machine.text(STATUS)?;
    match keyed(&text.value, key) {
        Some("") => Err(Unknown::Unreadable(format!("{STATUS} has nothing after {key:?}"))),
        Some(value) => found(value.to_owned(), format!("{STATUS} {key}")),
        None => Err(Unknown::Absent(format!("{STATUS} has no {key:?}"))),
    }
}

pub(crate) fn seccomp_mode(machine: &Machine) -> Fact {
    let number = status(machine, "Seccomp").and_then(|line| line.parse("a whole number", digits));
    let number: Answer<i64> = machine.or_call(number, "prctl(2) PR_GET_SECCOMP", calls::seccomp_mode);
    fact(number.and_then(|number| number.map(|number| number.to_string()).parse("a seccomp mode", mode)))
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

/// Told since Linux 5.9.
pub(crate) fn seccomp_filters(machine: &Machine) -> Fact {
    fact(status(machine, "Seccomp_filters").and_then(|line| line.parse("a whole number", digits::<i64>)))
}

pub(crate) fn no_new_privileges(machine: &Machine) -> Fact {
    let listed = status(machine, "NoNewPrivs").and_then(|line| line.parse("0 or 1", zero_or_one));
    let ask = || calls::no_new_privileges().map(|answer| answer == 1);
    fact(machine.or_call(listed, "prctl(2) PR_GET_NO_NEW_PRIVS", ask))
}

/// 0 where nobody traces.
pub(crate) fn tracer(machine: &Machine) -> Fact {
    fact(status(machine, "TracerPid").and_then(|line| line.parse("a process number", digits::<i64>)))
}

pub(crate) fn store_bypass(machine: &Machine) -> Fact {
    fact(status(machine, "Speculation_Store_Bypass"))
}

pub(crate) fn indirect_branch(machine: &Machine) -> Fact {
    fact(status(machine, "SpeculationIndirectBranch"))
}

/// The effective one, the second of four.
pub(crate) fn user(machine: &Machine) -> Fact {
    let effective = |text: &str| digits::<i64>(text.split_whitespace().nth(1)?);
    let listed = status(machine, "Uid").and_then(|line| line.parse("four user numbers", effective));
    fact(machine.or_call(listed, "geteuid(2)", || Some(calls::user())))
}

/// The effective ones, in hexadecimal as the kernel writes them: one bit for each of capabilities(7).
pub(crate) fn capabilities(machine: &Machine) -> Fact {
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok().map(|_| text.to_owned());
    fact(status(machine, "CapEff").and_then(|line| line.parse("a hexadecimal number", hexadecimal)))
}

/// Bits of personality(2) in hexadecimal, such as 00040000 for no address randomization.
pub(crate) fn personality(machine: &Machine) -> Fact {
    fact(machine.line("/proc/self/personality"))
}
