//! A directory of this run alone.
//!
//! Its name has the form `.tollgate-<pid>-<16 hexadecimal digits>`. Whoever made it holds an exclusive flock(2) on
//! it; where the lock can be had the maker is dead, and the next one takes the directory away.

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::{PlaceError, bytes, plainly};

/// What the names of private directories begin with.
const PREFIX: &str = ".tollgate-";
/// Entries of a directory that are looked at for what a killed program left.
const MAX_LOOK: usize = 1 << 16;
/// Entries that are removed at the most: many more than any probe makes.
const MAX_REMOVED: usize = 1 << 20;
/// How deep directories lie in a private one, at the most.
const MAX_DEPTH: u32 = 16;
/// A name that was just made may be taken for one that was left, and be removed, until its lock is held.
const ATTEMPTS: u32 = 16;

/// A directory of this process alone; removed with all that is in it when it is dropped.
#[derive(Debug)]
pub struct Private {
    parent: OwnedFd,
    own: OwnedFd,
    name: String,
    path: PathBuf,
    stays: Cell<bool>,
}

impl Private {
    /// Makes one in `under`, and removes those that killed programs of this user left there.
    ///
    /// # Errors
    /// A sentence that names `under`: it is not there, no directory, on a network, read-only, full, not allowed.
    pub fn make(under: &Path) -> Result<Self, PlaceError> {
        let parent = open(under)?;
        if let Some(name) = network(parent.as_fd()) {
            return Err(PlaceError::Unusable(format!(
                "{} is on a network file system ({name}): tollgate measures this machine only",
                under.display()
            )));
        }
        drop(left(&parent, under, PREFIX));
        Self::new(parent, under, PREFIX)
    }

    /// Makes one whose name begins with `prefix`.
    pub(crate) fn new(parent: OwnedFd, under: &Path, prefix: &str) -> Result<Self, PlaceError> {
        let whole = fs::canonicalize(under).map_err(|error| {
            let code = error.raw_os_error().map_or(Errno::INVAL, Errno::from_raw_os_error);
            refusal(under, code)
        })?;
        for _ in 0..ATTEMPTS {
            let name = format!("{prefix}{}-{:016x}", std::process::id(), random(under)?);
            match rustix::fs::mkdirat(&parent, name.as_str(), Mode::RWXU) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(refusal(under, error)),
            }
            if let Some(own) = locked(&parent, &name) {
                return Ok(Self { parent, own, path: whole.join(&name), name, stays: Cell::new(false) });
            }
        }
        Err(PlaceError::Unusable(format!(
            "{}: a directory made there cannot be locked (flock(2))",
            under.display()
        )))
    }

    /// Where it is, from the root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it to the next run, which has to know what is written in it.
    pub(crate) fn leave(&self) {
        self.stays.set(true);
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if self.stays.get() {
            return;
        }
        let mut left = MAX_REMOVED;
        // What cannot be removed now is tried again by the next run.
        let _ = empty(self.own.as_fd(), MAX_DEPTH, &mut left);
        if same(&self.parent, &self.name, &self.own) {
            let _ = rustix::fs::unlinkat(&self.parent, self.name.as_str(), AtFlags::REMOVEDIR);
        }
    }
}

/// How many bytes may be written in a directory, and why no more: a tenth of what is free.
///
/// # Errors
/// Where the file system does not say what is free.
pub fn room(directory: &Path) -> Result<(u64, String), PlaceError> {
    let told = rustix::fs::statvfs(directory)
        .map_err(|error| PlaceError::of(format_args!("{}: statvfs(3)", directory.display()), error))?;
    let free = told.f_bavail.saturating_mul(told.f_frsize);
    Ok((free / 10, format!("a tenth of the {} that are free there (statvfs(3))", bytes(free))))
}

/// A directory, open to be read.
pub(crate) fn open(under: &Path) -> Result<OwnedFd, PlaceError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::openat(CWD, under, flags, Mode::empty()).map_err(|error| refusal(under, error))
}

