//! The directory for files that are measured, and where it is refused.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::io::Errno;
use tollgate_os::private::{PrivateDirectory, TrustedDirectory};
use tollgate_os::{trust::TrustError, users};

use crate::error::{EnvironmentError, bytes, plainly, unusable};

/// Makes a directory for measured files in `under`, and removes those that killed programs of this user left there.
///
/// # Errors
/// A sentence that names `under`: it does not exist, is not a directory, is on a network, read-only, full or not writable; or
/// another user could replace what is used there.
pub fn for_files(under: &Path) -> Result<PrivateDirectory, EnvironmentError> {
    let place = TrustedDirectory::open(under).map_err(|error| match error {
        TrustError::Foreign(directory, owner) => strangers(&directory, owner),
        other => distrusted(under, &other),
    })?;
    expect_local(&place, under)?;
    PrivateDirectory::make(&place).map_err(|error| unmade(under, error))
}

/// Even root does not write in another user's directory: its owner could redirect the files anywhere.
fn strangers(directory: &Path, owner: u32) -> EnvironmentError {
    let or_be_its_owner = if rustix::process::geteuid().is_root() {
        format!(", or run tollgate as its owner (sudo -u {} tollgate ...)", users::of_sudo(owner))
    } else {
        String::new()
    };
    EnvironmentError::Unsafe(format!(
        "{} belongs to {}, who could replace the files in use there; name a directory of your own with --dir{or_be_its_owner}",
        directory.display(),
        users::describe(owner)
    ))
}

/// Bytes that are written if a file system states no size; it may be memory.
const WHERE_UNSTATED: u64 = 1 << 30;

/// Returns how many bytes may be written in a directory, and why: a tenth of the free space.
///
/// # Errors
/// The file system does not say how much is free.
pub fn writable(directory: impl AsFd, shown: &Path) -> Result<(u64, String), EnvironmentError> {
    let stat = rustix::fs::fstatvfs(directory)
        .map_err(|error| EnvironmentError::new(format_args!("{}: fstatvfs(3)", shown.display()), error))?;
    Ok(match tollgate_os::space::free(&stat) {
        Some(free) => (free / 10, format!("a tenth of the {} of free space (statvfs(3))", bytes(free))),
        None => (WHERE_UNSTATED, "the limit if the file system reports no size (statvfs(3))".to_owned()),
    })
}

pub(crate) fn code(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::INVAL, Errno::from_raw_os_error)
}

pub(crate) fn distrusted(under: &Path, error: &TrustError) -> EnvironmentError {
    match error {
        TrustError::Io(_, why) => refusal(under, code(why)),
        other => EnvironmentError::Unsafe(other.to_string()),
    }
}

pub(crate) fn unmade(under: &Path, error: Errno) -> EnvironmentError {
    match error {
        Errno::WOULDBLOCK => {
            unusable!("{}: a directory there cannot be locked (flock(2))", under.display())
        }
        error => refusal(under, error),
    }
}

/// Refuses a directory on a network file system. The error names both.
pub(crate) fn expect_local(directory: impl AsFd, under: &Path) -> Result<(), EnvironmentError> {
    network(directory.as_fd()).map_or(Ok(()), |name| {
        Err(unusable!(
            "{} is on a network file system ({name}), but tollgate measures only this machine",
            under.display()
        ))
    })
}

fn refusal(under: &Path, error: Errno) -> EnvironmentError {
    let under = under.display();
    EnvironmentError::Unusable(match error {
        Errno::NOENT => format!("{under} does not exist"),
        Errno::NOTDIR => format!("{under} is not a directory"),
        Errno::ROFS => format!("{under} is on a read-only file system"),
        Errno::ACCESS | Errno::PERM => format!("{under} is not writable: {}", plainly(error)),
        Errno::NOSPC | Errno::DQUOT => format!("{under} is full: {}", plainly(error)),
        _ => format!("{under} cannot be used: {}", plainly(error)),
    })
}

