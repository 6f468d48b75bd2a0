//! A block device in memory, by either of two drivers.
//!
//! - `brd` (drivers/block/brd.c): a module that is loaded for this run, and only where it was not loaded before. A
//!   note is written first, so that the next run unloads it where this one was killed.
//! - `loop` (loop(4)): over a sparse file in a tmpfs, with direct I/O and LO_FLAGS_AUTOCLEAR: the kernel frees it with
//!   its last user, also where its maker was killed.
//!
//! Neither takes memory for what was never written.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{os::fd::AsRawFd, rc::Rc, time::Duration};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::commands;
use crate::directory::Private;
use crate::error::{EnvironmentError, plainly, unusable};

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

/// The module `brd`, loaded by this process; unloaded when it is dropped.
#[derive(Debug)]
pub(crate) struct Brd {
    record: Record,
    home: Rc<Private>,
}

impl Brd {
    /// The note in the private directory, which is written before the module is loaded.
    pub(crate) const RECORD: &str = "brd";
    const DEVICE: &str = "/dev/ram0";

    /// Loads it with one device of about `size` bytes.
    ///
    /// # Errors
    /// When it was interrupted; where there is no such module, where it is loaded already or is part of the kernel, or where what was
    /// loaded is not what was asked for: a sentence.
    pub(crate) fn load(
        home: &Rc<Private>,
        size: u64,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, EnvironmentError> {
        let Some(modprobe) = commands::find("modprobe") else {
            return Err(unusable!("there is no modprobe here, which loads the module brd"));
        };
        if let Some(why) = why_taken() {
            return Err(EnvironmentError::Unusable(why));
        }
        let record =
            Record::new(size).ok_or_else(|| unusable!("/proc/sys/kernel/random/boot_id cannot be read"))?;
        record
            .write(home)
            .map_err(|error| unusable!("no note of the module can be written: {}", plainly(error)))?;
        let size = format!("rd_size={}", record.kib);
        let loaded = commands::run(&modprobe, &["brd", "rd_nr=1", size.as_str(), "max_part=0"], stop);
        if record.is_loaded() {
            let brd = Self { record, home: Rc::clone(home) };
            loaded?;
            return Ok(brd);
        }
        let _ = rustix::fs::unlinkat(home, Self::RECORD, AtFlags::empty());
        loaded?;
        Err(unusable!("modprobe loaded no module brd with the size that was asked for"))
    }

    pub(crate) fn path(&self) -> &'static Path {
        Path::new(Self::DEVICE)
    }

    pub(crate) fn size(&self) -> u64 {
        self.record.kib << 10
    }
}

impl Drop for Brd {
    fn drop(&mut self) {
        if self.record.unload().is_err() {
            // Another program uses it by now: the next run tries again, and must know that it is ours.
            self.home.leave();
        }
    }
}

/// Why it cannot be loaded: another program has, or may have, such devices.
fn why_taken() -> Option<String> {
    const MODULES: &str = "/proc/modules";
    let modules = match fs::read_to_string(MODULES) {
        Ok(modules) => modules,
        Err(error)
            if error.kind() == std::io::ErrorKind::NotFound && !Path::new("/sys/module/brd").exists() =>
        {
            return Some(
                "this kernel loads no modules, and brd is not in it (CONFIG_MODULES, CONFIG_BLK_DEV_RAM)"
                    .to_owned(),
            );
        }
        Err(error) => return Some(format!("{MODULES} cannot be read: {}", plainly(error))),
    };
    let is_loaded = modules.lines().any(|line| line.split(' ').next() == Some("brd"));
    let is_device = |name: &str| {
        name.strip_prefix("ram").is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let has_devices = || {
        let entries = fs::read_dir("/dev").into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.file_name().to_str().is_some_and(is_device))
    };
    let is_there = is_loaded || Path::new("/sys/module/brd").exists() || has_devices();
    is_there.then(|| "brd is there already, and its devices belong to others".to_owned())
}

/// The marks of a module that was loaded here: the same boot, one device, and an unusual size in KiB.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    boot: String,
    kib: u64,
}

impl Record {
    fn new(size: u64) -> Option<Self> {
        // Whole pages, and never whole MiB.
        let odd = u64::from(std::process::id() % 255 + 1) * 4;
        Some(Self { boot: boot()?, kib: (size >> 20 << 10).saturating_add(odd) })
    }

    fn write(&self, home: &Private) -> std::io::Result<()> {
        write_note(home, Brd::RECORD, &self.to_text())
    }

