//! Work out of single calls.

use std::io;

use tollgate_engine::parallel::Work;

use crate::syscall::call;

/// A call that is made again and again: its result, or a negative error number.
struct Calls<F>(F);

impl<F: FnMut() -> i64> Calls<F> {
    /// A function of its own, as a program's wrapper of the call is: the kernel's returns take another time below a loop that makes no
    /// call (`timed_loop!`).
    #[inline(never)]
    fn once(&mut self) -> i64 {
        (self.0)()
    }
}

impl<F: FnMut() -> i64> Work for Calls<F> {
    fn make(&mut self, times: u64) -> Result<(), i32> {
        for _ in 0..times {
            let result = self.once();
            if result < 0 {
                return Err(result.unsigned_abs() as i32);
            }
        }
        Ok(())
    }
}

/// Work that makes this call.
pub fn calls(call: impl FnMut() -> i64 + 'static) -> io::Result<Box<dyn Work>> {
    Ok(Box::new(Calls(call)))
}

/// The first negative result of two calls that belong together.
pub fn both(first: i64, second: i64) -> i64 {
    if first < 0 { first } else { second.min(0) }
}

/// Writes so many bytes to one descriptor and reads them from another; EIO unless the kernel moved all, both times.
#[inline(always)]
pub fn pass(give: i32, take: i32, bytes: &mut [u8]) -> i64 {
    let (buffer, length) = (bytes.as_mut_ptr() as u64, bytes.len() as u64);
    // SAFETY: the kernel reads so many bytes.
    let wrote = unsafe { call(libc::SYS_write, [give as u64, buffer, length, 0]) };
    // SAFETY: the kernel writes at most so many bytes.
    let read = unsafe { call(libc::SYS_read, [take as u64, buffer, length, 0]) };
    let moved = both(wrote, read);
    if moved == 0 && (wrote, read) != (length as i64, length as i64) { -i64::from(libc::EIO) } else { moved }
}
