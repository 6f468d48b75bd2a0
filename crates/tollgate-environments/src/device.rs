//! A block device in memory, by one of two drivers.
//!
//! - `brd` (drivers/block/brd.c): a module that is loaded for this run, if it was not loaded before. A note is written first,
//!   so that the next run unloads it if this one is killed.
//! - `loop` (loop(4)): over a sparse file in a tmpfs, with direct I/O and LO_FLAGS_AUTOCLEAR: the kernel frees it with its
//!   last user, even if its maker was killed.
//!
//! Neither takes memory for blocks that were never written.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{rc::Rc, time::Duration};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use tollgate_os::private::PrivateDirectory;

use crate::commands;
use crate::error::{EnvironmentError, plainly, unusable};

mod looped;

pub(crate) use looped::Loop;

/// Interval between attempts while another program, such as udev, uses the device.
const PAUSE: Duration = Duration::from_millis(10);
/// 2 s in all.
const ATTEMPTS: u32 = 200;

/// Repeats a call while it reports that the device is busy, for a bounded time.
pub(crate) fn patiently<T>(mut attempt: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(Errno::BUSY | Errno::AGAIN | Errno::INTR) => std::thread::sleep(PAUSE),
            answer => return answer,
        }
    }
    attempt()
}

/// Turns a negative return value into errno.
fn answered(answer: impl Into<libc::c_long>) -> Result<libc::c_long, Errno> {
    let code = || std::io::Error::last_os_error().raw_os_error();
    let answer = answer.into();
    if answer < 0 { Err(code().map_or(Errno::IO, Errno::from_raw_os_error)) } else { Ok(answer) }
}

/// The module, and the name of the note about it in the private directory.
pub(crate) const BRD: &str = "brd";
const BRD_OF_KERNEL: &CStr = c"brd";
const BRD_OPTION: &str = "CONFIG_BLK_DEV_RAM";

/// Size in KiB to load the module with, for a device of about `size` bytes. It is a multiple of a page and never of a MiB, so
/// that the device can be recognised by its size.
fn unusual_kib(size: u64) -> u64 {
    (size >> 20 << 10).saturating_add(u64::from(std::process::id() % 255 + 1) * 4)
}

fn parameter(name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/sys/module/{BRD}/parameters/{name}")).ok()?;
    Some(text.trim().to_owned())
}

pub(crate) fn is_brd_there() -> bool {
    Path::new("/sys/module").join(BRD).exists()
}

/// A module that this process loaded. Dropping it unloads the module.
#[derive(Debug)]
pub(crate) struct Loaded {
    record: LoadedMarks,
    home: Rc<PrivateDirectory>,
}

impl Loaded {
    /// Loads brd with one device of about `size` bytes. Fails if it was interrupted, if the module does not exist, is loaded
    /// already or is part of the kernel, or if the loaded module is not the one that was asked for.
    pub(crate) fn load(
        home: &Rc<PrivateDirectory>,
        size: u64,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, EnvironmentError> {
        let Some(modprobe) = commands::find("modprobe") else {
            return Err(unusable!("modprobe, which loads the module {BRD}, is not installed"));
        };
        if let Some(why) = why_taken() {
            return Err(EnvironmentError::Unusable(why));
        }
        let record = LoadedMarks::new(size)
            .ok_or_else(|| unusable!("/proc/sys/kernel/random/boot_id cannot be read"))?;
        record
            .write(home)
            .map_err(|error| unusable!("the note about the module cannot be written: {}", plainly(error)))?;
        let loaded = commands::run(&modprobe, &record.words(), stop);
        if record.is_loaded() {
            let made = Self { record, home: Rc::clone(home) };
            return loaded.map(|_| made);
        }
        let _ = rustix::fs::unlinkat(home, BRD, AtFlags::empty());
        loaded?;
        Err(unusable!("modprobe did not load {BRD} with the requested size"))
    }

    pub(crate) fn path(&self) -> &'static Path {
        Path::new("/dev/ram0")
    }

    pub(crate) fn size(&self) -> u64 {
        self.record.kib << 10
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if self.record.unload().is_err() {
            // Another program uses it by now. The next run tries again, and must be able to recognise it.
            self.home.leave();
        }
    }
}

