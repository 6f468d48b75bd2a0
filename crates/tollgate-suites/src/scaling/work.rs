use std::io;

use tollgate_arch::call::call;
use tollgate_engine::parallel::Work;

/// A repeated call: its result, or a negative error number.
struct Calls<F>(F);

impl<F: FnMut() -> i64> Calls<F> {
    /// Not inlined, like a program's wrapper: the kernel's returns take a different time in a loop without calls (`timed_loop!`).
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

pub fn calls(call: impl FnMut() -> i64 + 'static) -> io::Result<Box<dyn Work>> {
    Ok(Box::new(Calls(call)))
}

/// Returns the first negative result of two related calls.
pub fn both(first: i64, second: i64) -> i64 {
    if first < 0 { first } else { second.min(0) }
}

/// Writes the bytes to one descriptor and reads them from another. Returns EIO unless the kernel moved all of them both times.
#[inline(always)]
pub fn pass(give: i32, take: i32, bytes: &mut [u8]) -> i64 {
    let (buffer, length) = (bytes.as_mut_ptr() as u64, bytes.len() as u64);
    // SAFETY: `bytes` is valid for reading its own length.
    let wrote = unsafe { call(libc::SYS_write, [give as u64, buffer, length, 0]) };
    // SAFETY: `bytes` is valid for writing its own length.
    let read = unsafe { call(libc::SYS_read, [take as u64, buffer, length, 0]) };
    let moved = both(wrote, read);
    if moved == 0 && (wrote, read) != (length as i64, length as i64) { -i64::from(libc::EIO) } else { moved }
}
