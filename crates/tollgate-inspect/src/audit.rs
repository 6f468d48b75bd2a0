//! Whether system calls are likely to be audited. Without privilege, no file shows that a rule is loaded or that this thread
//! leaves the fast path for it (`TIF_SYSCALL_AUDIT`), only hints. Source: kernel/auditsc.c,
//! Documentation/admin-guide/kernel-parameters.txt.

use tollgate_kconfig::parameter;
use tollgate_model::Unknown;

use crate::machine::{Answer, Machine, found};
use crate::{kernel::command_line_text, text::digits};

const LOGIN: &str = "/proc/self/loginuid";
const SESSION: &str = "/proc/self/sessionid";
/// How the kernel writes that none was set: -1 as an unsigned number.
const UNSET: u32 = u32::MAX;

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
