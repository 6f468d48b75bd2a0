//! The data directory: the working directory, opened once, and the names in it.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::{ffi::CStr, io, mem, rc::Rc};

use tollgate_os::signals::{Changed, Disposition};
use tollgate_os::workdir::{Workdir, WorkdirError};

use super::refusal::refused;
use crate::descriptor::owned;
use crate::prelude::*;

pub(crate) struct DataDir {
    directory: OwnedFd,
    limit: u64,
    by: String,
    pub heartbeat: Heartbeat,
    /// Ignores SIGXFSZ: a write beyond RLIMIT_FSIZE fails with EFBIG instead of killing the process (setrlimit(2)).
    _signal: Option<Changed>,
}

impl DataDir {
    /// Returns the data directory of this run. All instances of a process share it.
    pub fn of(context: &mut Context) -> Result<Rc<Self>> {
        let open = |context: &mut Context| Self::at(context.storage()?, context.heartbeat.clone());
        context.shared_while_held("", open)
    }

    pub fn at(storage: &Storage, heartbeat: Heartbeat) -> Result<Self> {
        let directory = opened(&storage.directory)?;
        let signal = Disposition::ignored().set_for_now(libc::SIGXFSZ).ok();
        Ok(Self { directory, limit: storage.limit, by: storage.by.clone(), heartbeat, _signal: signal })
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }

    pub fn allows(&self, bytes: u64) -> Result<()> {
        if bytes <= self.limit {
            return Ok(());
        }
        let amount = match bytes >> 20 {
            0 => format!("{} KiB", bytes >> 10),
            mebibytes => format!("{mebibytes} MiB"),
        };
        Err(skip!("{amount} of files would be more than {}", self.by))
    }

    pub fn descriptor(&self) -> RawFd {
        self.directory.as_raw_fd()
    }

    pub fn open(&self, name: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
        open_at(self.descriptor(), name, flags | libc::O_CLOEXEC | libc::O_NOFOLLOW)
    }

    /// Creates a file for reading and writing, replacing an existing one.
    pub fn create(&self, name: &CStr) -> Result<OwnedFd> {
        self.remove(name)?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        self.open(name, flags).map_err(|error| refused("openat(2) with O_CREAT", &error))
    }

    pub fn remove(&self, name: &CStr) -> Result<()> {
        // SAFETY: an open directory and a C string.
        match checked(unsafe { libc::unlinkat(self.descriptor(), name.as_ptr(), 0) }) {
            Err(error) if error.raw_os_error() != Some(libc::ENOENT) => Err(refused("unlinkat(2)", &error)),
            _ => Ok(()),
        }
    }

    pub fn rename(&self, from: &CStr, to: &CStr) -> io::Result<usize> {
        let directory = self.descriptor();
        // SAFETY: an open directory and two C strings.
        checked(unsafe { libc::renameat(directory, from.as_ptr(), directory, to.as_ptr()) })
    }