    /// The note of a private directory, where it has one.
    pub(crate) fn read(home: &Private) -> Option<Self> {
        let text = read_note(home, Brd::RECORD)?;
        Self::parse(&text)
    }

    fn to_text(&self) -> String {
        format!("{} {}\n", self.boot, self.kib)
    }

    fn parse(text: &str) -> Option<Self> {
        let (boot, kib) = text.trim_end().split_once(' ')?;
        Some(Self { boot: boot.to_owned(), kib: kib.parse().ok()? })
    }

    /// Whether the module that is loaded now is the one that was written down.
    pub(crate) fn is_loaded(&self) -> bool {
        let parameter = |name: &str| {
            let text = fs::read_to_string(format!("/sys/module/brd/parameters/{name}")).ok()?;
            text.trim().parse::<u64>().ok()
        };
        boot().as_ref() == Some(&self.boot)
            && parameter("rd_nr") == Some(1)
            && parameter("rd_size") == Some(self.kib)
    }

    /// Unloads it, where it is that one and not in use.
    pub(crate) fn unload(&self) -> Result<(), Errno> {
        if !self.is_loaded() {
            return Ok(());
        }
        patiently(|| {
            // SAFETY: the name ends in NUL; the kernel refuses while the module is in use.
            answered(unsafe { libc::syscall(libc::SYS_delete_module, c"brd".as_ptr(), libc::O_NONBLOCK) })
        })
        .map(drop)
    }
}

/// Writes a note in a private directory, in place of a former one.
fn write_note(home: &Private, name: &str, text: &str) -> std::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(home, name, flags, Mode::RUSR | Mode::WUSR)?;
    File::from(file).write_all(text.as_bytes())
}

fn read_note(home: &Private, name: &str) -> Option<String> {
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

/// A loop device over a file; freed when it is dropped and unmounted.
#[derive(Debug)]
pub(crate) struct Loop {
    /// None only while it is being dropped.
    device: Option<File>,
    path: PathBuf,
    direct: bool,
    number: libc::c_int,
    /// Whether the kernel had to add it for us.
    is_added: bool,
    control: File,
    home: Rc<Private>,
}

/// `struct loop_info64` in linux/loop.h.
#[repr(C)]
#[derive(Default)]
struct Info {
    // device, inode, rdevice, offset, size_limit.
    file: [u64; 5],
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: Mark,
    // crypt_name, encrypt_key and init, which are not used.
    crypt: [[u8; 16]; 7],
}

/// `struct loop_config` in linux/loop.h.
#[repr(C)]
struct Config {
    fd: u32,
    block_size: u32,
    info: Info,
    reserved: [u64; 8],
}

// linux/loop.h.
const LOOP_GET_STATUS64: libc::Ioctl = 0x4c05;
const LOOP_CONFIGURE: libc::Ioctl = 0x4c0a;
const LOOP_CTL_REMOVE: libc::Ioctl = 0x4c81;
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4c82;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

impl Loop {
    /// The note in the private directory of a device that the kernel had to add.
    const RECORD: &str = "loop";
    const CONTROL: &str = "/dev/loop-control";

    /// Gives a free loop device this file.
    ///
    /// # Errors
    /// A sentence: there are no loop devices here, or they may not be used.
    pub(crate) fn over(file: &File, home: &Rc<Private>) -> Result<Self, EnvironmentError> {
        /// Others may take a device between the question and the claim.
        const CLAIMS: u32 = 16;
        let open = |path: &Path| {
            let opened = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path);
            opened.map_err(|error| {
                let code = error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
                EnvironmentError::of(path.display(), code)
            })
        };
        let known = numbers();
        for _ in 0..CLAIMS {
            let control = open(Path::new(Self::CONTROL))?;
            // SAFETY: this request takes no argument.
            let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
            answered(number)
                .map_err(|error| EnvironmentError::of("no loop device is free: LOOP_CTL_GET_FREE", error))?;
            let path = path_of(number);
            let is_added = !known.contains(&number);
            if let (true, Some(boot)) = (is_added, boot()) {
                // Without the note a device stays that has no file: of a program that is killed only.
                let _ = write_note(home, Self::RECORD, &format!("{boot} {number}\n"));
            }
            // Where it cannot be used after all, one that was added is removed with this.
            let mut own =
                Self { device: None, path, direct: false, number, is_added, control, home: Rc::clone(home) };
            let device = open(&own.path)?;
            let configured = configure(&device, file, &mark(home));
            own.direct = status(&device).is_some_and(|info| info.flags & LO_FLAGS_DIRECT_IO != 0);
            own.device = Some(device);
            match configured {
                Ok(()) => return Ok(own),
                Err(Errno::BUSY) => {}
                Err(error) => {
                    let what = format!("{}: LOOP_CONFIGURE (Linux 5.8)", own.path.display());
                    return Err(EnvironmentError::of(what, error));
                }
            }
        }
        Err(EnvironmentError::Unusable("every loop device that was free was taken by others".to_owned()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the device that a killed program had the kernel add since the machine was started.
    ///
    /// # Errors
    /// Where it is in use.
    pub(crate) fn remove_noted(home: &Private) -> Result<(), Errno> {
        let number = read_note(home, Self::RECORD).and_then(|text| {
            let (then, number) = text.trim_end().split_once(' ')?;
            if boot()? == then { number.parse::<libc::c_int>().ok() } else { None }
        });
        let control = OpenOptions::new().read(true).write(true).open(Self::CONTROL);
        match (number, control) {
            (Some(number @ 0..), Ok(control)) => remove_loop(&control, number, home),
            _ => Ok(()),
        }
    }

    /// Whether it passes the page cache of the file beneath by, as the kernel says after all.
    pub(crate) fn is_direct(&self) -> bool {
        self.direct
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.device = None;
        let gone = patiently(|| match (self.is_added, file_of(self.number)) {
            (true, _) => remove_loop(&self.control, self.number, &self.home),
            (false, Some(file)) if file == mark(&self.home) => Err(Errno::BUSY),
            _ => Ok(()),
        });
        if gone.is_err() {
            // It is still mounted somewhere, or open: the next run tries again.
            self.home.leave();
        }
    }
}

/// Removes a device that was added for this private directory, unless another program has taken it since.
fn remove_loop(control: &File, number: libc::c_int, home: &Private) -> Result<(), Errno> {
    // SAFETY: the argument is a number; the kernel refuses while the device is in use.
    match answered(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_REMOVE, number) }) {
        Ok(_) | Err(Errno::NODEV) => Ok(()),
        Err(Errno::BUSY) if file_of(number).is_some_and(|file| file != mark(home)) => Ok(()),
        Err(error) => Err(error),
    }
}

fn path_of(number: libc::c_int) -> PathBuf {
    PathBuf::from(format!("/dev/loop{number}"))
}

/// The name that a loop device has for its file: that of the private directory, which no other has.
type Mark = [[u8; 32]; 2];

fn mark(home: &Private) -> Mark {
    let mut mark = Mark::default();
    let name = home.workdir().path().file_name().unwrap_or_default().as_encoded_bytes();
    // The last byte is NUL.
    for (to, from) in mark.as_flattened_mut().iter_mut().take(63).zip(name) {
        *to = *from;
    }
    mark
}

/// The name that a device has for its file, where it has one.
fn file_of(number: libc::c_int) -> Option<Mark> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path_of(number));
    Some(status(&opened.ok()?)?.file_name)
}

