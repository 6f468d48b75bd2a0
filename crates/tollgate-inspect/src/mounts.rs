//! The mounts that this process sees: `/proc/self/mountinfo`, proc_pid_mountinfo(5).

use crate::text::digits;

pub(crate) const MOUNTS: &str = "/proc/self/mountinfo";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub id: u64,
    /// Major and minor number, as in `254:0`.
    pub device: String,
    /// The directory of its file system that is mounted.
    pub root: String,
    pub point: String,
    options: String,
    pub file_system: String,
    pub source: String,
    super_options: String,
}

impl Mount {
    /// Parses `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`, with optional fields before the
    /// dash.
    pub fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ');
        let id = digits(fields.next()?)?;
        let device = fields.nth(1)?;
        let (major, minor) = device.split_once(':')?;
        let _: (u32, u32) = (digits(major)?, digits(minor)?);
        let mut text = || fields.next().map(unescaped);
        let (root, point, options) = (text()?, text()?, text()?);
        fields.find(|&field| field == "-")?;
        let mut text = || fields.next().map(unescaped);
        let (file_system, source) = (text()?, text()?);
        let super_options = text().unwrap_or_default();
        Some(Self { id, device: device.to_owned(), root, point, options, file_system, source, super_options })
    }

    pub fn all_options(&self) -> String {
        let mut options: Vec<&str> = self.options.split(',').collect();
        for option in self.super_options.split(',') {
            if !option.is_empty() && !options.contains(&option) {
                options.push(option);
            }
        }
        options.join(",")
    }

    pub fn has(&self, option: &str) -> bool {
        self.super_options.split(',').any(|own| own == option)
    }
}

/// Decodes white space and backslashes, which are three octal digits: `mangle` in fs/seq_file.c.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        let byte = match (first, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                rest = after;
                (a - b'0') << 6 | (b - b'0') << 3 | (c - b'0')
            }
            _ => first,
        };
        bytes.push(byte);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_has_both_kinds_of_options() {
        let line =
            r"31 23 0:26 /docker/x /sys/fs/my\040cgroup ro,noexec shared:9 - cgroup cgroup rw,cpu,noexec";
        let mount = Mount::parse(line).unwrap();
        assert_eq!((mount.root.as_str(), mount.point.as_str()), ("/docker/x", "/sys/fs/my cgroup"));
        assert_eq!(mount.all_options(), "ro,noexec,rw,cpu");
        assert!(mount.has("cpu") && !mount.has("cpuset"));
        assert_eq!(Mount::parse("36 35 98:0 /"), None);
    }

    takes_any! { text in "\\PC{0,200}|[0-9: /a-z,\\\\-]{0,200}" => Mount::parse(&text), unescaped(&text) }

    proptest! {
        #[test]
        fn what_was_escaped_comes_back(text in "[a-z \t\n\\\\é]{0,40}") {
            let escape = |c: char| if " \t\n\\".contains(c) { format!("\\{:03o}", c as u32) } else { c.to_string() };
            prop_assert_eq!(unescaped(&text.chars().map(escape).collect::<String>()), text);
        }

        #[test]
        fn a_line_is_read_whatever_its_optional_fields(fields in "( (shared|master|propagate_from):[0-9]{1,4}){0,4}") {
            let line = format!("36 35 98:0 / /mnt rw{fields} - ext3 /dev/root rw,ro");
            let mount = Mount::parse(&line).unwrap();
            prop_assert_eq!((mount.file_system.as_str(), mount.all_options()), ("ext3", "rw,ro".to_owned()));
        }
    }
}
