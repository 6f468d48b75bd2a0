//! A block device in memory, by one of three drivers.
//!
//! - `brd` and `null_blk` (drivers/block): modules that are loaded for this run, and only where they were not loaded before. A
//!   note is written first, so that the next run unloads one where this one was killed.
//! - `loop` (loop(4)): over a sparse file in a tmpfs, with direct I/O and LO_FLAGS_AUTOCLEAR: the kernel frees it with
//!   its last user, also where its maker was killed.
//!
//! None of them takes memory for what was never written.

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

/// The interval between attempts while another program, such as udev, uses the device.
const PAUSE: Duration = Duration::from_millis(10);
/// Attempts: for 2 s.
const ATTEMPTS: u32 = 200;

/// Does it until it is no longer busy, for a bounded time.
pub(crate) fn patiently<T>(mut attempt: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(Errno::BUSY | Errno::AGAIN | Errno::INTR) => std::thread::sleep(PAUSE),
            answer => return answer,
        }
    }
    attempt()
}

/// The answer of a call that is below zero where it failed.
fn answered(answer: impl Into<libc::c_long>) -> Result<libc::c_long, Errno> {
    let code = || std::io::Error::last_os_error().raw_os_error();
    let answer = answer.into();
    if answer < 0 { Err(code().map_or(Errno::IO, Errno::from_raw_os_error)) } else { Ok(answer) }
}

/// A module of the kernel that is a block device in memory.
#[derive(Debug)]
pub(crate) struct DeviceModule {
    /// Its name, and that of the note in the private directory, which is written before it is loaded.
    name: &'static str,
    c_name: &'static CStr,
    device: &'static str,
    /// How the names of its devices begin.
    prefix: &'static str,
    /// What it is loaded with beside its marks.
    parameters: &'static [&'static str],
    /// The number that is written down, for a device of about so many bytes: its marks follow from it.
    number: fn(u64) -> u64,
    /// Parameters with the values by which it is known again: unusual ones.
    marks: fn(u64) -> [(&'static str, u64); 2],
    /// Bytes of the device.
    size: fn(u64) -> u64,
    /// What this kernel would have to have been built with.
    option: &'static str,
}

/// An unusual number, for this process: from 1 to 255.
fn odd() -> u64 {
    u64::from(std::process::id() % 255 + 1)
}

/// drivers/block/brd.c: the size is one of whole pages, and never one of whole MiB.
pub(crate) static BRD: DeviceModule = DeviceModule {
    name: "brd",
    c_name: c"brd",
    device: "/dev/ram0",
    prefix: "ram",
    parameters: &["max_part=0"],
    number: |size| (size >> 20 << 10).saturating_add(odd() * 4),
    marks: |kib| [("rd_nr", 1), ("rd_size", kib)],
    size: |kib| kib << 10,
    option: "CONFIG_BLK_DEV_RAM",
};

/// drivers/block/null_blk: whole GiB, and a depth of its queues that is not the usual 64. With `memory_backed`, since Linux 5.19, it keeps
/// what is written.
pub(crate) static NULL_BLK: DeviceModule = DeviceModule {
    name: "null_blk",
    c_name: c"null_blk",
    device: "/dev/nullb0",
    prefix: "nullb",
    parameters: &["nr_devices=1", "memory_backed=1"],
    number: |size| (size >> 30).max(1) << 16 | (64 + odd()),
    marks: |number| [("gb", number >> 16), ("hw_queue_depth", number & 0xffff)],
    size: |number| number >> 16 << 30,
    option: "CONFIG_BLK_DEV_NULL_BLK",
};

/// Both.
pub(crate) static KINDS: [&DeviceModule; 2] = [&BRD, &NULL_BLK];

impl DeviceModule {
    /// Its name.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    fn parameter(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(format!("/sys/module/{}/parameters/{name}", self.name)).ok()?;
        Some(text.trim().to_owned())
    }

    /// Whether it is in the kernel, as a module or built in.
    pub(crate) fn is_there(&self) -> bool {
        Path::new("/sys/module").join(self.name).exists()
    }
}

/// A module that was loaded by this process; unloaded when it is dropped.
#[derive(Debug)]
pub(crate) struct Loaded {
    record: LoadedMarks,
    home: Rc<PrivateDirectory>,
}

impl Loaded {
    /// Loads it with one device of about `size` bytes.
    ///
    /// # Errors
    /// When it was interrupted; where there is no such module, where it is loaded already or is part of the kernel, or where what was
    /// loaded is not what was asked for: a sentence.
    pub(crate) fn load(
        kind: &'static DeviceModule,
        home: &Rc<PrivateDirectory>,
        size: u64,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, EnvironmentError> {
        let name = kind.name;
        let Some(modprobe) = commands::find("modprobe") else {
            return Err(unusable!("there is no modprobe here, which loads the module {name}"));
        };
        if let Some(why) = why_taken(kind) {
            return Err(EnvironmentError::Unusable(why));
        }
        let record = LoadedMarks::new(kind, size)
            .ok_or_else(|| unusable!("/proc/sys/kernel/random/boot_id cannot be read"))?;
        record
            .write(home)
            .map_err(|error| unusable!("no note of the module can be written: {}", plainly(error)))?;
        let loaded = commands::run(&modprobe, &record.words(), stop);
        if record.is_loaded() {
            let made = Self { record, home: Rc::clone(home) };
            loaded?;
            return match kind.parameter("memory_backed") {
                // A kernel loads a module in spite of a parameter that it does not know.
                None if kind.parameters.contains(&"memory_backed=1") => Err(unusable!(
                    "this kernel's {name} keeps nothing that is written to it, as before Linux 5.19"
                )),
                _ => Ok(made),
            };
        }
        let _ = rustix::fs::unlinkat(home, name, AtFlags::empty());
        loaded?;
        Err(unusable!("modprobe loaded no module {name} with the size that was asked for"))
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.record.kind.name
    }

    pub(crate) fn path(&self) -> &'static Path {
        Path::new(self.record.kind.device)
    }

