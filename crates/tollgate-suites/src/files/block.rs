//! Block sizes in parameters.

use crate::prelude::*;

/// 4 KiB, the block of most file systems and databases.
pub(super) const SMALL: usize = 4096;

/// Bytes of the parameter `block`; 4 KiB where it has none.
pub(super) fn bytes(params: &Params) -> usize {
    match word(params, "block") {
        "128k" => 128 << 10,
        "1m" => 1 << 20,
        _ => SMALL,
    }
}