fn why_taken() -> Option<String> {
    const MODULES: &str = "/proc/modules";
    let modules = match fs::read_to_string(MODULES) {
        Ok(modules) => modules,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_brd_there() => {
            return Some(format!(
                "this kernel cannot load modules and does not contain {BRD} (CONFIG_MODULES, {BRD_OPTION})"
            ));
        }
        Err(error) => return Some(format!("{MODULES} cannot be read: {}", plainly(error))),
    };
    let is_loaded = modules.lines().any(|line| line.split(' ').next() == Some(BRD));
    let is_device = |name: &str| {
        name.strip_prefix("ram").is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let has_devices = || {
        let entries = fs::read_dir("/dev").into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.file_name().to_str().is_some_and(is_device))
    };
    let is_there = is_loaded || is_brd_there() || has_devices();
    is_there.then(|| format!("{BRD} is already loaded, and its devices belong to others"))
}

/// Marks of a module that was loaded here: the boot, and parameters with unusual values.
#[derive(Debug)]
pub(crate) struct LoadedMarks {
    boot: String,
    kib: u64,
}

impl LoadedMarks {
    fn new(size: u64) -> Option<Self> {
        Some(Self { boot: boot()?, kib: unusual_kib(size) })
    }

    fn write(&self, home: &PrivateDirectory) -> std::io::Result<()> {
        write_note(home, BRD, &self.to_text())
    }

    pub(crate) fn read(home: &PrivateDirectory) -> Option<Self> {
        Self::parse(&read_note(home, BRD)?)
    }

    fn to_text(&self) -> String {
        format!("{} {}\n", self.boot, self.kib)
    }

    fn parse(text: &str) -> Option<Self> {
        let (boot, kib) = text.trim_end().split_once(' ')?;
        Some(Self { boot: boot.to_owned(), kib: kib.parse().ok()? })
    }

    fn words(&self) -> [String; 4] {
        [BRD.to_owned(), "rd_nr=1".to_owned(), format!("rd_size={}", self.kib), "max_part=0".to_owned()]
    }

    pub(crate) fn is_loaded(&self) -> bool {
        boot().as_ref() == Some(&self.boot)
            && parameter("rd_nr").as_deref() == Some("1")
            && parameter("rd_size") == Some(self.kib.to_string())
    }

    /// Unloads the module if it is the one in the note and not in use.
    pub(crate) fn unload(&self) -> Result<(), Errno> {
        if !self.is_loaded() {
            return Ok(());
        }
        patiently(|| {
            let (name, flags) = (BRD_OF_KERNEL.as_ptr(), libc::O_NONBLOCK);
            // SAFETY: the name ends in NUL; the kernel refuses while the module is in use.
            answered(unsafe { libc::syscall(libc::SYS_delete_module, name, flags) })
        })
        .map(drop)
    }
}

fn write_note(home: &PrivateDirectory, name: &str, text: &str) -> std::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(home, name, flags, Mode::RUSR | Mode::WUSR)?;
    File::from(file).write_all(text.as_bytes())
}

fn read_note(home: &PrivateDirectory, name: &str) -> Option<String> {
    const MOST: u64 = 256;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(home, name, flags, Mode::empty()).ok()?;
    let mut text = String::new();
    File::from(file).take(MOST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Identifier of this boot: proc_sys_kernel(5).
fn boot() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty() && !text.contains(' '))
}

/// Bytes of memory that a file in a tmpfs takes.
pub(crate) fn taken(file: &File) -> Option<u64> {
    Some(file.metadata().ok()?.blocks().saturating_mul(512))
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn an_own_module_has_unusual_parameters() {
        let kib = unusual_kib(1 << 30);
        assert!(!kib.is_multiple_of(1024) && kib.is_multiple_of(4));
        let Some(record) = LoadedMarks::new(3 << 30) else { return };
        let again = LoadedMarks::parse(&record.to_text()).expect("a record");
        assert_eq!((&again.boot, again.kib), (&record.boot, record.kib));
        assert!((3 << 30..(3 << 30) + (1 << 20)).contains(&(record.kib << 10)), "{record:?}");
        assert!(!LoadedMarks { boot: "another".to_owned(), ..again }.is_loaded());
        assert!(!record.is_loaded(), "nothing was loaded");
    }

    #[test]
    fn patience_ends() {
        let mut left = 3;
        let answer = patiently(|| {
            left -= 1;
            if left == 0 { Ok(left) } else { Err(Errno::BUSY) }
        });
        assert_eq!(answer, Ok(0));
        assert_eq!(patiently(|| Err::<(), _>(Errno::PERM)), Err(Errno::PERM));
    }

    takes_any! { text in "\\PC{0,60}|[0-9a-f-]{0,36} [0-9]{0,30}\n?" => LoadedMarks::parse(&text) }
}
