use crate::prelude::*;

/// The block size of most file systems and databases, 4 KiB.
pub(super) const SMALL: usize = 4096;

words! {
    enum Block("block"): usize { Small = "4k" => SMALL, Middle = "128k" => 128 << 10, Large = "1m" => 1 << 20 }
}

pub(super) fn bytes(params: &Params) -> Result<usize> {
    Block::try_from(params).map(Block::value)
}

/// For [`Benchmark::bytes`].
pub(super) fn moved(params: &Params) -> Option<u64> {
    bytes(params).ok().map(|bytes| bytes as u64)
}
