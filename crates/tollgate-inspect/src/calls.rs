//! Facts from system calls, for environments in which `/proc` is not mounted or hides them.

#![allow(unsafe_code)]

use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags};

mod trials;

pub(crate) use trials::{in_a_child, may_count, may_use_io_uring, may_use_userfaultfd};

/// Release, version and machine of uname(2).
pub(crate) fn uname() -> [String; 3] {
    let name = rustix::system::uname();
    [name.release(), name.version(), name.machine()].map(|field| field.to_string_lossy().into_owned())
}

/// The values of `sysinfo(2)`, which describe the whole machine: seconds, bytes, and the load average over one minute.
pub(crate) struct Sysinfo {
    pub uptime: i64,
    pub memory: i64,
    pub free: i64,
    pub load: f64,
}

pub(crate) fn sysinfo() -> Option<Sysinfo> {
    /// `SI_LOAD_SHIFT` in linux/sysinfo.h: loads are in units of 2^-16.
    const LOAD_UNIT: f64 = 65536.0;
    let info = rustix::system::sysinfo();
    let bytes = |units: u64| i64::try_from(units.checked_mul(u64::from(info.mem_unit.max(1)))?).ok();
    Some(Sysinfo {
        uptime: info.uptime,
        memory: bytes(info.totalram)?,
        free: bytes(info.freeram)?,
        load: info.loads[0] as f64 / LOAD_UNIT,
    })
}

/// The soft limit of `getrlimit(2)`; `None` if there is no limit.
pub(crate) fn resource_limit(resource: libc::__rlimit_resource_t) -> Option<i64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a whole rlimit.
    let asked = unsafe { libc::getrlimit(resource, &mut limit) };
    (asked == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then(|| i64::try_from(limit.rlim_cur).ok())?
}

pub(crate) fn allowed_processors() -> Option<Vec<u32>> {
    let allowed = tollgate_os::affinity::allowed(0).ok()?;
    allowed.into_iter().map(|cpu| u32::try_from(cpu).ok()).collect()
}

pub(crate) fn has_vdso() -> bool {
    // SAFETY: the call takes any number and only reads what the kernel left on the stack; 0 means "no such entry".
    unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) != 0 }
}

/// `PR_GET_SECCOMP` of `prctl(2)`. In strict mode this call would kill the process, but so would the earlier reads.
pub(crate) fn seccomp_mode() -> Option<i64> {
    get(libc::PR_GET_SECCOMP)
}

pub(crate) fn no_new_privileges() -> Option<i64> {
    get(libc::PR_GET_NO_NEW_PRIVS)
}

fn get(question: libc::c_int) -> Option<i64> {
    const NONE: libc::c_ulong = 0;
    // SAFETY: the questions above take no pointers and change nothing.
    answered(unsafe { libc::prctl(question, NONE, NONE, NONE, NONE) }).ok()
}

fn answered(answer: libc::c_int) -> Result<i64, i32> {
    if answer >= 0 { Ok(i64::from(answer)) } else { Err(errno()) }
}

/// `statx(2)` with `STATX_MNT_ID` (Linux 5.8): the ID of the mount that a path leads into.
pub(crate) fn mount_id(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    let known = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::MNT_ID);
    known.then_some(stat.stx_mnt_id)
}

/// `statvfs(3)`: free bytes for users other than root; `None` if the file system states no size.
pub(crate) fn free_space(path: &Path) -> Result<Option<u64>, i32> {
    let stat = rustix::fs::statvfs(path).map_err(rustix::io::Errno::raw_os_error)?;
    Ok(tollgate_os::space::free(&stat))
}

/// Whether RDTSC may be executed: `PR_GET_TSC` of `prctl(2)`. If not, it kills the process.
pub(crate) fn may_read_tsc() -> Result<bool, i32> {
    let mut mode: libc::c_int = 0;
    // SAFETY: the pointer is to an int, which the call fills.
    answered(unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) })?;
    Ok(mode == libc::PR_TSC_ENABLE)
}

/// Fails if RDTSC may not be executed. gVisor, and Linux before 6.12 on arm64, have no switch for it and so allow it.
pub(crate) fn expect_tsc() -> Result<(), i32> {
    match may_read_tsc() {
        Ok(true) | Err(libc::EINVAL) => Ok(()),
        Ok(false) => Err(libc::EACCES),
        Err(errno) => Err(errno),
    }
}

