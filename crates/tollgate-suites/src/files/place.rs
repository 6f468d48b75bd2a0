//! The place where files are: the storage's directory, opened once, and the names in it.

use std::cell::RefCell;
use std::ffi::CStr;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::rc::{Rc, Weak};

use tollgate_os::workdir::{Workdir, WorkdirError};

use tollgate_engine::{Refusal, Storage, storage};

use super::refusal::{checked, refused};

/// An open directory in which this process may write.
pub(crate) struct Place {
    directory: OwnedFd,
    limits: u64,
    by: String,
    _signal: FileSizeSignal,
}

thread_local! {
    /// For all instances of this process: one descriptor, one change of the signal.
    static HERE: RefCell<Weak<Place>> = const { RefCell::new(Weak::new()) };
}

impl Place {
    /// The storage of this run.
    ///
    /// # Errors
    /// [`Refusal::Skip`] where there is none, or where it cannot be opened.
    pub fn here() -> Result<Rc<Self>, Refusal> {
        if let Some(open) = HERE.with_borrow(Weak::upgrade) {
            return Ok(open);
        }
        let place = Rc::new(Self::at(storage::here()?)?);
        HERE.set(Rc::downgrade(&place));
        Ok(place)
    }

    /// Any directory, with what may be written there.
    ///
    /// # Errors
    /// As [`opened`].
    pub fn at(storage: &Storage) -> Result<Self, Refusal> {
        let directory = opened(&storage.directory)?;
        let signal = FileSizeSignal::ignored();
        Ok(Self { directory, limits: storage.limits, by: storage.by.clone(), _signal: signal })
    }

    /// Bytes that may be there at a time.
    pub fn limits(&self) -> u64 {
        self.limits
    }

    /// That files of so many bytes in all may be there.
    ///
    /// # Errors
    /// [`Refusal::Skip`] with what allows no more.
    pub fn allows(&self, bytes: u64) -> Result<(), Refusal> {
        if bytes <= self.limits {
            return Ok(());
        }
        let amount = match bytes >> 20 {
            0 => format!("{} KiB", bytes >> 10),
            mebibytes => format!("{mebibytes} MiB"),
        };
        Err(Refusal::Skip(format!("{amount} of files would be more than {}", self.by)))
    }

    /// The directory's descriptor, for calls that take a name relative to one.
    pub fn descriptor(&self) -> RawFd {
        self.directory.as_raw_fd()
    }

    /// openat(2), close-on-exec; a new file is for its owner alone, and no link is followed.
    ///
    /// # Errors
    /// What the call says.
    pub fn open(&self, name: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
        open_at(self.descriptor(), name, flags | libc::O_CLOEXEC | libc::O_NOFOLLOW)
    }

    /// A new file of this name, for reading and writing; what had the name is gone.
    ///
    /// # Errors
    /// As [`refused`].
    pub fn create(&self, name: &CStr) -> Result<OwnedFd, Refusal> {
        self.remove(name)?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        self.open(name, flags).map_err(|error| refused("openat(2) with O_CREAT", &error))
    }

    /// Takes the name away; that there was none is as good.
    ///
    /// # Errors
    /// As [`refused`].
    pub fn remove(&self, name: &CStr) -> Result<(), Refusal> {
        // SAFETY: an open directory and a C string.
        match checked(unsafe { libc::unlinkat(self.descriptor(), name.as_ptr(), 0) }) {
            Err(error) if error.raw_os_error() != Some(libc::ENOENT) => Err(refused("unlinkat(2)", &error)),
            _ => Ok(()),
        }
    }

    /// Gives the file another name, whoever had that.
    ///
    /// # Errors
    /// What renameat(2) says.
    pub fn rename(&self, from: &CStr, to: &CStr) -> io::Result<usize> {
        let directory = self.descriptor();
        // SAFETY: an open directory and two C strings.
        checked(unsafe { libc::renameat(directory, from.as_ptr(), directory, to.as_ptr()) })
    }

    /// What kind of file system it is (statfs(2), `f_type`), where that matters.
    pub fn kind(&self) -> Kind {
        // SAFETY: an all-zero statfs is valid.
        let mut filesystem: libc::statfs = unsafe { mem::zeroed() };
        // SAFETY: an open descriptor; `filesystem` is valid for writing; on failure it stays zero.
        unsafe { libc::fstatfs(self.descriptor(), &mut filesystem) };
        // Magic numbers have 32 bits (include/uapi/linux/magic.h).
        Kind::of(filesystem.f_type as u32)
    }
}

