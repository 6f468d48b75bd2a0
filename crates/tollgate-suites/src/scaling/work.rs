//! Work out of single calls.

use std::io;

use tollgate_engine::users::Work;

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
