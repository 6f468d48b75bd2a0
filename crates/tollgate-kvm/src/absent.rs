//! KVM of another architecture, which runs no guest of x86-64.

use std::convert::Infallible;

use crate::{Calibration, Guest, KvmError, Left};

/// There is none.
#[derive(Debug)]
pub struct Kvm(Infallible);

#[expect(missing_docs, reason = "they are those of x86-64")]
impl Kvm {
    /// # Errors
    /// Always: its guests are of x86-64.
    pub fn open() -> Result<Self, KvmError> {
        let why = format!(
            "its guests here are programs of x86-64, and this processor is of {}",
            std::env::consts::ARCH
        );
        Err(KvmError::Unavailable { why })
    }

    pub fn calibrate(&self) -> &Calibration {
        match self.0 {}
    }

    /// # Errors
    /// It is never called.
    pub fn run(&self, _: Guest<'_>) -> Result<Left, KvmError> {
        match self.0 {}
    }
}
