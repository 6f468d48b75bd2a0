//! A fresh file system on a block device in memory: the latency of the software without the storage.
//!
//! All mounts are made in a mount namespace of this process (mount_namespaces(7)), which the processes that it starts
//! share: whatever ends them, the kernel then unmounts, frees the loop device and gives the memory back. Where no
//! namespace can be had, and for the private directory and the module brd, the next run removes what this one left.
//!
//! mount(2), umount(2) and mkfs take paths. Theirs begin in a directory of root's alone, below which root alone can
//! rename ([`Parent::is_own`]); where there is none, no device is made.

use std::ffi::{CString, OsStr};
use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::{os::unix::fs::OpenOptionsExt, rc::Rc};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags, unmount};
use rustix::{io::Errno, thread::CapabilitySet};
use tollgate_model::Fact;
use tollgate_os::{namespaces, workdir::Workdir};

use crate::commands;
use crate::device::{Brd, Loop, Record, patiently, taken};
use crate::directory::{self, Parent, Private};
use crate::error::{EnvironmentError, bytes, plainly, unusable};

/// The prefix of its private directories: they are removed with more care than others.
const PREFIX: &str = ".tollgate-ram-";
/// Where they are: the first that can be written to.
const PARENTS: [&str; 2] = ["/run", "/tmp"];
/// Where in the private directory the tmpfs is mounted that holds the file.
const MEMORY: &str = "memory";
/// Where in the private directory the file system is mounted.
const FILES: &str = "files";
/// The directory in the file system that is measured in.
const WORKDIR: &str = "workdir";
/// Less memory than this is too little for a file system with something in it.
const LEAST_MEMORY: u64 = 32 << 20;
/// A device is not larger: making a file system on one of 1 TiB still takes less than a second.
const LARGEST: u64 = 1 << 40;
/// No smaller: some file systems need as much.
const SMALLEST: u64 = 512 << 20;

/// The memory that may still be used.
#[derive(Debug, Clone)]
pub struct Memory {
    /// Bytes.
    pub available: u64,
    /// The source, such as `/proc/meminfo MemAvailable`.
    pub by: String,
}

/// A file system on a block device in memory; gone when it is dropped.
#[derive(Debug)]
pub struct RamDisk {
    // In this order they are dropped.
    mounted: Mounted,
    device: Device,
    _home: Rc<Private>,
    directory: Workdir,
    file_system: String,
    made_by: String,
    limit: (u64, String),
    before: Option<u64>,
}

#[derive(Debug)]
enum Device {
    Brd {
        brd: Brd,
        /// Memory that was available before it had written anything.
        available: Option<u64>,
    },
    Loop {
        // In this order they are dropped: the device holds the file, the file the tmpfs.
        device: Loop,
        file: File,
        _memory: Mounted,
        size: u64,
    },
}

impl RamDisk {
    /// Makes one with a file system that mkfs.`kind` makes. `stop` says whether the caller asked to stop.
    ///
    /// # Errors
    /// A sentence; parts that were made are removed.
    pub fn make(kind: &str, memory: &Memory, stop: &dyn Fn() -> bool) -> Result<Self, EnvironmentError> {
        if !is_name(kind) {
            return Err(unusable!(
                "{kind:?} is not the name of a file system: small letters and digits, such as ext4"
            ));
        }
        check_privilege()?;
        let program = format!("mkfs.{kind}");
        let Some(mkfs) = commands::find(&program) else {
            return Err(unusable!("there is no {program} here, which makes the file system"));
        };
        let half = memory.available / 2;
        if half < LEAST_MEMORY {
            return Err(unusable!(
                "half of the available memory is {} ({}); it takes {}",
                bytes(half),
                memory.by,
                bytes(LEAST_MEMORY)
            ));
        }
        let made_by = match commands::run(&mkfs, &["-V"], stop) {
            Err(EnvironmentError::Interrupted) => return Err(EnvironmentError::Interrupted),
            answer => answer.unwrap_or_else(|_| program.clone()),
        };
        clean();
        let home = Rc::new(home()?);
        // Where a namespace is refused, mounts are made in the open.
        let _ = namespaces::own_mounts();
        let device = Device::make(&home, half, stop)?;
        let mut arguments: Vec<&OsStr> = options_of_mkfs(kind).iter().map(OsStr::new).collect();
        arguments.push(device.path().as_os_str());
        commands::run(&mkfs, &arguments, stop)?;
        let data = if kind == "ext4" { "noinit_itable" } else { "" };
        let target = subdirectory(&home, FILES)?;
        let mounted = Mounted::mount(device.path(), &target, kind, data)?;
        let path = target.join(WORKDIR);
        let root = mounted.open()?;
        make_directory(&root, WORKDIR, &path)?;
        let fault =
            |error: Errno| EnvironmentError::of(format_args!("{} cannot be opened", path.display()), error);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let own = rustix::fs::openat(&root, WORKDIR, flags, Mode::empty()).map_err(fault)?;
        let limit = smaller_limit(directory::writable(&own, &path)?, half, &memory.by);
        let directory =
            Workdir::of(path.clone(), &own, None).map_err(|error| fault(directory::code(&error)))?;
        mounted.sync();
        let before = device.taken();
        let file_system = kind.to_owned();
        Ok(Self { mounted, device, _home: home, directory, file_system, made_by, limit, before })
    }

