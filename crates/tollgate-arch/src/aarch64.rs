//! arm64.

pub mod call;
