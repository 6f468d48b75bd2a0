//! Records what processes map, in a separate thread during the trace.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tollgate_os::perf::records::Records;
use tollgate_os::signals;

use super::images::Images;

/// How often the kernel's ring buffers are emptied. Each has room for what some hundred programs map.
const EVERY: Duration = Duration::from_millis(20);

/// The recording thread, which is joined on drop.
pub(crate) struct Watch {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Images>>,
}

impl Watch {
    /// Begins to record what processes on these processors map.
    ///
    /// # Errors
    /// See [`Records::begin`]; also if no thread can be created.
    pub fn begin(processors: impl Iterator<Item = usize>) -> io::Result<Self> {
        let records = Records::begin(processors)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_over);
        // Signals are for the tracing thread.
        let _mask = signals::Set::all().block_only_for_now();
        let thread = thread::Builder::new().spawn(move || keep(records, &told))?;
        Ok(Self { is_over, thread: Some(thread) })
    }

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
        // A last read takes what was recorded before the stop.
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