    pub(crate) fn size(&self) -> u64 {
        (self.record.kind.size)(self.record.number)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if self.record.unload().is_err() {
            // Another program uses it by now: the next run tries again, and must know that it is ours.
            self.home.leave();
        }
    }
}

/// Why it cannot be loaded: another program has, or may have, such devices.
fn why_taken(kind: &DeviceModule) -> Option<String> {
    const MODULES: &str = "/proc/modules";
    let DeviceModule { name, option, prefix, .. } = kind;
    let modules = match fs::read_to_string(MODULES) {
        Ok(modules) => modules,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !kind.is_there() => {
            return Some(format!(
                "this kernel loads no modules, and {name} is not in it (CONFIG_MODULES, {option})"
            ));
        }
        Err(error) => return Some(format!("{MODULES} cannot be read: {}", plainly(error))),
    };
    let is_loaded = modules.lines().any(|line| line.split(' ').next() == Some(*name));
    let is_device = |name: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let has_devices = || {
        let entries = fs::read_dir("/dev").into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.file_name().to_str().is_some_and(is_device))
    };
    let is_there = is_loaded || kind.is_there() || has_devices();
    is_there.then(|| format!("{name} is there already, and its devices belong to others"))
}

/// The marks of a module that was loaded here: the same boot, and parameters with unusual values.
#[derive(Debug)]
pub(crate) struct LoadedMarks {
    kind: &'static DeviceModule,
    boot: String,
    number: u64,
}

impl LoadedMarks {
    fn new(kind: &'static DeviceModule, size: u64) -> Option<Self> {
        Some(Self { kind, boot: boot()?, number: (kind.number)(size) })
    }

    fn write(&self, home: &PrivateDirectory) -> std::io::Result<()> {
        write_note(home, self.kind.name, &self.to_text())
    }

    /// The notes of a private directory.
    pub(crate) fn read_all(home: &PrivateDirectory) -> impl Iterator<Item = Self> {
        KINDS.into_iter().filter_map(|kind| Self::parse(kind, &read_note(home, kind.name)?))
    }

    fn to_text(&self) -> String {
        format!("{} {}\n", self.boot, self.number)
    }

    fn parse(kind: &'static DeviceModule, text: &str) -> Option<Self> {
        let (boot, number) = text.trim_end().split_once(' ')?;
        Some(Self { kind, boot: boot.to_owned(), number: number.parse().ok()? })
    }

    /// The arguments of modprobe(8).
    fn words(&self) -> Vec<String> {
        let marks = (self.kind.marks)(self.number).map(|(name, value)| format!("{name}={value}"));
        let parameters = self.kind.parameters.iter().map(|&parameter| parameter.to_owned());
        std::iter::once(self.kind.name.to_owned()).chain(marks).chain(parameters).collect()
    }

    /// Whether the module that is loaded now is the one that was written down.
    pub(crate) fn is_loaded(&self) -> bool {
        let is_so = |(name, value): (&str, u64)| self.kind.parameter(name) == Some(value.to_string());
        boot().as_ref() == Some(&self.boot) && (self.kind.marks)(self.number).into_iter().all(is_so)
    }

    /// Unloads it, where it is that one and not in use.
    pub(crate) fn unload(&self) -> Result<(), Errno> {
        if !self.is_loaded() {
            return Ok(());
        }
        patiently(|| {
            let (name, flags) = (self.kind.c_name.as_ptr(), libc::O_NONBLOCK);
            // SAFETY: the name ends in NUL; the kernel refuses while the module is in use.
            answered(unsafe { libc::syscall(libc::SYS_delete_module, name, flags) })
        })
        .map(drop)
    }
}

/// Writes a note in a private directory, in place of a former one.
fn write_note(home: &PrivateDirectory, name: &str, text: &str) -> std::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(home, name, flags, Mode::RUSR | Mode::WUSR)?;
    File::from(file).write_all(text.as_bytes())
}

fn read_note(home: &PrivateDirectory, name: &str) -> Option<String> {
    /// Longer is none.
    const MOST: u64 = 256;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(home, name, flags, Mode::empty()).ok()?;
    let mut text = String::new();
    File::from(file).take(MOST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The identifier of this boot: proc_sys_kernel(5).
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_own_module_has_unusual_parameters() {
        for kind in KINDS {
            let Some(record) = LoadedMarks::new(kind, 3 << 30) else { continue };
            let again = LoadedMarks::parse(kind, &record.to_text()).expect("a record");
            assert_eq!((&again.boot, again.number), (&record.boot, record.number));
            assert!((3 << 30..(3 << 30) + (1 << 20)).contains(&(kind.size)(record.number)), "{record:?}");
            assert!(!LoadedMarks { boot: "another".to_owned(), ..again }.is_loaded());
            assert_eq!(record.words()[0], kind.name);
            assert!(!record.is_loaded(), "nothing was loaded");
        }
        let kib = (BRD.number)(1 << 30);
        assert!(!kib.is_multiple_of(1024) && kib.is_multiple_of(4));
        assert!((NULL_BLK.marks)((NULL_BLK.number)(1 << 30))[1].1 > 64);
        assert_eq!((NULL_BLK.size)((NULL_BLK.number)(5 << 20)), 1 << 30, "no less");
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

    proptest! {
        #[test]
        fn any_record_is_taken(text in "\\PC{0,60}|[0-9a-f-]{0,36} [0-9]{0,30}\n?") {
            let _ = LoadedMarks::parse(&BRD, &text);
        }
    }
}
