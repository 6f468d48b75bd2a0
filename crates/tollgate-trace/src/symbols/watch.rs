//! Keeps what processes map, in a thread beside the trace.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tollgate_os::perf::records::Records;
use tollgate_os::signals;

use super::images::Images;

/// How often the kernel's rings are emptied. Each has room for what some hundred programs map.
const EVERY: Duration = Duration::from_millis(20);

/// The thread. It ends with this.
pub(crate) struct Watch {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Images>>,
}

impl Watch {
    /// Begins to keep what processes on these processors map from now on.
    ///
    /// # Errors
    /// See [`Records::begin`]; and where no thread can be made.
    pub fn begin(processors: impl Iterator<Item = usize>) -> io::Result<Self> {
        let records = Records::begin(processors)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_over);
        // Signals are for the thread that traces.
        let _mask = signals::Set::all().block_only_for_now();
        let thread = thread::Builder::new().spawn(move || keep(records, &told))?;
        Ok(Self { is_over, thread: Some(thread) })
    }

    /// All that was recorded until now.
    pub fn end(mut self) -> Images {
        self.join().unwrap_or_default()
    }

    fn join(&mut self) -> Option<Images> {
        self.is_over.store(true, Ordering::Release);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.join();
    }
}

fn keep(mut records: Records, is_over: &AtomicBool) -> Images {
    let mut images = Images::default();
    loop {
        // What was recorded before the end was told is read once more.
        let is_last = is_over.load(Ordering::Acquire);
        records.read(&mut |record| images.record(record));
        if is_last {
            return images;
        }
        thread::park_timeout(EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_is_known() {
        let processors = tollgate_os::affinity::allowed(0).unwrap_or_default();
        let watch = match Watch::begin(processors.into_iter()) {
            Ok(watch) => watch,
            Err(error) => return println!("skipped: no records here: {error}"),
        };
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(watch.end().knows(pid));
    }
}
