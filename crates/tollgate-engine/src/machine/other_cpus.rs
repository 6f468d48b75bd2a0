//! Keeps a thread that waits off the processor on which others measure.

use crate::machine::cpu;

/// While it lives, this thread stays off one processor.
pub(crate) struct OtherCpus {
    /// The processors that it could use before.
    pub before: Vec<usize>,
}

impl OtherCpus {
    pub fn except(cpu: Option<usize>, allowed: Vec<usize>) -> Self {
        let others: Vec<usize> = allowed.iter().copied().filter(|&other| Some(other) != cpu).collect();
        if !others.is_empty() {
            cpu::allow(&others);
        }
        Self { before: allowed }
    }

    /// Does something with all the processors: a process that is started inherits them.
    pub fn lifted<T>(&self, work: impl FnOnce() -> T) -> T {
        let own = cpu::allowed();
        cpu::allow(&self.before);
        let done = work();
        cpu::allow(&own);
        done
    }
}

impl Drop for OtherCpus {
    fn drop(&mut self) {
        cpu::allow(&self.before);
    }
}
