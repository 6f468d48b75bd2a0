//! Descriptors and MSRs.

mod inputs;
mod published;
