//! A fresh file system on a block device in memory: measures the latency of the software without the storage.
//!
//! All mounts are made in a mount namespace of this process (mount_namespaces(7)), which its children share. However they
//! end, the kernel then unmounts, frees the loop device and releases the memory. If no namespace can be made, and for the
//! private directory and the module brd, the next run removes what this one left.
//!
//! mount(2), umount(2) and mkfs take paths. Ours begin in a directory that belongs to root, below which only root can rename
//! ([`TrustedDirectory`](tollgate_os::private::TrustedDirectory)); if there is no such directory, no device is made.
//!
//! - [`home`]: the private directories, and what killed programs left. [`mounted`]: mounts. [`block`]: the device.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::str::FromStr;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::CapabilitySet;
use tollgate_model::Fact;
use tollgate_os::private::PrivateDirectory;
use tollgate_os::{namespaces, workdir::Workdir};

use crate::commands;
use crate::directory;
use crate::error::{EnvironmentError, bytes, unusable};

mod block;
mod home;
mod mounted;

use block::Device;
pub use home::{clean, left};
pub(crate) use home::{clean_after, new_name};
use mounted::{Mounted, make_directory, subdirectory};

const USUAL_FILE_SYSTEM: &str = "ext4";
const WORKDIR: &str = "workdir";
/// In less memory, a file system has no room for files.
const LEAST_MEMORY: u64 = 32 << 20;
/// Making a file system on 1 TiB still takes less than a second.
const LARGEST: u64 = 1 << 40;
/// Some file systems need this much.
const SMALLEST: u64 = 512 << 20;

/// The memory that may still be used.
#[derive(Debug, Clone)]
pub struct Memory {
    /// In bytes.
    pub available: u64,
    /// The source, such as `/proc/meminfo MemAvailable`.
    pub by: String,
}

/// The driver of a block device in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// brd if its module can be loaded, otherwise loop.
    Any,
    /// The module brd.
    Brd,
    /// A loop device over a file in a tmpfs.
    Loop,
}

impl Driver {
    const ALL: [Self; 3] = [Self::Any, Self::Brd, Self::Loop];

    /// Name in options; `ram` stands for any driver.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "ram",
            Self::Brd => "brd",
            Self::Loop => "loop",
        }
    }
}

/// A file system in memory, and the driver of its device: `ram`, `ram:xfs`, `brd`, `loop`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnRam {
    /// Driver of the block device.
    pub driver: Driver,
    /// Name of the file system in mkfs.
    pub file_system: String,
}

impl FromStr for OnRam {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (driver, file_system) = text.split_once(':').unwrap_or((text, USUAL_FILE_SYSTEM));
        let driver = Driver::ALL.into_iter().find(|one| one.name() == driver);
        match driver.filter(|_| is_file_system_name(file_system)) {
            Some(driver) => Ok(Self { driver, file_system: file_system.to_owned() }),
            None => Err(
                "it is not ram, brd or loop, alone or followed by a colon and a file system, such as ram:xfs"
                    .to_owned(),
            ),
        }
    }
}

impl fmt::Display for OnRam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.driver.name(), self.file_system)
    }
}

/// The contents of a device in memory, or a tmpfs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    /// A file system on a block device, by its name in mkfs.
    FileSystem(String),
    /// A tmpfs, which has no device.
    Tmpfs,
    /// A block device with nothing on it.
    Nothing,
}