/// The directories in `parent` that killed programs of this user left, now this process's own.
pub(crate) fn left(parent: &OwnedFd, under: &Path, prefix: &str) -> Vec<Private> {
    let Ok(entries) = Dir::read_from(parent) else { return Vec::new() };
    let names = entries.take(MAX_LOOK).filter_map(|entry| {
        let name = entry.ok()?.file_name().to_str().ok()?.to_owned();
        is_private(&name, prefix).then_some(name)
    });
    let taken = names.filter_map(|name| {
        let own = locked(parent, &name)?;
        Some(Private {
            parent: parent.try_clone().ok()?,
            own,
            path: under.join(&name),
            name,
            stays: Cell::new(false),
        })
    });
    taken.collect()
}

/// Whether a name has the form that is given to private directories.
fn is_private(name: &str, prefix: &str) -> bool {
    let parts = name.strip_prefix(prefix).and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(pid, random)| {
        let digits = !pid.is_empty() && pid.len() <= 10 && pid.bytes().all(|byte| byte.is_ascii_digit());
        let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        digits && random.len() == 16 && random.bytes().all(hexadecimal)
    })
}

/// The directory `name` with its lock, where it is a directory of this user's that nobody holds.
fn locked(parent: &OwnedFd, name: &str) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let own = rustix::fs::openat(parent, name, flags, Mode::empty()).ok()?;
    let told = rustix::fs::fstat(&own).ok()?;
    let is_ours = told.st_uid == rustix::process::geteuid().as_raw() && told.st_mode & 0o077 == 0;
    if !is_ours {
        return None;
    }
    rustix::fs::flock(&own, FlockOperation::NonBlockingLockExclusive).ok()?;
    // Between the two somebody may have removed it, or put another in its place.
    same(parent, name, &own).then_some(own)
}

/// Whether `name` still is what was opened.
fn same(parent: &OwnedFd, name: &str, own: &OwnedFd) -> bool {
    let id = |told: Stat| (told.st_dev, told.st_ino);
    let named = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map(id);
    let opened = rustix::fs::fstat(own).map(id);
    matches!((named, opened), (Ok(named), Ok(opened)) if named == opened)
}

/// Removes what is in a directory, and nothing that is mounted there or that a link leads to.
fn empty(directory: BorrowedFd<'_>, depth: u32, left: &mut usize) -> Result<(), Errno> {
    /// Names that are held at a time.
    const SOME: usize = 1024;
    loop {
        let mut names: Vec<(CString, FileType)> = Vec::new();
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name: &CStr = entry.file_name();
            if name != c"." && name != c".." {
                names.push((name.to_owned(), entry.file_type()));
            }
            if names.len() == SOME {
                break;
            }
        }
        if names.is_empty() {
            return Ok(());
        }
        for (name, kind) in names {
            *left = left.checked_sub(1).ok_or(Errno::TOOBIG)?;
            if kind != FileType::Directory {
                match rustix::fs::unlinkat(directory, &name, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => continue,
                    Err(Errno::ISDIR | Errno::PERM) => {}
                    Err(error) => return Err(error),
                }
            }
            let inner = beneath(directory, &name)?;
            empty(inner.as_fd(), depth.checked_sub(1).ok_or(Errno::LOOP)?, left)?;
            rustix::fs::unlinkat(directory, &name, AtFlags::REMOVEDIR)?;
        }
    }
}

/// A directory in another, of the same mount.
fn beneath(directory: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(directory, name, flags, Mode::empty(), resolve) {
        // Older than Linux 5.6, or filtered.
        Err(Errno::NOSYS | Errno::PERM) => {}
        answer => return answer,
    }
    let inner = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    match rustix::fs::fstat(&inner)?.st_dev == rustix::fs::fstat(directory)?.st_dev {
        true => Ok(inner),
        false => Err(Errno::XDEV),
    }
}

