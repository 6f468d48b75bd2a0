//! The names and numbers of system calls.
//!
//! The tables are text that is searched linearly: names are looked up when a table is shown, never while a command runs.

pub use tollgate_arch::abi::X32;
use tollgate_arch::abi::{CALLS, CALLS_32, is_x32};

/// On x86-64, the numbers that mean a call of x32 alone.
const X32_ALONE: std::ops::RangeInclusive<u32> = 512..=547;

/// Returns the name to show for a call: `openat`, or `openat (32-bit)` from the 32-bit table, or `openat (x32)` for the x32
/// ABI. A number that no table has reads `call 999`.
pub fn name(number: i64, is_32_bit: bool) -> String {
    let known =
        u32::try_from(number).ok().and_then(|number| base_name(number, is_32_bit).map(|name| (name, number)));
    match known {
        Some((name, _)) if is_32_bit => format!("{name} (32-bit)"),
        Some((name, number)) if is_x32(number) => format!("{name} (x32)"),
        Some((name, _)) => name.to_owned(),
        None if is_32_bit => format!("call {number} (32-bit)"),
        None => format!("call {number}"),
    }
}

/// Returns the name in the kernel's table, without the ABI.
pub fn base_name(number: u32, is_32_bit: bool) -> Option<&'static str> {
    let (table, wanted) = match (is_32_bit, is_x32(number)) {
        (true, _) => (CALLS_32, number),
        (false, true) => (CALLS, number & !X32),
        (false, false) if X32_ALONE.contains(&number) => return None,
        (false, false) => (CALLS, number),
    };
    entries(table).find(|(number, _)| *number == wanted).map(|(_, name)| name)
}

/// The numbers of a call, one for each ABI that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Number for 64-bit programs.
    pub long: Option<u32>,
    /// Number for 32-bit programs, and on x86 for `int $0x80`.
    pub short: Option<u32>,
    /// Number for the x32 ABI, including [`X32`], on an architecture that has it.
    pub x32: Option<u32>,
}

/// Returns the numbers of a call; `None` if no table has it.
pub fn number(name: &str) -> Option<Numbers> {
    let find = |table, x32_alone: bool| {
        entries(table).find(|(number, entry)| *entry == name && X32_ALONE.contains(number) == x32_alone)
    };
    let long = find(CALLS, false).map(|(number, _)| number);
    let x32 = find(CALLS, true).map(|(number, _)| number).or(long).map(|number| number | X32);
    let x32 = x32.filter(|number| is_x32(*number));
    let short = entries(CALLS_32).find(|(_, entry)| *entry == name).map(|(number, _)| number);
    (long.is_some() || short.is_some()).then_some(Numbers { long, short, x32 })
}

/// Returns the names of all calls.
pub fn names() -> impl Iterator<Item = &'static str> {
    entries(CALLS).chain(entries(CALLS_32)).map(|(_, name)| name)
}

/// Returns the call that a mistyped name most resembles; `None` if no name is close.
pub fn near(name: &str) -> Option<&'static str> {
    if name.len() > 40 {
        return None;
    }
    let nearest = names().map(|entry| (strsim::levenshtein(name, entry), entry)).min()?;
    (nearest.0 <= name.len().div_ceil(3)).then_some(nearest.1)
}

fn entries(table: &'static str) -> impl Iterator<Item = (u32, &'static str)> {
    let mut next = 0;
    table.split_ascii_whitespace().filter_map(move |word| {
        if word.starts_with(|first: char| first.is_ascii_digit()) {
            next = word.parse().unwrap_or(next);
            return None;
        }
        next += 1;
        Some((next - 1, word))
    })
}

/// Returns whether a call waits for an event, a child, a time or another thread, so that its duration says nothing about
/// the kernel.
pub fn is_blocking(name: &str) -> bool {
    const WAITING: &str = "_newselect accept accept4 clock_nanosleep epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old futex futex_wait \
        futex_waitv io_getevents io_pgetevents io_uring_enter mq_timedreceive msgrcv nanosleep pause poll ppoll pselect6 \
        restart_syscall rt_sigsuspend rt_sigtimedwait select semop semtimedop sigsuspend vfork wait4 waitid waitpid";
    let name = name.split(' ').next().unwrap_or(name).trim_end_matches("_time64");
    WAITING.split(' ').any(|waiting| waiting == name)
}

#[cfg(test)]
mod tests;