fn configure(device: &File, file: &File, mark: &Mark) -> Result<(), Errno> {
    let attempt = |flags: u32| {
        let info = Info { flags, file_name: *mark, ..Info::default() };
        let config = Config { fd: file.as_raw_fd().cast_unsigned(), block_size: 0, info, reserved: [0; 8] };
        // SAFETY: the pointer is to a whole loop_config, which the kernel reads.
        answered(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) }).map(drop)
    };
    match attempt(LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO) {
        Err(Errno::INVAL) => attempt(LO_FLAGS_AUTOCLEAR),
        answer => answer,
    }
}

fn status(device: &File) -> Option<Info> {
    let mut info = Info::default();
    // SAFETY: the pointer is to a whole loop_info64, which the kernel fills.
    let status = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) };
    (status == 0).then_some(info)
}

/// The loop devices that there are.
fn numbers() -> Vec<libc::c_int> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let number = |name: std::ffi::OsString| name.to_str()?.strip_prefix("loop")?.parse().ok();
    entries.filter_map(|entry| number(entry.file_name())).collect()
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
    fn the_kernel_s_structures_have_its_sizes() {
        assert_eq!((size_of::<Info>(), size_of::<Config>()), (232, 304));
    }

    #[test]
    fn an_own_module_has_an_unusual_size() {
        let record = Record { boot: "b".to_owned(), kib: 4096 };
        assert_eq!(Record::parse(&record.to_text()), Some(record));
        assert!(!Record { boot: "another".to_owned(), kib: 4096 }.is_loaded());
        if let Some(record) = Record::new(1 << 30) {
            assert!(record.kib > 1 << 20 && record.kib % 4 == 0 && record.kib % 1024 != 0, "{record:?}");
        }
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
            let _ = Record::parse(&text);
        }
    }
}
