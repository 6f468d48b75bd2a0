//! The guest's side: this program as `/init` mounts what programs expect, loads the modules, and starts the agent on its channel.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, mount};
use rustix::termios;
use tollgate_arch::mark;
use tollgate_engine::versus::counted::{self, PATH};

use super::layout::{BEGUN, DISK, GATE, LINE, MARK, MARKS, MODULES, ON_RAM, PORT, SAYS, SEED, SHARES, WORK};
use super::{audit, planted};

/// Time for a channel to appear after its module is loaded.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(2);

/// Types and mount points of file systems. Those that the kernel does not have are skipped.
const MOUNTS: [(&str, &str); 9] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tmpfs", "/run"),
    ("tmpfs", "/tmp"),
    ("tmpfs", "/dev/shm"),
    ("devpts", "/dev/pts"),
    ("debugfs", "/sys/kernel/debug"),
    ("securityfs", "/sys/kernel/security"),
];

/// Must be called first in `main`, but after the checks for other hidden roles of this program. As `/init` of a guest that
/// this program made, it starts the agent, ends the guest with it, and never returns.
pub fn serve_if_init() {
    let is_init = std::process::id() == 1 && std::env::args_os().next().is_some_and(|name| name == "/init");
    let Some(channel) = is_init.then(|| fs::read_to_string(Path::new("/").join(MARK)).ok()).flatten() else {
        return;
    };
    if std::env::var_os(MARKS).is_some() {
        eprintln!("{BEGUN}");
    }
    if let Err(why) = serve(&channel) {
        eprintln!("{SAYS}{why}");
    }
    end();
}

fn serve(channel: &str) -> Result<(), String> {
    let has_commands = planted::is_there();
    mount_all(has_commands);
    if Path::new("/").join(SEED).exists() {
        mark::pass_gate(GATE);
    }
    seed();
    audit::begin()?;
    let rounds = if has_commands { Some(planted::execute()?) } else { None };
    load_modules()?;
    if rounds.is_some_and(|rounds| rounds.has_functions) {
        // Without the copy, the symbols are read when they are asked for.
        let _ = fs::copy("/proc/kallsyms", counted::SYMBOLS)
            .or_else(|_| fs::remove_file(counted::SYMBOLS).map(|()| 0));
    }
    mount_shares()?;
    mount_disk()?;
    raise_loopback();
    let channel = open(channel)?;
    let mut agent = Command::new("/init");
    agent.arg0("tollgate").arg("agent").args(storage()).current_dir(WORK);
    agent.env("PATH", PATH).env("HOME", "/root");
    let of_channel = |error| format!("the channel: {error}");
    agent.stdin(channel.try_clone().map_err(of_channel)?).stdout(channel);
    let agent = agent.spawn().map_err(|error| format!("the agent is not started: {error}"))?;
    reap(agent.id().cast_signed());
    Ok(())
}

fn storage() -> [String; 2] {
    match fs::read_to_string(Path::new("/").join(ON_RAM)) {
        Ok(on) => ["--on".to_owned(), on],
        Err(_) => ["--dir".to_owned(), WORK.to_owned()],
    }
}

fn mount_all(has_commands: bool) {
    // The archive may have put files of commands there.
    let is_kept = |place: &str| has_commands && place == "/tmp";
    for (kind, place) in MOUNTS.into_iter().filter(|(_, place)| !is_kept(place)) {
        let _ = fs::create_dir_all(place);
        let _ = mount(kind, place, kind, MountFlags::empty(), None::<&std::ffi::CStr>);
    }
    // Some programs look for their standard streams there.
    for (name, to) in [("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")] {
        let _ = std::os::unix::fs::symlink(to, format!("/dev/{name}"));
    }
}

/// Seeds the kernel's random numbers, if asked to. If this fails, they differ at each boot, and programs that need them wait.
fn seed() {
    /// `struct rand_pool_info` in include/uapi/linux/random.h, with as many bytes as the file has at most.
    #[repr(C)]
    struct Pool {
        bits: libc::c_int,
        bytes: libc::c_int,
        buffer: [u8; 64],
    }
    const RNDADDENTROPY: libc::Ioctl = 0x4008_5203;
    let Ok(bytes) = fs::read(Path::new("/").join(SEED)) else { return };
    let Ok(generator) = File::options().write(true).open("/dev/random") else { return };
    let mut pool = Pool { bits: 0, bytes: 0, buffer: [0; 64] };
    let length = bytes.len().min(pool.buffer.len());
    pool.buffer[..length].copy_from_slice(&bytes[..length]);
    (pool.bytes, pool.bits) = (length as libc::c_int, 8 * length as libc::c_int);
    // SAFETY: the kernel reads the structure, which outlives the call.
    unsafe { libc::ioctl(generator.as_raw_fd(), RNDADDENTROPY, &raw const pool) };
}

