//! Configurations of kernels.

mod configs;
mod generated;
mod inputs;
mod releases;
