//! The guest's side of the files that commands need: `/init` makes what the list of [`super::tree`] has in addition to the
//! archive, and sets all owners, modes and times. Then it executes the commands, before the guest contacts the host.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, chownat, utimensat};
use tollgate_engine::versus::counted::{self, Rounds};

use super::git_index;
use super::layout::{A_DIRECTORY, A_FILE, A_LINK, A_SHELL, TREE};

pub(super) fn is_there() -> bool {
    Path::new(counted::ORDERS).exists()
}

/// Makes the files, executes the commands, and stores their results. Returns what was ordered.
pub(super) fn execute() -> Result<Rounds, String> {
    let list = fs::read(Path::new("/").join(TREE)).map_err(|error| format!("/{TREE}: {error}"))?;
    plant(&list)?;
    let orders = fs::read(counted::ORDERS).map_err(|error| format!("{}: {error}", counted::ORDERS))?;
    let rounds: Rounds =
        serde_json::from_slice(&orders).map_err(|error| format!("{}: {error}", counted::ORDERS))?;
    let mut found = Vec::new();
    counted::execute_all(&rounds, &mut |execution| {
        // Writing to a vector cannot fail.
        let _ = serde_json::to_writer(&mut found, execution);
        found.push(b'\n');
    });
    let kept = File::create(counted::FOUND).and_then(|mut file| file.write_all(&found));
    kept.map_err(|error| format!("{}: {error}", counted::FOUND))?;
    Ok(rounds)
}

/// Makes what does not exist yet, then sets what making it changed.
fn plant(list: &[u8]) -> Result<(), String> {
    let all: Vec<Planted> = Planted::all(list).collect();
    for one in &all {
        one.make().map_err(|error| format!("{}: {error}", one.path.display()))?;
    }
    // Making an entry changes its directory's attributes.
    all.iter().for_each(Planted::settle);
    let unread = all.iter().filter(|one| matches!(one.kind, A_SHELL | A_LINK));
    let unread: HashSet<&Path> = unread.map(|one| one.path).collect();
    for index in all.iter().filter(|one| one.kind == A_FILE && one.path.ends_with(".git/index")) {
        // If this fails, git reads more files.
        let _ = git_index::renew(index.path, |file| unread.contains(file));
        index.settle();
    }
    Ok(())
}

struct Planted<'a> {
    kind: char,
    mode: u32,
    user: u32,
    group: u32,
    seconds: i64,
    nanoseconds: i64,
    size: u64,
    path: &'a Path,
    to: &'a Path,
}

impl<'a> Planted<'a> {
    fn all(list: &'a [u8]) -> impl Iterator<Item = Self> {
        let mut texts = list.split(|byte| *byte == 0);
        std::iter::from_fn(move || Self::parse(texts.next()?, texts.next()?))
    }

    fn parse(line: &'a [u8], to: &'a [u8]) -> Option<Self> {
        let mut words = line.splitn(8, |byte| *byte == b' ');
        let mut word = || std::str::from_utf8(words.next()?).ok();
        let kind = word()?.chars().next()?;
        let (mode, user, group) = (word()?.parse().ok()?, word()?.parse().ok()?, word()?.parse().ok()?);
        let (seconds, nanoseconds) = (word()?.parse().ok()?, word()?.parse().ok()?);
        let size = word()?.parse().ok()?;
        let path = Path::new(OsStr::from_bytes(words.next()?));
        let to = Path::new(OsStr::from_bytes(to));
        Some(Self { kind, mode, user, group, seconds, nanoseconds, size, path, to })
    }

    fn make(&self) -> io::Result<()> {
        match self.kind {
            A_DIRECTORY => fs::create_dir_all(self.path),
            A_LINK => {
                // A path such as /lib, which is an empty directory in the guest, is a link on many systems.
                let _ = fs::remove_dir(self.path.join("modules"));
                let _ = fs::remove_dir(self.path);
                match symlink(self.to, self.path) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                    done => done,
                }
            }
            A_SHELL => File::create(self.path)?.set_len(self.size),
            A_FILE => Ok(()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Sets what the file system allows.
    fn settle(&self) {
        let (user, group) = (rustix::fs::Uid::from_raw(self.user), rustix::fs::Gid::from_raw(self.group));
        let _ = chownat(CWD, self.path, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW);
        if self.kind != A_LINK {
            let _ = fs::set_permissions(self.path, Permissions::from_mode(self.mode));
        }
        let time = Timespec { tv_sec: self.seconds, tv_nsec: self.nanoseconds };
        let times = Timestamps { last_access: time, last_modification: time };
        let _ = utimensat(CWD, self.path, &times, AtFlags::SYMLINK_NOFOLLOW);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn what_is_listed_is_made_with_its_times() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let line = |kind: char, size: u64, name: &str, to: &str| {
            let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
            let path = root.join(name).display().to_string();
            format!("{kind} {} {user} {group} 1000000 5 {size} {path}\0{to}\0", 0o640 | 0o100)
        };
        let list = [
            line(A_DIRECTORY, 0, "a directory", ""),
            line(A_SHELL, 1 << 40, "a directory/large", ""),
            line(A_LINK, 0, "link", "a directory/large"),
        ];
        plant(list.concat().as_bytes()).unwrap();
        let about = fs::metadata(root.join("link")).unwrap();
        assert_eq!(
            (about.len(), about.blocks(), about.mtime(), about.mode() & 0o777),
            (1 << 40, 0, 1_000_000, 0o740)
        );
        assert_eq!(fs::metadata(root.join("a directory")).unwrap().mtime(), 1_000_000);
        assert!(plant(b"x 0 0 0 0 0 0 /nothing\0\0").is_err());
    }

    takes_any! {
        bytes in prop::collection::vec(any::<u8>(), 0..200) =>
            Planted::all(&bytes).count(), Planted::all(&[b"f 1 2 3 4 5 6 /a\0", bytes.as_slice(), b"\0"].concat()).count()
    }
}
