//! Generated inputs: each reader soon returns an answer, for any bytes.
//!
//! `TOLLGATE_FUZZ_INPUTS` sets the number of inputs for each reader:
//! `TOLLGATE_FUZZ_INPUTS=10000000 cargo test --release -p tollgate-kconfig --test all -- inputs:: --nocapture`.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use crate::generated;
use generated::each;
use tollgate_kconfig::read;

fn is_configuration(bytes: &[u8]) -> bool {
    read(bytes).is_ok()
}

#[test]
fn configurations() {
    let seeds: [&[u8]; 2] = [include_bytes!("configs/small.config"), include_bytes!("configs/other.config")];
    each("configurations", 4, &seeds.map(<[u8]>::to_vec), is_configuration);
}