/// `clock_getres(2)`: resolution of a clock in nanoseconds.
pub(crate) fn resolution(clock: libc::clockid_t) -> Result<i64, i32> {
    let mut step = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a whole timespec, which the call fills.
    answered(unsafe { libc::clock_getres(clock, &raw mut step) })?;
    Ok(step.tv_sec.saturating_mul(1_000_000_000).saturating_add(step.tv_nsec))
}

pub(crate) fn timer_slack() -> Option<i64> {
    get(libc::PR_GET_TIMERSLACK)
}

pub(crate) fn flushes_l1d() -> Result<i64, i32> {
    // The C library of arm64 does not name it.
    const PR_GET_SPECULATION_CTRL: libc::c_int = 52;
    const PR_SPEC_L1D_FLUSH: libc::c_ulong = 2;
    const NONE: libc::c_ulong = 0;
    // SAFETY: the question takes no pointers and changes nothing.
    answered(unsafe { libc::prctl(PR_GET_SPECULATION_CTRL, PR_SPEC_L1D_FLUSH, NONE, NONE, NONE) })
}

/// `PR_SCHED_CORE_GET` of `prctl(2)`: whether this thread shares a core only with threads that have its cookie.
pub(crate) fn has_core_cookie() -> Result<bool, i32> {
    const PR_SCHED_CORE: libc::c_int = 62;
    const GET: libc::c_ulong = 0;
    const OWN: libc::c_ulong = 0;
    const SCOPE_THREAD: libc::c_ulong = 0;
    let mut cookie = 0_u64;
    // SAFETY: the pointer is to eight bytes, which the call fills.
    answered(unsafe { libc::prctl(PR_SCHED_CORE, GET, OWN, SCOPE_THREAD, &raw mut cookie) })?;
    Ok(cookie != 0)
}

pub(crate) fn scheduling_policy() -> Result<i64, i32> {
    // SAFETY: takes no pointers and changes nothing.
    answered(unsafe { libc::sched_getscheduler(0) })
}

/// Returns whether this thread has registered an area for `rseq(2)`. Registering another one in the kernel's half of the address
/// space always fails: with `EINVAL` if there is one already, with `EFAULT` if not.
pub(crate) fn has_rseq() -> Result<bool, i32> {
    const AREA: libc::c_ulong = 0xffff_8000_0000_0000;
    const LENGTH: libc::c_ulong = 32;
    const FLAGS: libc::c_ulong = 0;
    const SIGNATURE: libc::c_ulong = 0x5305_3053;
    // SAFETY: the address never belongs to this process: the kernel refuses it.
    match unsafe { libc::syscall(libc::SYS_rseq, AREA, LENGTH, FLAGS, SIGNATURE) } {
        0 => Ok(false),
        _ => match errno() {
            libc::EINVAL | libc::EBUSY | libc::EPERM => Ok(true),
            libc::EFAULT => Ok(false),
            errno => Err(errno),
        },
    }
}

/// `getauxval(3)`; 0 if the kernel left no such entry.
pub(crate) fn auxiliary(kind: libc::c_ulong) -> i64 {
    // SAFETY: the call takes any number and only reads what the kernel left on the stack.
    i64::try_from(unsafe { libc::getauxval(kind) }).unwrap_or(0)
}

pub(crate) fn has_root_of_init() -> Result<bool, i32> {
    use std::os::unix::fs::MetadataExt;
    let number = |path: &str| -> Result<(u64, u64), i32> {
        let metadata = std::fs::metadata(path).map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))?;
        Ok((metadata.dev(), metadata.ino()))
    };
    Ok(number("/proc/1/root")? == number("/")?)
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

pub(crate) fn user() -> i64 {
    i64::from(rustix::process::geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_agree_with_proc() {
        let Ok(release) = std::fs::read_to_string("/proc/sys/kernel/osrelease") else {
            println!("skipped: there is no /proc to agree with");
            return;
        };
        assert_eq!(uname()[0], release.trim());
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let allowed = crate::text::keyed(&status, "Cpus_allowed_list").unwrap();
        assert_eq!(crate::text::show_processors(&allowed_processors().unwrap()), allowed);
        let user = crate::text::keyed(&status, "Uid").unwrap().split_whitespace().nth(1).unwrap();
        assert_eq!(self::user().to_string(), user);
    }
}