    /// An empty directory in it.
    pub fn directory(&self) -> &Workdir {
        &self.directory
    }

    /// How many bytes may be written there, and the reason of that limit.
    pub fn limit(&self) -> (u64, String) {
        self.limit.clone()
    }

    /// A description, with the memory that it took before the measurement and takes now.
    pub fn facts(&self) -> Vec<(String, Fact)> {
        self.mounted.sync();
        let taken = |amount: Option<u64>| match amount.and_then(|amount| i64::try_from(amount).ok()) {
            Some(amount) => Fact::known(amount, self.device.taken_by()),
            None => Fact::unreadable(format!("{} does not say", self.device.taken_by())),
        };
        let size = i64::try_from(self.device.size()).unwrap_or(i64::MAX);
        let path = self.device.path().display().to_string();
        let facts = [
            ("ram.device", Fact::known(self.device.kind(), path.as_str())),
            ("ram.size", Fact::known(size, "as it was made")),
            ("ram.fs", Fact::known(self.file_system.as_str(), "as it was made")),
            ("ram.mkfs", Fact::known(self.made_by.as_str(), format!("mkfs.{} -V", self.file_system))),
            ("ram.taken.before", taken(self.before)),
            ("ram.taken.after", taken(self.device.taken())),
        ];
        facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect()
    }
}

impl Device {
    /// By brd where it can be loaded, else by loop.
    fn make(home: &Rc<Private>, half: u64, stop: &dyn Fn() -> bool) -> Result<Self, EnvironmentError> {
        let size = size();
        let available = available();
        if let Some(brd) = Brd::load(home, size, stop)? {
            return Ok(Self::Brd { brd, available });
        }
        let target = subdirectory(home, MEMORY)?;
        let memory = Mounted::mount(
            Path::new("tollgate"),
            &target,
            "tmpfs",
            &format!("size={half},nr_inodes=16,mode=0700"),
        )?;
        let path = target.join("tollgate-ram");
        let fault = |error: std::io::Error| {
            unusable!("no file of {} can be made in a tmpfs: {}", bytes(size), plainly(error))
        };
        let open = |direct: libc::c_int| {
            OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(direct)
                .open(&path)
        };
        // Whether the file takes direct I/O (tmpfs since Linux 6.6) decides whether the device does.
        let file = open(libc::O_DIRECT).or_else(|_| open(0)).map_err(fault)?;
        file.set_len(size).map_err(fault)?;
        let device = Loop::over(&file)?;
        Ok(Self::Loop { device, file, _memory: memory, size })
    }