impl Contents {
    /// Parses the name of a file system, `tmpfs` or `none`.
    pub fn named(name: &str) -> Self {
        match name {
            "tmpfs" => Self::Tmpfs,
            "none" => Self::Nothing,
            name => Self::FileSystem(name.to_owned()),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub contents: Contents,
    pub driver: Driver,
    /// Bytes of the device.
    pub size: u64,
    /// Bytes of memory that it may take.
    pub bound: u64,
}

/// A device in memory with its mounts. Dropping it removes them.
#[derive(Debug)]
pub(crate) struct Disk {
    // Fields are dropped in this order.
    mounted: Option<Mounted>,
    device: Option<Device>,
    home: Rc<PrivateDirectory>,
    /// The first line of `mkfs.… -V`.
    made_by: Option<String>,
    made_in: Option<Duration>,
}

impl Disk {
    /// Makes it in a private directory whose name comes from [`new_name`]. A file system is also mounted, see [`Disk::path`].
    pub fn make(ask: &Ask, name: &str, stop: &dyn Fn() -> bool) -> Result<Self, EnvironmentError> {
        let mkfs = Mkfs::find(&ask.contents, stop)?;
        clean();
        let home = Rc::new(home::home(name)?);
        let device = match ask.contents {
            Contents::Tmpfs => None,
            _ => Some(Device::make(&home, ask.driver, ask.size, ask.bound, stop)?),
        };
        let mut made_in = None;
        if let (Some(mkfs), Some(device)) = (&mkfs, &device) {
            let mut arguments: Vec<&OsStr> = options_of_mkfs(&mkfs.kind).iter().map(OsStr::new).collect();
            arguments.push(device.path().as_os_str());
            let began = Instant::now();
            commands::run(&mkfs.program, &arguments, stop)?;
            made_in = Some(began.elapsed());
        }
        let mounted = match (&ask.contents, &device) {
            (Contents::FileSystem(kind), Some(device)) => {
                let data = if kind == "ext4" { "noinit_itable" } else { "" };
                let target = subdirectory(&home, home::FILES)?;
                Some(Mounted::mount(device.path(), &target, kind, data)?)
            }
            (Contents::Tmpfs, _) => {
                let target = subdirectory(&home, home::FILES)?;
                let data = format!("size={},mode=0755", ask.size.min(ask.bound));
                Some(Mounted::mount(Path::new("tollgate"), &target, "tmpfs", &data)?)
            }
            _ => None,
        };
        Ok(Self { mounted, device, home, made_by: mkfs.map(|mkfs| mkfs.version), made_in })
    }

    /// The mounted file system, or the device if it has none.
    pub fn path(&self) -> &Path {
        let device = || self.device.as_ref().map_or(self.home.path(), Device::path);
        self.mounted.as_ref().map_or_else(device, Mounted::path)
    }

    pub fn kind(&self) -> &'static str {
        self.device.as_ref().map_or("tmpfs", Device::kind)
    }

    pub fn made_in(&self) -> Option<Duration> {
        self.made_in
    }

    pub fn file(&self) -> Option<&File> {
        self.device.as_ref().and_then(Device::file)
    }

    /// Writes dirty pages to the device. Otherwise the pages that a command wrote to a device without a file system are only
    /// in the page cache, where they take memory without being counted.
    pub fn sync(&self) {
        match (&self.mounted, &self.device) {
            (Some(mounted), _) => mounted.sync(),
            (None, Some(device)) => device.sync(),
            (None, None) => {}
        }
    }

    /// Bytes of memory that it takes now, and their source.
    pub fn taken(&self) -> (Option<u64>, &'static str) {
        match (&self.device, &self.mounted) {
            (Some(device), _) => (device.taken(), device.taken_by()),
            (None, mounted) => (mounted.as_ref().and_then(Mounted::used), "fstatvfs(3) of the tmpfs"),
        }
    }
}

struct Mkfs {
    kind: String,
    program: PathBuf,
    version: String,
}

impl Mkfs {
    /// `None` if there is no file system to make.
    fn find(contents: &Contents, stop: &dyn Fn() -> bool) -> Result<Option<Self>, EnvironmentError> {
        let Contents::FileSystem(kind) = contents else { return Ok(None) };
        if !is_file_system_name(kind) {
            return Err(unusable!(
                "{kind:?} is not the name of a file system: small letters and digits, such as ext4"
            ));
        }
        let name = format!("mkfs.{kind}");
        let Some(program) = commands::find(&name) else {
            return Err(unusable!("{name}, which makes the file system, is not installed"));
        };
        let version = match commands::run(&program, &["-V"], stop) {
            Err(EnvironmentError::Interrupted) => return Err(EnvironmentError::Interrupted),
            answer => answer.unwrap_or(name),
        };
        Ok(Some(Self { kind: kind.clone(), program, version }))
    }
}

/// A file system in memory to measure on. Dropping it removes it.
#[derive(Debug)]
pub struct RamDisk {
    disk: Disk,
    directory: Workdir,
    file_system: String,
    size: u64,
    limit: (u64, String),
    before: Option<u64>,
}

impl RamDisk {
    /// Checks that this process may make one.
    ///
    /// # Errors
    /// [`EnvironmentError::NeedsRoot`] if it may not.
    pub fn check_privilege() -> Result<(), EnvironmentError> {
        if !rustix::process::geteuid().is_root() {
            let why = "it makes a block device and mounts a file system on it";
            return Err(EnvironmentError::NeedsRoot(why.to_owned()));
        }
        match rustix::thread::capabilities(None) {
            Ok(sets) if !sets.effective.contains(CapabilitySet::SYS_ADMIN) => {
                Err(EnvironmentError::NeedsRoot(
                    "root here may not mount anything (it lacks CAP_SYS_ADMIN)".to_owned(),
                ))
            }
            _ => Ok(()),
        }
    }

