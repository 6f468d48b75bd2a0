use crate::machine::cpu;

/// Keeps this thread off one processor while it lives.
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

    /// Calls `work` with all processors allowed: a process that it starts inherits them.
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