/// Kinds of file systems whose files are kept in an unusual place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In memory alone, by this name.
    Memory(&'static str),
    /// On another machine, by this name.
    Network(&'static str),
    /// On this machine's storage, or who knows.
    Other,
}

impl Kind {
    fn of(magic: u32) -> Self {
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

    /// What a price of storage means there.
    pub fn note(self) -> Option<String> {
        match self {
            Self::Network(name) => {
                Some(format!("this is a network file system ({name}): storage is behind its server"))
            }
            Self::Memory(name) => Some(format!("this is {name}: there is no storage behind it")),
            Self::Other => None,
        }
    }
}

/// A working directory's descriptor.
///
/// # Errors
/// [`Refusal::Fail`] where another directory is in its place, [`Refusal::Skip`] where it cannot be opened.
pub(crate) fn opened(directory: &Workdir) -> Result<OwnedFd, Refusal> {
    directory.open().map_err(|error| match error {
        WorkdirError::Exchanged(_) => Refusal::Fail(error.to_string()),
        WorkdirError::Io { path, why } => refused(&format!("the directory {}", path.display()), &why),
    })
}

/// openat(2); a new file is for its owner alone.
fn open_at(directory: RawFd, name: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: a C string; the mode is read only where a file is made.
    let descriptor = checked(unsafe { libc::openat(directory, name.as_ptr(), flags, 0o600) })?;
    // SAFETY: the descriptor was just made and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) })
}

/// A file of an instance's own: gone when it is dropped.
pub(super) struct Scratch {
    place: Rc<Place>,
    pub name: &'static CStr,
    pub file: OwnedFd,
}

impl Scratch {
    /// A new, empty one.
    ///
    /// # Errors
    /// As [`refused`].
    pub fn new(place: &Rc<Place>, name: &'static CStr) -> Result<Self, Refusal> {
        Ok(Self { place: Rc::clone(place), name, file: place.create(name)? })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Whoever made the directory takes it away with all that is left in it.
        let _ = self.place.remove(self.name);
    }
}

/// Names that are gone when this is dropped, whichever of them there are.
pub(super) struct Names {
    place: Rc<Place>,
    names: &'static [&'static CStr],
}

impl Names {
    /// From now on none of them is there.
    ///
    /// # Errors
    /// As [`refused`].
    pub fn free(place: &Rc<Place>, names: &'static [&'static CStr]) -> Result<Self, Refusal> {
        names.iter().try_for_each(|name| place.remove(name))?;
        Ok(Self { place: Rc::clone(place), names })
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        for name in self.names {
            // As for a scratch file.
            let _ = self.place.remove(name);
        }
    }
}

/// A write beyond RLIMIT_FSIZE kills, unless its signal is ignored: then it is EFBIG (setrlimit(2)). What the signal
/// did before it does again when this is dropped.
struct FileSizeSignal {
    before: libc::sighandler_t,
}

impl FileSizeSignal {
    fn ignored() -> Self {
        // SAFETY: ignoring a signal runs nothing.
        Self { before: unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) } }
    }
}

impl Drop for FileSizeSignal {
    fn drop(&mut self) {
        if self.before != libc::SIG_ERR {
            // SAFETY: what was installed before us, by whoever it was.
            unsafe { libc::signal(libc::SIGXFSZ, self.before) };
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    /// A directory of a test's own; gone with it.
    pub(in crate::files) struct Own {
        path: PathBuf,
        pub place: Rc<Place>,
    }

    impl Own {
        pub fn new() -> Self {
            Self::with_limits(64 << 20)
        }

        pub fn with_limits(limits: u64) -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Relaxed);
            let path = std::env::temp_dir().join(format!("tollgate-files-{}-{number}", std::process::id()));
            std::fs::create_dir(&path).expect("a new directory");
            let directory = Workdir::find(&path).expect("just made");
            let storage = Storage { directory, limits, by: "what the test allows".to_owned() };
            let place = Rc::new(Place::at(&storage).expect("just made"));
            Self { path, place }
        }

        /// Names in it, sorted.
        pub fn names(&self) -> Vec<String> {
            let entries = std::fs::read_dir(&self.path).expect("just made");
            let mut names: Vec<String> =
                entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Own {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }

    #[test]
    fn a_scratch_file_goes_with_its_instance() {
        let own = Own::new();
        let first = Scratch::new(&own.place, c"scratch").expect("a file");
        assert_eq!(own.names(), ["scratch"]);
        // What a process left that was killed is in nobody's way.
        let second = Scratch::new(&own.place, c"scratch").expect("a file");
        drop((first, second));
        assert!(own.names().is_empty());
    }

    #[test]
    fn what_is_too_much_is_refused_with_who_allows_no_more() {
        let own = Own::with_limits(1 << 20);
        assert_eq!(own.place.allows(1 << 20), Ok(()));
        let why = "4 MiB of files would be more than what the test allows";
        assert_eq!(own.place.allows(4 << 20), Err(Refusal::Skip(why.to_owned())));
    }

    #[test]
    fn a_directory_that_is_not_there_is_a_reason() {
        let own = Own::new();
        let directory = Workdir::find(&own.path).expect("just made");
        std::fs::remove_dir(&own.path).expect("empty");
        let storage = Storage { directory, limits: 1, by: String::new() };
        let path = own.path.display().to_string();
        let refused = |why: &str| why.contains(&path) && why.contains("exchanged");
        assert!(matches!(Place::at(&storage), Err(Refusal::Fail(why)) if refused(&why)));
    }

    #[test]
    fn kinds_are_told_by_their_magic() {
        assert_eq!(Kind::of(0x0102_1994), Kind::Memory("tmpfs"));
        assert_eq!(Kind::of(0x6969), Kind::Network("NFS"));
        // ext2, ext3 and ext4.
        assert_eq!(Kind::of(0xef53), Kind::Other);
        assert!(Kind::Network("NFS").note().is_some_and(|note| note.contains("server")));
    }

    #[test]
    fn beyond_the_limit_of_a_files_size_is_an_error_and_no_death() {
        // The limit is the process's: in one of its own.
        let own = Own::new();
        // SAFETY: the child makes a file and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let limit = libc::rlimit { rlim_cur: 4096, rlim_max: libc::RLIM_INFINITY };
            // SAFETY: the limit is valid for reading.
            unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) };
            let refused = own.place.create(c"large").and_then(|file| {
                let bytes = [1_u8; 8192];
                super::super::data::put(&file, &bytes, 0)
            });
            let named = matches!(refused, Err(Refusal::Skip(why)) if why.contains("RLIMIT_FSIZE"));
            // SAFETY: ends the copy without running what belongs to the original.
            unsafe { libc::_exit(i32::from(!named)) };
        }
        let mut status = -1;
        // SAFETY: `child` is our child; `status` is valid for writing.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status}");
    }
}
