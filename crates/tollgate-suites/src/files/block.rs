use crate::prelude::*;

/// The block size of most file systems and databases, 4 KiB.
pub(super) const SMALL: usize = 4096;

pub(super) fn bytes(params: &Params) -> usize {
    match word(params, "block") {
        "128k" => 128 << 10,
        "1m" => 1 << 20,
        _ => SMALL,
    }
}