/// Why no directory can be made, in a sentence.
fn refusal(under: &Path, error: Errno) -> PlaceError {
    let under = under.display();
    PlaceError::Unusable(match error {
        Errno::NOENT => format!("{under} does not exist"),
        Errno::NOTDIR => format!("{under} is not a directory"),
        Errno::ROFS => format!("{under} is on a file system that is read-only"),
        Errno::ACCESS | Errno::PERM => format!("nothing can be written in {under}: {}", plainly(error)),
        Errno::NOSPC | Errno::DQUOT => format!("{under} is full: {}", plainly(error)),
        _ => format!("{under} cannot be used: {}", plainly(error)),
    })
}

fn random(under: &Path) -> Result<u64, PlaceError> {
    let mut bytes = [0; 8];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => Ok(u64::from_ne_bytes(bytes)),
        Ok(_) => Err(refusal(under, Errno::IO)),
        Err(error) => Err(PlaceError::of("getrandom(2)", error)),
    }
}

/// The name of the network file system that a directory is on. Those over which a virtual machine sees its host's
/// files (9p, virtiofs) are none.
fn network(directory: BorrowedFd<'_>) -> Option<String> {
    /// `FUSE_SUPER_MAGIC` in linux/magic.h: what it stands for is said by the list of mounts only.
    const FUSE: u64 = 0x6573_5546;
    let told = rustix::fs::fstatfs(directory).ok()?;
    let kind = told.f_type.cast_unsigned() & 0xffff_ffff;
    if let Some((_, name)) = NETWORK.iter().find(|(magic, _)| *magic == kind) {
        return Some((*name).to_owned());
    }
    if kind != FUSE {
        return None;
    }
    let device = rustix::fs::fstat(directory).ok()?.st_dev;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let name = kind_of_mount(&mounts, rustix::fs::major(device), rustix::fs::minor(device))?;
    is_network_fuse(name).then(|| name.to_owned())
}

/// What the file system with these numbers is called in `/proc/self/mountinfo`.
fn kind_of_mount(mounts: &str, major: u32, minor: u32) -> Option<&str> {
    let device = format!("{major}:{minor}");
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some(&device))?;
    mount.split_once(" - ")?.1.split(' ').next()
}

fn is_network_fuse(name: &str) -> bool {
    const KNOWN: [&str; 14] = [
        "sshfs",
        "glusterfs",
        "s3fs",
        "rclone",
        "ceph",
        "ceph-fuse",
        "gcsfuse",
        "davfs",
        "davfs2",
        "curlftpfs",
        "mount-s3",
        "juicefs",
        "seaweedfs",
        "blobfuse2",
    ];
    name.strip_prefix("fuse.").is_some_and(|name| KNOWN.contains(&name))
}

