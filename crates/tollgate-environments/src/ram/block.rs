use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::rc::Rc;

use tollgate_os::private::PrivateDirectory;

use super::Driver;
use super::home::MEMORY;
use super::mounted::{Mounted, subdirectory};
use crate::device::{BRD, Loaded, Loop, taken};
use crate::error::{EnvironmentError, bytes, plainly, unusable};

#[derive(Debug)]
pub(super) enum Device {
    Module {
        module: Loaded,
        /// Memory that was available before the device was made.
        available: Option<u64>,
    },
    Loop {
        // Fields are dropped in this order: the device holds the file, and the file is in the tmpfs.
        device: Loop,
        file: File,
        _memory: Mounted,
        size: u64,
    },
}

impl Device {
    /// Makes one of `size` bytes with this driver. It takes at most `bound` bytes of memory if the driver can enforce that.
    pub fn make(
        home: &Rc<PrivateDirectory>,
        driver: Driver,
        size: u64,
        bound: u64,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, EnvironmentError> {
        let available = available();
        let load = || Ok(Self::Module { module: Loaded::load(home, size, stop)?, available });
        match driver {
            Driver::Loop => {}
            Driver::Brd => return load(),
            Driver::Any => match load() {
                Err(error) if !matches!(error, EnvironmentError::Interrupted) => {}
                answer => return answer,
            },
        }
        Self::over_tmpfs(home, size, bound)
    }

    fn over_tmpfs(home: &Rc<PrivateDirectory>, size: u64, bound: u64) -> Result<Self, EnvironmentError> {
        let options = format!("size={bound},nr_inodes=16,mode=0700");
        let target = subdirectory(home, MEMORY)?;
        let memory = Mounted::mount(Path::new("tollgate"), &target, "tmpfs", &options)?;
        let path = target.join("tollgate-ram");
        let fault = |error: std::io::Error| {
            unusable!("a file of {} cannot be made in a tmpfs: {}", bytes(size), plainly(error))
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
        // The device supports direct I/O if the file does (tmpfs since Linux 6.6).
        let file = open(libc::O_DIRECT).or_else(|_| open(0)).map_err(fault)?;
        file.set_len(size).map_err(fault)?;
        let device = Loop::over(&file, home)?;
        Ok(Self::Loop { device, file, _memory: memory, size })
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::Module { module, .. } => module.path(),
            Self::Loop { device, .. } => device.path(),
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Module { .. } => BRD,
            Self::Loop { device, .. } if device.is_direct() => "loop over tmpfs, direct I/O",
            Self::Loop { .. } => "loop over tmpfs, buffered I/O",
        }
    }

    pub fn size(&self) -> u64 {
        match self {
            Self::Module { module, .. } => module.size(),
            Self::Loop { size, .. } => *size,
        }
    }

    pub fn file(&self) -> Option<&File> {
        match self {
            Self::Module { .. } => None,
            Self::Loop { file, .. } => Some(file),
        }
    }

    pub fn sync(&self) {
        // fsync(2) of the device flushes every process's writes.
        let _ = File::open(self.path()).and_then(|device| device.sync_all());
    }

    pub fn taken(&self) -> Option<u64> {
        match self {
            Self::Module { available: before, .. } => Some((*before)?.saturating_sub(available()?)),
            Self::Loop { file, .. } => taken(file),
        }
    }

    pub fn taken_by(&self) -> &'static str {
        match self {
            Self::Module { .. } => "/proc/meminfo MemAvailable, less than before the device was made",
            Self::Loop { .. } => "fstat(2) st_blocks of the file beneath the loop device",
        }
    }
}

fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
