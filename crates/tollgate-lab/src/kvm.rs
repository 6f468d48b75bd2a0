#[cfg(test)]
mod tests;

use tollgate_kvm::{Calibration, Guest, Kvm, KvmError, Left};

use crate::host::fits;
use crate::{Engine, LabError, Machine, Output, Provenance};

impl Engine for Kvm {
    /// Ignores `machine.vendor` and `machine.instructions`. The thread inherits the caller's affinity, so a pinned
    /// caller pins it as well.
    fn run(&self, image: &[u8], base: u64, entry: u64, machine: Machine) -> Result<Output, LabError> {
        fits(image, base, machine)?;
        let provenance = provenance(self.calibrate());
        let guest = Guest { image, base, entry, memory: machine.memory, patience: machine.patience };
        let Left { serial, memory, cut_short } = Kvm::run(self, guest)?;
        Ok(Output { serial, provenance, cut_short, memory: Some(memory), counts: None, unknown: Vec::new() })
    }
}

pub(crate) fn provenance(calibration: &Calibration) -> Provenance {
    if calibration.is_emulated() {
        Provenance::KvmEmulated { why: calibration.to_string() }
    } else {
        Provenance::Kvm
    }
}

impl From<KvmError> for LabError {
    fn from(error: KvmError) -> Self {
        match error {
            KvmError::TooLarge { image, base, memory } => Self::TooLarge { image, base, memory },
            KvmError::Unavailable { why } => Self::Unavailable { engine: "KVM", why },
        }
    }
}
