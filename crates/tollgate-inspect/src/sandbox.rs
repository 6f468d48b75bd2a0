use tollgate_model::Unknown;

use crate::machine::{Answer, Machine, found};
use crate::processor::vendor_text;
use crate::uname::{release_text, version_text};

/// The kernel's name, if it is known. No file says "sandbox": these are its signs from inside.
pub(crate) fn name(machine: &Machine) -> Answer<String> {
    let release = release_text(machine)?;
    if let Some(name) = by_release(&release.value) {
        return Ok(release.map(|_| name.to_owned()));
    }
    if let Ok(version) = version_text(machine)
        && let Some(name) = by_version(&version.value)
    {
        return Ok(version.map(|_| name.to_owned()));
    }
    if let Ok(vendor) = vendor_text(machine)
        && vendor.value == "User Mode Linux"
    {
        return found("User-Mode Linux".to_owned(), vendor.source);
    }
    Err(Unknown::Absent(format!("the kernel's name {:?} shows none", release.value)))
}

/// Newer releases of gVisor call themselves `4.19.0-gvisor`. WSL 1 has no Linux kernel and ends with a capitalised `Microsoft`;
/// WSL 2 is a virtual machine and reports `microsoft-standard-WSL2`.
fn by_release(release: &str) -> Option<&'static str> {
    if release.contains("gvisor") {
        Some("gVisor")
    } else if release.ends_with("-Microsoft") {
        Some("WSL 1")
    } else {
        None
    }
}

/// gVisor never changed the date of the version that it shows: five minutes after Linux 4.4 was tagged
/// (pkg/sentry/syscalls/linux/linux64.go).
fn by_version(version: &str) -> Option<&'static str> {
    version.contains("Sun Jan 10 15:06:54 PST 2016").then_some("gVisor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(by_release("4.19.0-gvisor"), Some("gVisor"));
        assert_eq!(by_release("4.4.0-19041-Microsoft"), Some("WSL 1"));
        assert_eq!(by_release("5.15.153.1-microsoft-standard-WSL2"), None);
        assert_eq!(by_release("6.12.9"), None);
        assert_eq!(by_version("#1 SMP Sun Jan 10 15:06:54 PST 2016"), Some("gVisor"));
        assert_eq!(by_version("#1 SMP PREEMPT_DYNAMIC Sun Jan 10 15:06:54 UTC 2016"), None);
    }
}
