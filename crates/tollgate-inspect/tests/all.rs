//! Machines: this one, captured ones and made-up ones.

mod arm64;
mod captured;
mod inputs;
mod live;
mod machines;
mod running_config;
