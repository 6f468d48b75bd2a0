use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::machine::mapping::Mapping;

/// Tells the parent that a long batch makes progress, even from forks of the bench process. It keeps the memory mapped; the default
/// does nothing.
#[derive(Debug, Clone, Default)]
pub struct Heartbeat(Option<(Arc<Mapping>, usize)>);

impl Heartbeat {
    /// A heartbeat that counts at this offset of shared memory.
    ///
    /// # Safety
    /// An aligned word must be there, and every access to it must be atomic.
    pub(crate) unsafe fn at(memory: Arc<Mapping>, offset: usize) -> Self {
        Self(Some((memory, offset)))
    }

    /// Signals progress.
    pub fn beat(&self) {
        let Some((memory, offset)) = &self.0 else { return };
        // SAFETY: by the contract of `at`.
        let beats = unsafe { &*memory.address().add(*offset).cast::<AtomicU64>() };
        beats.fetch_add(1, Relaxed);
    }
}