    pub fn kind(&self) -> FileSystemKind {
        FileSystemKind::of_file(&self.directory)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileSystemKind {
    Memory(&'static str),
    Network(&'static str),
    /// On local storage, or unknown.
    Other,
}

impl FileSystemKind {
    pub fn of_file(file: &OwnedFd) -> Self {
        // SAFETY: an all-zero statfs is valid.
        let mut filesystem: libc::statfs = unsafe { mem::zeroed() };
        // SAFETY: an open descriptor; `filesystem` is valid for writing; on failure it stays zero.
        unsafe { libc::fstatfs(file.as_raw_fd(), &mut filesystem) };
        // Magic numbers have 32 bits (include/uapi/linux/magic.h).
        Self::by_magic(filesystem.f_type as u32)
    }

    fn by_magic(magic: u32) -> Self {
        match magic {
            0x0102_1994 => Self::Memory("tmpfs"),
            0x8584_58f6 => Self::Memory("ramfs"),
            0x6969 => Self::Network("NFS"),
            0xff53_4d42 | 0xfe53_4d42 | 0x517b => Self::Network("SMB"),
            0x00c3_6400 => Self::Network("Ceph"),
            0x0102_1997 => Self::Network("9P"),
            0x5346_414f => Self::Network("AFS"),
            _ => Self::Other,
        }
    }

    /// A note on what "storage" means there.
    pub fn note(self) -> Option<String> {
        match self {
            Self::Network(name) => Some(format!("network file system ({name}): its server has the storage")),
            Self::Memory(name) => Some(format!("{name}: it has no storage")),
            Self::Other => None,
        }
    }
}

/// Opens a working directory.
///
/// # Errors
/// [`Refusal::Fail`] if another directory replaced it, [`Refusal::Skip`] if it cannot be opened.
pub(crate) fn opened(directory: &Workdir) -> Result<OwnedFd> {
    directory.open().map_err(|error| match error {
        WorkdirError::Exchanged(_) => Refusal::Fail(error.to_string()),
        WorkdirError::Io(path, why) => refused(&format!("the directory {}", path.display()), &why),
    })
}

fn open_at(directory: RawFd, name: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: a C string; the mode is read only for a new file.
    owned(unsafe { libc::openat(directory, name.as_ptr(), flags, 0o600) })
}

pub(super) struct Scratch {
    dir: Rc<DataDir>,
    pub name: &'static CStr,
    pub file: OwnedFd,
}

impl Scratch {
    pub fn new(dir: &Rc<DataDir>, name: &'static CStr) -> Result<Self> {
        Ok(Self { dir: Rc::clone(dir), name, file: dir.create(name)? })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The directory's maker removes what is left in it.
        let _ = self.dir.remove(self.name);
    }
}

pub(super) struct Names {
    dir: Rc<DataDir>,
    names: &'static [&'static CStr],
}

impl Names {
    pub fn free(dir: &Rc<DataDir>, names: &'static [&'static CStr]) -> Result<Self> {
        names.iter().try_for_each(|name| dir.remove(name))?;
        Ok(Self { dir: Rc::clone(dir), names })
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        for name in self.names {
            let _ = self.dir.remove(name);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tollgate_model::traced::Ended;
    use tollgate_os::process;

    use super::*;
    use crate::testing::Directory;

    pub(in crate::files) struct Own {
        directory: Directory,
        pub dir: Rc<DataDir>,
    }

    impl Own {
        pub fn new() -> Self {
            Self::with_limit(64 << 20)
        }

        pub fn with_limit(limit: u64) -> Self {
            let directory = Directory::new();
            let workdir = Workdir::find(&directory.0).expect("just made");
            let storage = Storage { directory: workdir, limit, by: "what the test allows".to_owned() };
            let dir = Rc::new(DataDir::at(&storage, Heartbeat::default()).expect("just made"));
            Self { directory, dir }
        }

        pub fn names(&self) -> Vec<String> {
            let entries = std::fs::read_dir(&self.directory.0).expect("just made");
            let mut names: Vec<String> =
                entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into()).collect();
            names.sort();
            names
        }
    }

    #[test]
    fn a_scratch_file_is_unlinked_on_drop() {
        let own = Own::new();
        let first = Scratch::new(&own.dir, c"scratch").expect("a file");
        assert_eq!(own.names(), ["scratch"]);
        // A file that a killed process left does not matter.
        let second = Scratch::new(&own.dir, c"scratch").expect("a file");
        drop((first, second));
        assert!(own.names().is_empty());
    }

    #[test]
    fn too_many_bytes_are_refused_with_the_limit() {
        let own = Own::with_limit(1 << 20);
        assert_eq!(own.dir.allows(1 << 20), Ok(()));
        let why = "4 MiB of files would be more than what the test allows";
        assert_eq!(own.dir.allows(4 << 20), Err(Refusal::Skip(why.to_owned())));
    }

    #[test]
    fn a_missing_directory_is_refused() {
        let own = Own::new();
        let directory = Workdir::find(&own.directory.0).expect("just made");
        std::fs::remove_dir(&own.directory.0).expect("empty");
        let storage = Storage { directory, limit: 1, by: String::new() };
        let path = own.directory.0.display().to_string();
        let refused = |why: &str| why.contains(&path) && why.contains("was replaced");
        assert!(
            matches!(DataDir::at(&storage, Heartbeat::default()), Err(Refusal::Fail(why)) if refused(&why))
        );
    }

    #[test]
    fn kinds_are_recognised_by_their_magic() {
        assert_eq!(FileSystemKind::by_magic(0x0102_1994), FileSystemKind::Memory("tmpfs"));
        assert_eq!(FileSystemKind::by_magic(0x6969), FileSystemKind::Network("NFS"));
        // ext2, ext3 and ext4.
        assert_eq!(FileSystemKind::by_magic(0xef53), FileSystemKind::Other);
        assert!(FileSystemKind::Network("NFS").note().is_some_and(|note| note.contains("server")));
    }

    #[test]
    fn a_write_beyond_the_file_size_limit_is_an_error() {
        // The limit applies to the whole process, so the test forks.
        let own = Own::new();
        let child = process::fork(|| {
            let limit = libc::rlimit { rlim_cur: 4096, rlim_max: libc::RLIM_INFINITY };
            // SAFETY: the limit is valid for reading.
            unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) };
            let refused = own.dir.create(c"large").and_then(|file| {
                let bytes = [1_u8; 8192];
                super::super::data::put(&file, &bytes, 0)
            });
            i32::from(!matches!(refused, Err(Refusal::Skip(why)) if why.contains("RLIMIT_FSIZE")))
        });
        assert_eq!(child.and_then(|mut child| child.wait()).expect("it ends"), Ended::Exit(0));
    }
}
