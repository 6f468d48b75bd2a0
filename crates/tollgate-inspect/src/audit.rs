//! Whether system calls are audited: the state and the rules, which the kernel shows only to root (CAP_AUDIT_CONTROL), and hints for
//! other users, since no file shows them that a rule is loaded. Source: kernel/audit.c, kernel/auditfilter.c, include/uapi/linux/audit.h,
//! Documentation/admin-guide/kernel-parameters.txt.

#![allow(unsafe_code)] // The standard library makes no netlink(7) sockets.

use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use tollgate_kconfig::parameter;
use tollgate_model::Unknown;
use tollgate_os::bpf::word_at as word;

use crate::machine::{Answer, Machine, found};
use crate::{kernel::command_line_text, text::digits};

const LOGIN: &str = "/proc/self/loginuid";
const SESSION: &str = "/proc/self/sessionid";
/// The kernel's value for a login user or a session that was never set: -1 as an unsigned number.
const UNSET: u32 = u32::MAX;

const GET: u16 = 1000;
const LIST_RULES: u16 = 1013;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// The system calls of a rule, a bit for each.
const MASK: std::ops::Range<usize> = 12..268;
/// More rules than systems load.
const MOST: usize = 10_000;

/// Whether the kernel audits: 0 no, 1 yes, 2 yes, and nothing may be changed until the next boot.
pub(crate) fn enabled(machine: &Machine) -> Answer<i64> {
    machine.call("netlink(7) AUDIT_GET", || {
        let all = ask(GET)?;
        // `enabled` of struct audit_status.
        all.first().map(|status| i64::from(word(status, 4))).ok_or(libc::EPROTO)
    })
}

/// The loaded rules, each as auditctl(8) names its action and list, with the number of its system calls.
pub(crate) fn rules(machine: &Machine) -> Answer<Vec<String>> {
    machine.call("netlink(7) AUDIT_LIST_RULES", || {
        Ok(ask(LIST_RULES)?.iter().filter(|rule| rule.len() >= MASK.end).map(|rule| named(rule)).collect())
    })
}

/// `struct audit_rule_data`: list, action, number of fields, a mask of system calls.
fn named(rule: &[u8]) -> String {
    const LISTS: [&str; 8] = ["user", "task", "entry", "watch", "exit", "exclude", "filesystem", "io_uring"];
    const ACTIONS: [&str; 3] = ["never", "possible", "always"];
    let one = |names: &[&str], at| {
        names.get(word(rule, at) as usize).map_or("?".to_owned(), |name| (*name).to_owned())
    };
    let mask = rule.get(MASK).unwrap_or_default();
    let calls: u32 = mask.iter().map(|byte| byte.count_ones()).sum();
    let calls = match calls {
        0 => String::new(),
        _ if mask.iter().all(|byte| *byte == 0xff) => ": all calls".to_owned(),
        1 => ": 1 call".to_owned(),
        calls => format!(": {calls} calls"),
    };
    // The upper bits are flags.
    format!("{},{}{calls}", one(&ACTIONS, 4), one(&LISTS, 0))
}

/// Sends a request to the kernel. Returns the payloads of its answers of the same kind.
fn ask(kind: u16) -> Result<Vec<Vec<u8>>, i32> {
    const REQUEST: u16 = 1;
    let failed = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
    // SAFETY: takes no pointers.
    let made =
        unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_AUDIT) };
    if made < 0 {
        return Err(failed(std::io::Error::last_os_error()));
    }
    // SAFETY: the kernel has just given us this descriptor. send(2) and recv(2) are the same for each kind of socket.
    let socket = UnixDatagram::from(unsafe { OwnedFd::from_raw_fd(made) });
    socket.set_read_timeout(Some(Duration::from_secs(1))).map_err(failed)?;
    let mut request = [0; HEADER];
    request[..4].copy_from_slice(&(HEADER as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&kind.to_ne_bytes());
    request[6..8].copy_from_slice(&REQUEST.to_ne_bytes());
    socket.send(&request).map_err(failed)?;
    let (mut all, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    while all.len() < MOST {
        let length = socket.recv(&mut buffer).map_err(failed)?;
        let message = buffer.get(HEADER..length).unwrap_or_default();
        match word(&buffer, 4) as u16 {
            NLMSG_ERROR => match word(message, 0) as i32 {
                0 => {}
                errno => return Err(errno.saturating_neg()),
            },
            NLMSG_DONE => break,
            answer if answer == kind => {
                all.push(message.to_vec());
                if kind == GET {
                    break;
                }
            }
            _ => {}
        }
    }
    Ok(all)
}

/// Evidence that system calls are audited. An empty list means no evidence.
pub(crate) fn hints(machine: &Machine) -> Answer<Vec<String>> {
    let mut hints = Vec::new();
    let parameter =
        command_line_text(machine).ok().and_then(|line| parameter(&line.value, "audit").map(str::to_owned));
    match parameter.as_deref() {
        Some("1" | "on") => hints.push("audit=1 on the kernel command line".to_owned()),
        Some("0" | "off") => return found(hints, "/proc/cmdline audit="),
        _ => {}
    }
    let login = set(machine, LOGIN)?;
    if login.value {
        hints.push("a login user is set, as pam_loginuid does".to_owned());
    }
    if set(machine, SESSION).is_ok_and(|session| session.value) {
        hints.push("a session number is set".to_owned());
    }
    found(hints, format!("/proc/cmdline audit=, {LOGIN}, {SESSION}"))
}

/// The user who logged in, which su and sudo do not change.
pub(crate) fn login(machine: &Machine) -> Answer<String> {
    number(machine, LOGIN)
        .map(|found| found.map(|user| if user == UNSET { "unset".to_owned() } else { user.to_string() }))
}

fn set(machine: &Machine, path: &str) -> Answer<bool> {
    Ok(number(machine, path)?.map(|number| number != UNSET))
}

/// A kernel that cannot audit system calls has no such file.
fn number(machine: &Machine, path: &str) -> Answer<u32> {
    match machine.line(path) {
        Err(Unknown::Absent(why)) => {
            Err(Unknown::Absent(format!("{why}: this kernel audits no system calls")))
        }
        answer => answer?.parse("a number of a user or session", digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_named_as_auditctl_names_them() {
        let rule = |list: u32, action: u32, mask: u8| {
            let mut rule = [list, action, 0].map(u32::to_ne_bytes).concat();
            rule.extend([mask; 256]);
            named(&rule)
        };
        assert_eq!(rule(4, 2, 0xff), "always,exit: all calls");
        assert_eq!(rule(4, 2, 1), "always,exit: 256 calls");
        assert_eq!(rule(1, 0, 0), "never,task");
        assert_eq!(rule(9, 9, 0), "?,?");
    }
}