/// The numbers by which statfs(2) names network file systems: linux/magic.h, and their own sources.
const NETWORK: [(u64, &str); 16] = [
    (0x6969, "nfs"),
    (0x517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x00c3_6400, "ceph"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "afs"),
    (0x7375_7245, "coda"),
    (0x564c, "ncp"),
    (0x0116_1970, "gfs2"),
    (0x7461_636f, "ocfs2"),
    (0x0bd0_0bd0, "lustre"),
    (0x1983_0326, "beegfs"),
    (0x4750_4653, "gpfs"),
    (0x2003_0528, "orangefs"),
    (0x013f_f3aa, "panfs"),
];

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use proptest::prelude::*;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn it_is_there_while_it_is_held() {
        let under = tempfile::tempdir().unwrap();
        let private = Private::make(under.path()).unwrap();
        let mode = fs::metadata(private.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o700);
        assert!(private.path().is_absolute());
        fs::create_dir_all(private.path().join("a/b/c")).unwrap();
        fs::write(private.path().join("a/b/file"), "x").unwrap();
        for n in 0..3000 {
            fs::write(private.path().join(format!("a/{n}")), "").unwrap();
        }
        let second = Private::make(under.path()).unwrap();
        assert_eq!(names(under.path()).len(), 2, "the first is held");
        drop((private, second));
        assert!(names(under.path()).is_empty());
    }

    #[test]
    fn what_was_left_is_removed_and_nothing_else() {
        let under = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("precious"), "x").unwrap();
        let directory = |name: &str, mode: u32| {
            let path = under.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("file"), "x").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let left = directory(".tollgate-4194304-0123456789abcdef", 0o700);
        symlink(elsewhere.path(), left.join("link")).unwrap();
        directory(".tollgate-1-0123456789abcde", 0o700);
        directory(".tollgate-1-0123456789ABCDEF", 0o700);
        directory(".tollgate-ram-1-0123456789abcdef", 0o700);
        directory(".tollgate-2-0123456789abcdef", 0o755);
        symlink(elsewhere.path(), under.path().join(".tollgate-3-0123456789abcdef")).unwrap();
        fs::write(under.path().join(".tollgate-5-0123456789abcdef"), "x").unwrap();
        let before = names(under.path());
        drop(Private::make(under.path()).unwrap());
        let gone: Vec<String> =
            before.iter().filter(|name| !names(under.path()).contains(name)).cloned().collect();
        assert_eq!(gone, [".tollgate-4194304-0123456789abcdef"]);
        assert_eq!(names(elsewhere.path()), ["precious"]);
    }

    #[test]
    fn makers_at_the_same_time_do_not_meet() {
        let under = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let private = Private::make(under.path()).unwrap();
                        fs::write(private.path().join("file"), "x").unwrap();
                    }
                });
            }
        });
        assert!(names(under.path()).is_empty());
    }

    #[test]
    fn where_there_can_be_none_the_reason_is_named() {
        let under = tempfile::tempdir().unwrap();
        let file = under.path().join("file");
        fs::write(&file, "").unwrap();
        let why = |path: &Path| Private::make(path).unwrap_err().to_string();
        assert!(why(&under.path().join("absent")).ends_with("absent does not exist"));
        assert!(why(&file).ends_with("file is not a directory"));
        assert!(why(Path::new("/proc")).contains("/proc"));
        let full = refusal(Path::new("/x"), Errno::NOSPC).to_string();
        assert_eq!(full, "/x is full: No space left on device");
    }

    #[test]
    fn a_mounted_network_is_known_by_its_name() {
        let mounts =
            "36 35 0:52 / /mnt rw shared:1 - fuse.sshfs me@there: rw\n37 35 0:53 / /m rw - fuse.ntfs x rw\n";
        assert_eq!(kind_of_mount(mounts, 0, 52), Some("fuse.sshfs"));
        assert_eq!(kind_of_mount(mounts, 0, 5), None);
        assert!(
            is_network_fuse("fuse.sshfs") && !is_network_fuse("fuse.ntfs") && !is_network_fuse("fuseblk")
        );
    }

    #[test]
    fn room_is_a_tenth() {
        let under = tempfile::tempdir().unwrap();
        let (room, by) = room(under.path()).unwrap();
        let free = rustix::fs::statvfs(under.path()).unwrap();
        assert!(room <= free.f_blocks * free.f_frsize / 10);
        assert!(by.starts_with("a tenth of the "), "{by}");
    }

    proptest! {
        #[test]
        fn any_name_is_taken(name in "\\PC{0,60}|\\.tollgate-[0-9a-f-]{0,40}") {
            let _ = is_private(&name, PREFIX);
            let _ = kind_of_mount(&name, 1, 2);
        }

        #[test]
        fn own_names_are_known(pid: u32, random: u64) {
            prop_assert!(is_private(&format!("{PREFIX}{pid}-{random:016x}"), PREFIX), "{} {}", pid, random);
        }
    }
}