    fn path(&self) -> &Path {
        match self {
            Self::Brd { brd, .. } => brd.path(),
            Self::Loop { device, .. } => device.path(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Brd { .. } => "brd",
            Self::Loop { device, .. } if device.is_direct() => "loop over tmpfs, direct I/O",
            Self::Loop { .. } => "loop over tmpfs, buffered I/O",
        }
    }

    fn size(&self) -> u64 {
        match self {
            Self::Brd { brd, .. } => brd.size(),
            Self::Loop { size, .. } => *size,
        }
    }

    /// Bytes of memory that it takes now.
    fn taken(&self) -> Option<u64> {
        match self {
            Self::Brd { available: before, .. } => Some((*before)?.saturating_sub(available()?)),
            Self::Loop { file, .. } => taken(file),
        }
    }

    fn taken_by(&self) -> &'static str {
        match self {
            Self::Brd { .. } => "/proc/meminfo MemAvailable, less than before the device was made",
            Self::Loop { .. } => "fstat(2) st_blocks of the file beneath the loop device",
        }
    }
}

/// Removes what killed programs left in the open: mounts, the module brd, directories. Only root has made any.
pub fn clean() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for parent in PARENTS.into_iter().filter_map(|under| parent(under).ok()) {
        for home in directory::left(&parent, PREFIX) {
            for name in [FILES, MEMORY] {
                // Not a mount point, in most cases. A directory in use is left to the next run.
                let _ = unmount(home.workdir().join(name), UnmountFlags::NOFOLLOW);
            }
            match Record::read(&home) {
                Some(record) if record.unload().is_err() => home.leave(),
                _ => {}
            }
        }
    }
}

/// What is there of devices in memory and of their mounts: `nothing`, where all of them are gone.
pub fn left() -> Fact {
    const MOUNTS: &str = "/proc/self/mounts";
    let by = format!("{MOUNTS} and /sys/module/brd");
    let mounts = match fs::read_to_string(MOUNTS) {
        Ok(mounts) => mounts,
        Err(error) => return Fact::unreadable(format!("{MOUNTS}: {}", plainly(error))),
    };
    let mounted = mounts.lines().filter(|line| line.contains(PREFIX)).map(str::to_owned);
    let module = Path::new("/sys/module/brd").exists().then(|| "the module brd".to_owned());
    let left: Vec<String> = mounted.chain(module).collect();
    if left.is_empty() { Fact::known("nothing", by) } else { Fact::known(left.join("; "), by) }
}

/// A private directory where root keeps what lasts no longer than the machine is up.
fn home() -> Result<Private, EnvironmentError> {
    let [first, second] = PARENTS;
    let make = |under: &str| Private::new(parent(under)?, PREFIX);
    make(first).or_else(|_| make(second))
}

/// One of [`PARENTS`], where no user but root can exchange what lies in it.
fn parent(under: &str) -> Result<Parent, EnvironmentError> {
    let parent = Parent::open(Path::new(under))?;
    if parent.is_own() {
        return Ok(parent);
    }
    Err(EnvironmentError::Unsafe(format!(
        "{under} belongs to another user, who could exchange what is mounted there; give it to root (chown root {under})"
    )))
}

fn subdirectory(home: &Private, name: &str) -> Result<PathBuf, EnvironmentError> {
    let path = home.workdir().join(name);
    make_directory(home, name, &path).map(|()| path)
}

fn make_directory(parent: impl AsFd, name: &str, path: &Path) -> Result<(), EnvironmentError> {
    rustix::fs::mkdirat(parent, name, Mode::RWXU)
        .map_err(|error| EnvironmentError::of(format_args!("{} cannot be made", path.display()), error))
}