fn load_modules() -> Result<(), String> {
    let directory = Path::new("/").join(MODULES);
    let mut files: Vec<PathBuf> = fs::read_dir(&directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.sort();
    for file in files {
        load(&file).map_err(|error| format!("the module {}: {error}", file.display()))?;
    }
    Ok(())
}

fn load(file: &Path) -> io::Result<()> {
    let open = File::open(file)?;
    let none = CString::default();
    // SAFETY: finit_module(2) reads the file and the text, which both outlive the call.
    let done = unsafe { libc::syscall(libc::SYS_finit_module, open.as_raw_fd(), none.as_ptr(), 0) };
    match done {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            error => Err(error),
        },
    }
}

fn open(channel: &str) -> Result<File, String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let found = match channel {
            PORT => port(),
            _ => Some(Path::new("/dev").join(LINE)).filter(|path| path.exists()),
        };
        if let Some(path) = found {
            let file = File::options().read(true).write(true).open(&path);
            let file = file.map_err(|error| format!("the channel {}: {error}", path.display()))?;
            raw(&file);
            return Ok(file);
        }
        if Instant::now() > until {
            return Err(format!("the channel {channel} did not appear within {} s", PATIENCE.as_secs()));
        }
        std::thread::sleep(LOOK);
    }
}

/// The device of the port with the name that the host gave it.
fn port() -> Option<PathBuf> {
    let ports = fs::read_dir("/sys/class/virtio-ports").ok()?.flatten();
    let named = |path: &PathBuf| fs::read_to_string(path.join("name")).is_ok_and(|name| name.trim() == PORT);
    let port = ports.map(|entry| entry.path()).find(named)?;
    Some(Path::new("/dev").join(port.file_name()?)).filter(|path| path.exists())
}

/// Makes a serial line pass all bytes unchanged. A port is not a terminal, and does so anyway.
fn raw(file: &File) {
    if let Ok(mut attributes) = termios::tcgetattr(file.as_fd()) {
        attributes.make_raw();
        let _ = termios::tcsetattr(file.as_fd(), termios::OptionalActions::Now, &attributes);
    }
}

/// Mounts the host's programs. `cache=loose` keeps what was read, since the host does not change them meanwhile
/// (Documentation/filesystems/9p.rst).
fn mount_shares() -> Result<(), String> {
    let Ok(lines) = fs::read_to_string(Path::new("/").join(SHARES)) else { return Ok(()) };
    for (tag, directory) in lines.lines().filter_map(|line| line.split_once(' ')) {
        let place = Path::new("/").join(directory);
        let _ = fs::create_dir_all(&place);
        let options =
            CString::new("trans=virtio,version=9p2000.L,msize=524288,cache=loose").unwrap_or_default();
        mount(tag, &place, "9p", MountFlags::RDONLY, Some(options.as_c_str()))
            .map_err(|error| format!("{} cannot be mounted by 9p: {error}", place.display()))?;
    }
    Ok(())
}

fn mount_disk() -> Result<(), String> {
    /// The first virtio-blk device.
    const DEVICE: &str = "/dev/vda";
    let Ok(kind) = fs::read_to_string(Path::new("/").join(DISK)) else { return Ok(()) };
    let until = Instant::now() + PATIENCE;
    while !Path::new(DEVICE).exists() {
        if Instant::now() > until {
            return Err(format!("the disk {DEVICE} did not appear within {} s", PATIENCE.as_secs()));
        }
        std::thread::sleep(LOOK);
    }
    // As on the host: inode tables are not written while files are measured (ext4(5)).
    let options = CString::new("noinit_itable").unwrap_or_default();
    let options = (kind == "ext4").then_some(options.as_c_str());
    mount(DEVICE, WORK, kind.as_str(), MountFlags::NOSUID | MountFlags::NODEV, options)
        .map_err(|error| format!("the disk {DEVICE} cannot be mounted: {error}"))
}

/// Brings up the interface `lo`, through which processes in the guest connect to each other (netdevice(7)). A kernel without
/// IPv4 has none, and programs that need it say so.
fn raise_loopback() {
    // SAFETY: socket(2) takes only numbers.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return;
    }
    // SAFETY: the descriptor is new and owned by nothing else.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: all zeros are a valid value of the structure, which has numbers and a pointer.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[..2].copy_from_slice(&[b'l', b'o'].map(|byte| byte as libc::c_char));
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the kernel reads the structure, which outlives the call.
    unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
}

/// Waits for the agent, and reaps all orphans.
fn reap(agent: i32) {
    loop {
        match tollgate_os::process::wait4(-1, 0) {
            Ok(Some(wait)) if wait.pid == agent => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Resets the machine, which ends its monitor (`-no-reboot`).
fn end() -> ! {
    rustix::fs::sync();
    // SAFETY: reboot(2) takes numbers; this is PID 1 of a guest of our own.
    unsafe { libc::reboot(libc::RB_AUTOBOOT) };
    std::process::exit(1)
}
