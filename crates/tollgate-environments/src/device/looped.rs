//! A loop device: loop(4), drivers/block/loop.c.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::{os::fd::AsRawFd, rc::Rc};

use rustix::io::Errno;
use tollgate_os::private::PrivateDirectory;

use super::{answered, boot, patiently, read_note, write_note};
use crate::error::EnvironmentError;

/// A loop device over a file; freed when it is dropped and unmounted.
#[derive(Debug)]
pub(crate) struct Loop {
    /// `None` only while it is being dropped.
    device: Option<File>,
    path: PathBuf,
    direct: bool,
    number: libc::c_int,
    /// Whether the kernel added the device for us.
    is_added: bool,
    control: File,
    home: Rc<PrivateDirectory>,
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
    /// Note in the private directory about a device that the kernel had to add.
    const RECORD: &str = "loop";
    const CONTROL: &str = "/dev/loop-control";

    /// Binds a free loop device to this file. Fails if there are no loop devices here or they may not be used.
    pub(crate) fn over(file: &File, home: &Rc<PrivateDirectory>) -> Result<Self, EnvironmentError> {
        /// Another program may claim the device between LOOP_CTL_GET_FREE and our claim.
        const CLAIMS: u32 = 16;
        let open = |path: &Path| {
            let opened = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path);
            opened.map_err(|error| {
                let code = error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
                EnvironmentError::new(path.display(), code)
            })
        };
        let known = numbers();
        for _ in 0..CLAIMS {
            let control = open(Path::new(Self::CONTROL))?;
            // SAFETY: this request takes no argument.
            let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
            answered(number)
                .map_err(|error| EnvironmentError::new("no loop device is free: LOOP_CTL_GET_FREE", error))?;
            let path = path_of(number);
            let is_added = !known.contains(&number);
            if let (true, Some(boot)) = (is_added, boot()) {
                // If the note is missing and the program is killed, an unbound loop device remains.
                let _ = write_note(home, Self::RECORD, &format!("{boot} {number}\n"));
            }
            // If the device turns out to be unusable, dropping this removes it if it was added.
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
                    return Err(EnvironmentError::new(what, error));
                }
            }
        }
        Err(EnvironmentError::Unusable("others took every free loop device".to_owned()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the device that a killed program had the kernel add since boot. Fails if it is in use.
    pub(crate) fn remove_noted(home: &PrivateDirectory) -> Result<(), Errno> {
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

    /// Returns whether it bypasses the page cache of the file beneath, as the kernel reports.
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
            // It is still mounted or open: the next run tries again.
            self.home.leave();
        }
    }
}

/// Removes a device that was added for this private directory, unless another program uses it by now.
fn remove_loop(control: &File, number: libc::c_int, home: &PrivateDirectory) -> Result<(), Errno> {
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

/// The file name recorded in a loop device: the unique name of the private directory.
type Mark = [[u8; 32]; 2];

fn mark(home: &PrivateDirectory) -> Mark {
    let mut mark = Mark::default();
    let name = home.path().file_name().unwrap_or_default().as_encoded_bytes();
    // The last byte is NUL.
    for (to, from) in mark.as_flattened_mut().iter_mut().take(63).zip(name) {
        *to = *from;
    }
    mark
}

/// The file name recorded in a device, if it has a file.
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

fn numbers() -> Vec<libc::c_int> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let number = |name: std::ffi::OsString| name.to_str()?.strip_prefix("loop")?.parse().ok();
    entries.filter_map(|entry| number(entry.file_name())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_structures_have_its_sizes() {
        assert_eq!((size_of::<Info>(), size_of::<Config>()), (232, 304));
    }
}
