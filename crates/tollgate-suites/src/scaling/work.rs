//! Work out of single calls.

use std::io;

use tollgate_engine::users::Work;

/// A call that is made again and again: its result, or a negative error number.
struct Calls<F>(F);

impl<F: FnMut() -> i64> Work for Calls<F> {
    fn make(&mut self, times: u64) -> Result<(), i32> {
        for _ in 0..times {
            let result = (self.0)();
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