    /// Makes one with this driver, with a file system that mkfs makes, or a `tmpfs`. `stop` says whether the caller asked to
    /// stop.
    ///
    /// # Errors
    /// A sentence. The driver may be missing. Parts that were made are removed.
    pub fn make(on: &OnRam, memory: &Memory, stop: &dyn Fn() -> bool) -> Result<Self, EnvironmentError> {
        let OnRam { driver, file_system: kind } = on;
        let driver = *driver;
        let contents = Contents::named(kind);
        if contents == Contents::Nothing {
            return Err(unusable!("files are measured on a file system, such as ext4, but `none` has none"));
        }
        Self::check_privilege()?;
        let half = half_of(memory)?;
        // If no namespace is allowed, the mounts are visible to all.
        let _ = namespaces::own_mounts();
        let size = if contents == Contents::Tmpfs { half } else { size() };
        let disk = Disk::make(&Ask { contents, driver, size, bound: half }, &new_name()?, stop)?;
        let path = disk.path().join(WORKDIR);
        let fault =
            |error: Errno| EnvironmentError::new(format_args!("{} cannot be opened", path.display()), error);
        let Some(mounted) = &disk.mounted else { return Err(fault(Errno::NODEV)) };
        let root = mounted.open()?;
        make_directory(&root, WORKDIR, &path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let own = rustix::fs::openat(&root, WORKDIR, flags, Mode::empty()).map_err(fault)?;
        let limit = smaller_limit(directory::writable(&own, &path)?, half, &memory.by);
        let directory = Workdir::new(path.clone(), &own).map_err(|error| fault(directory::code(&error)))?;
        disk.sync();
        let before = disk.taken().0;
        Ok(Self { disk, directory, file_system: kind.clone(), size, limit, before })
    }

    /// An empty directory in it.
    pub fn directory(&self) -> &Workdir {
        &self.directory
    }

    /// How many bytes may be written there, and the reason for that limit.
    pub fn limit(&self) -> (u64, String) {
        self.limit.clone()
    }

    /// Describes it, with the memory that it took before the measurement and takes now.
    pub fn facts(&self) -> Vec<(String, Fact)> {
        self.disk.sync();
        let (now, by) = self.disk.taken();
        let taken = |amount: Option<u64>| match amount.and_then(|amount| i64::try_from(amount).ok()) {
            Some(amount) => Fact::known(amount, by),
            None => Fact::unreadable(format!("{by} does not say")),
        };
        let size = self.disk.device.as_ref().map_or(self.size, Device::size);
        let path = self
            .disk
            .device
            .as_ref()
            .map_or("mount(2)".to_owned(), |device| device.path().display().to_string());
        let mut facts = vec![
            ("ram.device", Fact::known(self.disk.kind(), path)),
            ("ram.size", Fact::known(i64::try_from(size).unwrap_or(i64::MAX), "as it was made")),
            ("ram.fs", Fact::known(self.file_system.as_str(), "as it was made")),
            ("ram.taken.before", taken(self.before)),
            ("ram.taken.after", taken(now)),
        ];
        if let Some(line) = &self.disk.made_by {
            facts.push(("ram.mkfs", Fact::known(line.as_str(), format!("mkfs.{} -V", self.file_system))));
        }
        facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect()
    }
}

pub(crate) fn half_of(memory: &Memory) -> Result<u64, EnvironmentError> {
    let half = memory.available / 2;
    if half < LEAST_MEMORY {
        return Err(unusable!(
            "half of the available memory is {} ({}), but it needs {}",
            bytes(half),
            memory.by,
            bytes(LEAST_MEMORY)
        ));
    }
    Ok(half)
}

/// Options that write as little as possible, since untouched blocks take no memory. ext4 would write its inode tables now or,
/// while it is measured, in the background; it is mounted so that it does neither (ext4(5) noinit_itable).
pub(crate) fn options_of_mkfs(kind: &str) -> &'static [&'static str] {
    match kind {
        "ext4" => &["-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"],
        // These cannot write their inode tables later, so they get fewer inodes and a smaller journal.
        "ext3" => &["-q", "-F", "-E", "nodiscard", "-i", "1048576", "-J", "size=32"],
        "ext2" => &["-q", "-F", "-E", "nodiscard", "-i", "1048576"],
        "xfs" => &["-q", "-f", "-K"],
        "btrfs" => &["-q", "-f", "-K"],
        "f2fs" => &["-q", "-f", "-t", "0"],
        _ => &[],
    }
}

/// Returns whether it is a name such as ext4, and nothing that could be a path or an option.
pub fn is_file_system_name(kind: &str) -> bool {
    (1..=16).contains(&kind.len())
        && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// Twice the machine's memory, within limits: untouched blocks take no memory.
fn size() -> u64 {
    let info = rustix::system::sysinfo();
    let total = info.totalram.saturating_mul(u64::from(info.mem_unit.max(1)));
    (total.saturating_mul(2) >> 20 << 20).clamp(SMALLEST, LARGEST)
}

/// The smaller of a tenth of the free space, and half of the memory less an eighth of it for the file system's metadata.
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
            assert!(is_file_system_name(name), "{name}");
        }
        for name in ["", "../x", "-t", "Ext4", "a b", "ext4;", "aaaaaaaaaaaaaaaaa", "é"] {
            assert!(!is_file_system_name(name), "{name}");
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
        let why =
            RamDisk::make(&"ram".parse().expect("a device"), &memory, &|| false).expect_err("too little");
        assert!(
            why.to_string().contains("a test")
                || matches!(why, EnvironmentError::NeedsRoot(_))
                || why.to_string().contains("no mkfs"),
            "{why}"
        );
    }
}
