//! The restartable sequence of a thread: the memory that it shares with the kernel.
//!
//! Source: rseq(2), include/uapi/linux/rseq.h. The C library registers a thread's area from glibc 2.35 on and says where it is
//! (`__rseq_offset`, `__rseq_size`); where it has not, the thread does so itself.

use std::cell::RefCell;
use std::io;

use tollgate_engine::Refusal;

/// What the kernel writes to and reads from (struct rseq, its first 32 bytes).
#[repr(C, align(32))]
#[derive(Debug, Default)]
pub(super) struct Area {
    cpu_id_start: u32,
    /// The processor on which the thread runs.
    pub cpu_id: u32,
    /// The descriptor of the sequence that it has begun.
    pub rseq_cs: u64,
    flags: u32,
    node_id: u32,
    mm_cid: u32,
    padding: u32,
}

/// Stands before each abort handler (glibc's RSEQ_SIG for x86).
const SIGNATURE: u32 = 0x5305_3053;
/// RSEQ_FLAG_UNREGISTER.
const UNREGISTER: libc::c_int = 1;

thread_local! {
    /// The area of a thread that has registered one by itself.
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

/// The area of the calling thread, registered where it was not.
///
/// # Errors
/// [`Refusal::Skip`] where the kernel has none.
pub(super) fn area() -> Result<*mut Area, Refusal> {
    if let Some(area) = of_the_library() {
        return Ok(area);
    }
    OWN.with_borrow_mut(|own| {
        if own.is_none() {
            *own = Some(Own::register()?);
        }
        let area = own.as_mut().map_or(std::ptr::null_mut(), |own| &raw mut *own.0);
        Ok(area)
    })
}

/// Where the C library has registered it, if it has.
fn of_the_library() -> Option<*mut Area> {
    let (offset, size, base): (*const isize, *const u32, usize);
    // SAFETY: reads two addresses that the linker lays down, 0 where an older library has no such symbol, and the thread's
    // own pointer (System V ABI for x86-64, thread-local storage).
    unsafe {
        std::arch::asm!(
            ".weak __rseq_offset", ".weak __rseq_size",
            "mov {offset}, [rip + __rseq_offset@GOTPCREL]",
            "mov {size}, [rip + __rseq_size@GOTPCREL]",
            "mov {base}, fs:0",
            offset = out(reg) offset, size = out(reg) size, base = out(reg) base,
            options(nostack, preserves_flags),
        );
    }
    if offset.is_null() || size.is_null() {
        return None;
    }
    // SAFETY: the library defines both as these types (<sys/rseq.h>) and never changes them once a program runs.
    let (offset, size) = unsafe { (*offset, *size) };
    // It is 0 where registration was refused or turned off (GLIBC_TUNABLES=glibc.pthread.rseq=0).
    (size > 0).then(|| base.wrapping_add_signed(offset) as *mut Area)
}

/// An area that the thread registered by itself, until the thread ends.
struct Own(Box<Area>);

impl Own {
    fn register() -> Result<Self, Refusal> {
        let mut area = Box::new(Area::default());
        match call(&raw mut *area, 0) {
            0 => Ok(Self(area)),
            _ => Err(Refusal::of("rseq(2) is refused", &io::Error::last_os_error())),
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if call(&raw mut *self.0, UNREGISTER) != 0 {
            // The kernel would go on writing to it.
            std::mem::forget(std::mem::take(&mut self.0));
        }
    }
}

fn call(area: *mut Area, flags: libc::c_int) -> libc::c_long {
    // SAFETY: the kernel keeps the address until it is told to forget it, and `Own` lives as long.
    unsafe { libc::syscall(libc::SYS_rseq, area, size_of::<Area>(), flags, SIGNATURE) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_engine::cpu;

    #[test]
    fn the_kernel_says_in_it_where_the_thread_runs() {
        // In a thread of its own: which of the two ways it is depends on the library.
        std::thread::spawn(|| {
            for cpu in cpu::allowed() {
                cpu::pin(cpu).expect("an allowed processor");
                match area() {
                    Ok(area) => {
                        // SAFETY: the area is this thread's, and the kernel changes it as a whole word.
                        let said = unsafe { (&raw const (*area).cpu_id).read_volatile() };
                        assert_eq!(said, cpu as u32);
                    }
                    Err(why) => println!("skipped: {why:?}"),
                }
            }
        })
        .join()
        .expect("no panic");
    }
}