fn check_privilege() -> Result<(), EnvironmentError> {
    if !rustix::process::geteuid().is_root() {
        let why = "it makes a block device and mounts a file system on it";
        return Err(EnvironmentError::NeedsRoot(why.to_owned()));
    }
    match rustix::thread::capabilities(None) {
        Ok(sets) if !sets.effective.contains(CapabilitySet::SYS_ADMIN) => Err(EnvironmentError::NeedsRoot(
            "root here may not mount anything (it lacks CAP_SYS_ADMIN)".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Something that was mounted here; unmounted when it is dropped.
#[derive(Debug)]
struct Mounted(PathBuf);

impl Mounted {
    fn mount(source: &Path, target: &Path, kind: &str, data: &str) -> Result<Self, EnvironmentError> {
        let fault = |error: Errno| match error {
            Errno::NODEV => unusable!("this kernel has no file system {kind}"),
            Errno::PERM | Errno::ACCESS => {
                EnvironmentError::NeedsRoot(format!("mounting {kind} is refused here: {}", plainly(error)))
            }
            _ => EnvironmentError::of(format_args!("{kind} cannot be mounted"), error),
        };
        let data = CString::new(data).map_err(|_| fault(Errno::INVAL))?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount(source, target, kind, flags, data.as_c_str()).map_err(fault)?;
        Ok(Self(target.to_owned()))
    }

    /// The root of what is mounted.
    fn open(&self) -> Result<OwnedFd, EnvironmentError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, &self.0, flags, Mode::empty()).map_err(|error| {
            EnvironmentError::of(format_args!("{} cannot be opened", self.0.display()), error)
        })
    }

    /// Flushes writes to the device.
    fn sync(&self) {
        if let Ok(root) = self.open() {
            let _ = rustix::fs::syncfs(&root);
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if patiently(|| unmount(&self.0, UnmountFlags::NOFOLLOW)) == Err(Errno::BUSY) {
            // Processes that still use it keep it until they end; no new ones find it.
            let _ = unmount(&self.0, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH);
        }
    }
}

/// Nothing is written that is not needed: untouched blocks take no memory. ext4 would write the tables of its inodes
/// now or, while it is measured, in the background; it is mounted so that it does neither (ext4(5) noinit_itable).
pub(crate) fn options_of_mkfs(kind: &str) -> &'static [&'static str] {
    match kind {
        "ext4" => &["-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"],
        // These cannot leave the tables of inodes for later: fewer inodes, and a smaller journal.
        "ext3" => &["-q", "-F", "-E", "nodiscard", "-i", "1048576", "-J", "size=32"],
        "ext2" => &["-q", "-F", "-E", "nodiscard", "-i", "1048576"],
        "xfs" => &["-q", "-f", "-K"],
        "btrfs" => &["-q", "-f", "-K"],
        "f2fs" => &["-q", "-f", "-t", "0"],
        _ => &[],
    }
}

/// Of a name such as ext4, and nothing that could be a path or an option.
fn is_name(kind: &str) -> bool {
    (1..=16).contains(&kind.len())
        && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// Twice the memory of the machine, within bounds: untouched space costs nothing.
fn size() -> u64 {
    let info = rustix::system::sysinfo();
    let total = info.totalram.saturating_mul(u64::from(info.mem_unit.max(1)));
    (total.saturating_mul(2) >> 20 << 20).clamp(SMALLEST, LARGEST)
}

/// In bytes.
fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The less of a tenth of what is free, and half of the memory without an eighth of it for the file system's own
/// tables.
fn smaller_limit(free: (u64, String), half: u64, by: &str) -> (u64, String) {
    let memory = half - half / 8;
    if free.0 <= memory {
        return free;
    }
    (memory, format!("half of the available memory ({by}), less an eighth for the file system itself"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_paths_and_no_options() {
        for name in ["ext4", "xfs", "btrfs", "f2fs"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "../x", "-t", "Ext4", "a b", "ext4;", "aaaaaaaaaaaaaaaaa", "é"] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn the_tighter_limit_is_named() {
        let free = || (100, "a tenth".to_owned());
        assert_eq!(smaller_limit(free(), 800, "meminfo"), free());
        let (bytes, by) = smaller_limit(free(), 80, "meminfo");
        assert_eq!(bytes, 70);
        assert!(by.contains("meminfo"), "{by}");
    }

    #[test]
    fn sizes_are_whole() {
        assert!(size() >= SMALLEST && size() <= LARGEST && size().is_multiple_of(1 << 20));
    }

    #[test]
    fn little_memory_is_refused_before_anything_is_made() {
        let memory = Memory { available: 1 << 20, by: "a test".to_owned() };
        let why = RamDisk::make("ext4", &memory, &|| false).expect_err("too little");
        assert!(
            why.to_string().contains("a test")
                || matches!(why, EnvironmentError::NeedsRoot(_))
                || why.to_string().contains("no mkfs"),
            "{why}"
        );
    }
}