/// Returns the name of the network file system that a directory is on. File systems through which a virtual machine sees its
/// host's files (9p, virtiofs) do not count.
fn network(directory: BorrowedFd<'_>) -> Option<String> {
    /// `FUSE_SUPER_MAGIC` in linux/magic.h. Only the list of mounts names the actual file system.
    const FUSE: u64 = 0x6573_5546;
    let stat = rustix::fs::fstatfs(directory).ok()?;
    let kind = stat.f_type.cast_unsigned() & 0xffff_ffff;
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

/// Returns the type of the file system with this device number in `/proc/self/mountinfo`.
fn kind_of_mount(mounts: &str, major: u32, minor: u32) -> Option<&str> {
    let device = format!("{major}:{minor}");
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some(&device))?;
    mount.split_once(" - ")?.1.split(' ').next()
}

fn is_network_fuse(name: &str) -> bool {
    const KNOWN: &str = "sshfs glusterfs s3fs rclone ceph ceph-fuse gcsfuse davfs davfs2 curlftpfs mount-s3 juicefs seaweedfs \
        blobfuse2";
    name.strip_prefix("fuse.").is_some_and(|name| KNOWN.split(' ').any(|known| known == name))
}

/// Magic numbers of network file systems in statfs(2): linux/magic.h, and the file systems' sources.
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
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

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
        let private = for_files(under.path()).unwrap();
        let mode = fs::metadata(private.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o700);
        assert!(private.path().is_absolute());
        fs::create_dir_all(private.path().join("a/b/c")).unwrap();
        fs::write(private.path().join("a/b/file"), "x").unwrap();
        for n in 0..3000 {
            fs::write(private.path().join(format!("a/{n}")), "").unwrap();
        }
        let second = for_files(under.path()).unwrap();
        assert_eq!(names(under.path()).len(), 2, "the first is in use");
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
        drop(for_files(under.path()).unwrap());
        let gone: Vec<String> =
            before.iter().filter(|name| !names(under.path()).contains(name)).cloned().collect();
        assert_eq!(gone, [".tollgate-4194304-0123456789abcdef"]);
        assert_eq!(names(elsewhere.path()), ["precious"]);
    }

    /// A directory of another user, or `None` if this process may not make one.
    fn of_another() -> Option<tempfile::TempDir> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: needs root (to give a directory to another user)");
            return None;
        }
        let under = tempfile::tempdir().unwrap();
        chown(under.path(), Some(OTHER), Some(OTHER)).unwrap();
        Some(under)
    }

    const OTHER: u32 = 54_321;

    #[test]
    fn where_another_user_can_exchange_it_there_is_none() {
        let under = tempfile::tempdir().unwrap();
        let open = under.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let why = for_files(&open).unwrap_err();
        assert!(matches!(&why, EnvironmentError::Unsafe(why) if why.contains("chmod o-w")), "{why}");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(for_files(&open).is_ok());
        let Some(theirs) = of_another() else { return };
        let below = theirs.path().join("roots");
        fs::create_dir(&below).unwrap();
        for path in [theirs.path(), &below] {
            let why = for_files(path).unwrap_err().to_string();
            assert!(why.starts_with(&format!("{} belongs to uid 54321, ", theirs.path().display())), "{why}");
            assert!(why.ends_with("(sudo -u '#54321' tollgate ...)"), "{why}");
        }
        assert_eq!((names(theirs.path()), names(&below)), (vec!["roots".to_owned()], Vec::new()));
        let link = theirs.path().join("link");
        symlink(under.path(), &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(OTHER), Some(OTHER)).unwrap();
        let why = for_files(&link).unwrap_err();
        assert!(matches!(&why, EnvironmentError::Unsafe(why) if why.contains("symbolic link")), "{why}");
        assert_eq!(names(under.path()), ["open"]);
    }

    #[test]
    fn makers_at_the_same_time_do_not_meet() {
        let under = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let private = for_files(under.path()).unwrap();
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
        let why = |path: &Path| for_files(path).unwrap_err().to_string();
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
    fn the_limit_is_a_tenth() {
        let under = tempfile::tempdir().unwrap();
        let (bytes, by) = writable(for_files(under.path()).unwrap(), under.path()).unwrap();
        let stat = rustix::fs::statvfs(under.path()).unwrap();
        match tollgate_os::space::free(&stat) {
            Some(_) => {
                assert!(bytes <= stat.f_blocks * stat.f_frsize / 10);
                assert!(by.starts_with("a tenth of the "), "{by}");
            }
            None => assert_eq!(bytes, WHERE_UNSTATED),
        }
    }
}
