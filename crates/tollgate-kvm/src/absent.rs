//! KVM on other architectures, where it cannot run an x86-64 guest.

use std::convert::Infallible;

use crate::{Calibration, Guest, KvmError, Left};

/// No value of this type exists.
#[derive(Debug)]
pub struct Kvm(Infallible);

#[expect(missing_docs, reason = "they are those of x86-64")]
impl Kvm {
    /// # Errors
    /// Always: the guests are x86-64 programs.
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
