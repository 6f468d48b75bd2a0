use std::time::{Duration, Instant};

use crate::{LabError, Machine};

/// Checks that this program has the guest, which everything but reading records of a serial port needs.
///
/// # Errors
/// [`LabError::NoGuest`] on any architecture but x86-64.
pub fn expect_guest() -> Result<(), LabError> {
    if cfg!(target_arch = "x86_64") { Ok(()) } else { Err(LabError::NoGuest) }
}

pub(crate) fn fits(image: &[u8], base: u64, machine: Machine) -> Result<(), LabError> {
    expect_guest()?;
    let end = base.checked_add(image.len() as u64);
    if end.is_some_and(|end| end <= machine.memory as u64) {
        return Ok(());
    }
    Err(LabError::TooLarge { image: image.len(), base, memory: machine.memory })
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// Formats an error without its number: `No such file or directory`.
pub(crate) fn plainly(error: impl Into<std::io::Error>) -> String {
    tollgate_model::text::plainly(&error.into())
}

/// A time budget for several runs: each gets its own patience, but at most the remaining time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    started: Instant,
    whole: Duration,
}

impl Budget {
    pub(crate) fn new(whole: Duration) -> Self {
        Self { started: Instant::now(), whole }
    }

    pub(crate) fn left(&self) -> Duration {
        self.whole.saturating_sub(self.started.elapsed())
    }

    /// Limits the machine's patience to the remaining time; `None` if none is left.
    pub(crate) fn limit(&self, machine: Machine) -> Option<Machine> {
        let left = self.left();
        (!left.is_zero()).then(|| Machine { patience: machine.patience.min(left), ..machine })
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "x86_64")]
    use proptest::prelude::*;

    use super::*;

    fn machine(memory: usize) -> Machine {
        Machine { memory, vendor: None, patience: Duration::from_secs(1), instructions: 1 }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn an_image_fits_to_its_last_byte() {
        assert!(fits(&[0; 16], 0xf0, machine(0x100)).is_ok());
        let refused = fits(&[0; 17], 0xf0, machine(0x100)).unwrap_err().to_string();
        assert_eq!(refused, "an image of 17 bytes at f0 does not fit into 256 bytes of memory");
        assert!(fits(&[], u64::MAX, machine(0x100)).is_err());
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[test]
    fn no_image_fits_elsewhere() {
        assert!(matches!(fits(&[], 0, machine(0x100)), Err(LabError::NoGuest)));
    }

    #[test]
    fn a_budget_is_shared() {
        let budget = Budget::new(Duration::from_secs(100));
        assert_eq!(budget.limit(machine(1)).unwrap().patience, Duration::from_secs(1));
        let spent = Budget::new(Duration::from_millis(1));
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!((spent.left(), spent.limit(machine(1))), (Duration::ZERO, None));
    }

    #[cfg(target_arch = "x86_64")]
    proptest! {
        #[test]
        fn no_address_overflows(len in 0usize..64, base: u64, memory: usize) {
            let fits = fits(&vec![0; len], base, machine(memory)).is_ok();
            prop_assert_eq!(fits, u128::from(base) + len as u128 <= memory as u128);
        }
    }
}
