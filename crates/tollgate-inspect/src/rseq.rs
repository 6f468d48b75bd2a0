//! Restartable sequences: the kernel's support. Source: rseq(2), kernel/rseq.c, getauxval(3).

use tollgate_model::Unknown;

use crate::calls;
use crate::machine::{Answer, Machine};

/// Since Linux 6.3, in asm/auxvec.h.
const AT_RSEQ_FEATURE_SIZE: u64 = 27;

/// In bytes.
pub(crate) fn feature_size(machine: &Machine) -> Answer<i64> {
    let size =
        machine.call("getauxval(3) AT_RSEQ_FEATURE_SIZE", || Ok(calls::auxiliary(AT_RSEQ_FEATURE_SIZE)));
    size.and_then(|size| match size.value {
        0 => Err(Unknown::Absent(format!("{}: no such entry, as before Linux 6.3", size.source))),
        _ => Ok(size),
    })
}
