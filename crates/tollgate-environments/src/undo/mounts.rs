//! Unmounts everything at or below a directory.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::mount::{UnmountFlags, unmount};

/// The list is read again after each round, since a mount can hide another one at the same path.
const ROUNDS: usize = 64;

/// Unmounts all of them lazily, the last mounted first.
pub(super) fn unmount_below(path: &Path) -> io::Result<()> {
    let mut last = Ok(());
    let mut before = usize::MAX;
    for _ in 0..ROUNDS {
        let mounted = below(&fs::read("/proc/self/mountinfo")?, path);
        if mounted.is_empty() {
            return Ok(());
        }
        // If a round removes nothing, no more can be done.
        if mounted.len() >= before {
            break;
        }
        before = mounted.len();
        for point in mounted.iter().rev() {
            if let Err(error) = unmount(point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
                last = Err(error.into());
            }
        }
    }
    last
}

/// Mount points at or below a path, in the order in which they were mounted (proc_pid_mountinfo(5)).
fn below(mountinfo: &[u8], path: &Path) -> Vec<PathBuf> {
    let lines = mountinfo.split(|byte| *byte == b'\n');
    let points = lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4)).map(unescaped);
    points.filter(|point| point.starts_with(path)).collect()
}

/// Decodes a path, in which blanks, newlines and backslashes are `\` and three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let octal = |digits: &[u8]| {
            digits.iter().try_fold(0_u8, |sum, digit| {
                (b'0'..=b'7').contains(digit).then(|| sum.wrapping_mul(8).wrapping_add(digit - b'0'))
            })
        };
        match (first, behind.get(..3).and_then(octal)) {
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = &behind[3..];
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_at_and_below_are_found() {
        let list = b"21 1 0:1 / / rw - ext4 /dev/a rw\n22 21 0:2 / /tmp/x rw - tmpfs t rw\n23 22 0:3 / /tmp/x/a\\040b rw - tmpfs t rw\n\
            24 21 0:4 / /tmp/xy rw - tmpfs t rw\n25 22 0:5 / /tmp/x/\\134 rw - tmpfs t rw\nshort\n";
        let found = below(list, Path::new("/tmp/x"));
        assert_eq!(found, ["/tmp/x", "/tmp/x/a b", "/tmp/x/\\"].map(PathBuf::from));
        assert!(below(b"", Path::new("/")).is_empty());
    }
}
