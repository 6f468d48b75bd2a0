//! A thread's rseq area: the memory that it shares with the kernel.
//!
//! Source: rseq(2), include/uapi/linux/rseq.h. glibc 2.35 and later register a thread's area and export its address
//! (`__rseq_offset`, `__rseq_size`); with other libraries the thread registers its own.

use std::cell::RefCell;

use tollgate_arch::rseq::{SIGNATURE, library};

use crate::prelude::*;

/// struct rseq, its first 32 bytes.
#[repr(C, align(32))]
#[derive(Debug, Default)]
pub(super) struct Area {
    cpu_id_start: u32,
    pub cpu_id: u32,
    pub rseq_cs: u64,
    flags: u32,
    node_id: u32,
    mm_cid: u32,
    padding: u32,
}

/// RSEQ_FLAG_UNREGISTER.
const UNREGISTER: libc::c_int = 1;

thread_local! {
    /// The area of a thread that registered its own: the kernel keeps its address for that thread alone (rseq(2)).
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

/// Returns the area of the calling thread, and registers one if needed.
pub(super) fn area() -> Result<*mut Area> {
    if let Some(area) = library().area() {
        return Ok(area as *mut Area);
    }
    OWN.with_borrow_mut(|own| {
        if own.is_none() {
            *own = Some(Own::register()?);
        }
        let area = own.as_mut().map_or(std::ptr::null_mut(), |own| &raw mut *own.0);
        Ok(area)
    })
}

struct Own(Box<Area>);

impl Own {
    fn register() -> Result<Self> {
        let mut area = Box::new(Area::default());
        match call(&raw mut *area, 0) {
            0 => Ok(Self(area)),
            _ => Err(Refusal::last("rseq(2) is refused")),
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if call(&raw mut *self.0, UNREGISTER) != 0 {
            // The kernel would continue to write to it.
            std::mem::forget(std::mem::take(&mut self.0));
        }
    }
}

fn call(area: *mut Area, flags: libc::c_int) -> libc::c_long {
    // SAFETY: the kernel keeps the address until it is unregistered, and `Own` lives that long.
    unsafe { libc::syscall(libc::SYS_rseq, area, size_of::<Area>(), flags, SIGNATURE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_has_the_current_processor() {
        // Runs in its own thread, because the library decides which of the two registrations applies.
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
