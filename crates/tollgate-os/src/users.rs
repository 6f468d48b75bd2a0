//! Users and groups, from `/etc/passwd` and `/etc/group` as in passwd(5) and group(5).
//!
//! The C library's functions for this load shared objects (nsswitch.conf(5)), which a static program cannot. So a user that
//! only a directory service knows has a number but no name here, and a group of such users counts as shared.

use std::fs::{self, File};
use std::{io::Read, sync::OnceLock};

/// The rest of a longer file is not read; tens of thousands of users fit.
const MAX_BYTES: u64 = 4 << 20;

/// Returns a user for a message: `alice (uid 1000)`, or `uid 1000` without a name.
pub fn describe(uid: u32) -> String {
    match entry(&read("/etc/passwd"), uid) {
        Some(user) => format!("{} (uid {uid})", user.name),
        None => format!("uid {uid}"),
    }
}

/// Returns a user as sudo(8) takes one after `-u`, quoted for a shell: `alice`, or `'#1000'` without a name.
pub fn of_sudo(uid: u32) -> String {
    entry(&read("/etc/passwd"), uid).map_or_else(|| format!("'#{uid}'"), |user| user.name.to_owned())
}

/// Returns whether a user is the only member of a group, so that a directory that the group may write is the user's alone.
pub fn is_private_group(gid: u32, uid: u32) -> bool {
    is_private(&read("/etc/passwd"), &read("/etc/group"), gid, uid)
}

fn is_private(passwd: &str, group: &str, gid: u32, uid: u32) -> bool {
    let Some(own) = entry(passwd, uid) else { return false };
    let is_shared = entries(passwd).any(|user| user.group == gid && user.uid != uid);
    let mut members = group.lines().filter_map(|line| {
        let mut fields = line.split(':').skip(2);
        (fields.next()?.parse() == Ok(gid)).then(|| fields.next().unwrap_or_default())
    });
    own.group == gid
        && !is_shared
        && members.all(|names| names.split(',').all(|name| name.is_empty() || name == own.name))
}

struct User<'a> {
    name: &'a str,
    uid: u32,
    group: u32,
}

fn entry(passwd: &str, uid: u32) -> Option<User<'_>> {
    entries(passwd).find(|user| user.uid == uid)
}

fn entries(passwd: &str) -> impl Iterator<Item = User<'_>> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| is_name(name))?;
        let uid = fields.nth(1)?.parse().ok()?;
        Some(User { name, uid, group: fields.next()?.parse().ok()? })
    })
}

/// Returns whether a name is safe to show in a message.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_alphanumeric() || "._-$@".contains(c))
}

fn read(path: &str) -> String {
    let mut bytes = Vec::new();
    let _ = File::open(path).map(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns whether a user counts as root. In a user namespace the overflow id stands for every owner without a number in it
/// (user_namespaces(7)), including the host's root. The maker of the namespace chose its mounts.
pub(crate) fn is_roots(uid: u32) -> bool {
    static UNMAPPED: OnceLock<Option<u32>> = OnceLock::new();
    let unmapped = UNMAPPED.get_or_init(|| {
        let read = |path: &str| fs::read_to_string(path).ok();
        unmapped(&read("/proc/self/uid_map")?, &read("/proc/sys/kernel/overflowuid")?)
    });
    uid == 0 || *unmapped == Some(uid)
}

/// Returns the overflow id, if the user namespace does not map all ids.
fn unmapped(uid_map: &str, overflow: &str) -> Option<u32> {
    let is_whole = uid_map.split_whitespace().eq(["0", "0", "4294967295"]);
    if is_whole || uid_map.trim().is_empty() { None } else { overflow.trim().parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n\
        bob:x:1001:100::/home/bob:/bin/sh\ncarol:x:1002:100::/home/carol:/bin/sh\ndave:x:1003:1003::/:/bin/sh\n\
        broken\nevil\u{1b}[2J:x:7:7::/:\n";
    const GROUP: &str = "root:x:0:\nalice:x:1000:alice\nusers:x:100:\ndave:x:1003:alice\n";

    #[test]
    fn a_group_is_private_only_without_other_members() {
        assert!(is_private(PASSWD, GROUP, 1000, 1000));
        assert!(is_private(PASSWD, GROUP, 0, 0));
        assert!(!is_private(PASSWD, GROUP, 100, 1001), "carol has the same primary group");
        assert!(!is_private(PASSWD, GROUP, 1003, 1003), "alice is a member");
        assert!(!is_private(PASSWD, GROUP, 1000, 1001), "another user's group");
        assert!(!is_private(PASSWD, GROUP, 4711, 4711), "unknown");
    }

    #[test]
    fn a_name_with_control_characters_is_not_shown() {
        assert!(entry(PASSWD, 7).is_none());
        assert_eq!(entry(PASSWD, 1001).map(|user| user.group), Some(100));
        assert_eq!(describe(u32::MAX - 7), format!("uid {}", u32::MAX - 7));
    }

    #[test]
    fn the_overflow_id_is_roots_only_in_a_namespace() {
        assert_eq!(unmapped("         0          0 4294967295\n", "65534\n"), None);
        assert_eq!(unmapped("         0       1000          1\n", "65534\n"), Some(65534));
        assert_eq!(unmapped("", "65534\n"), None);
    }
}
