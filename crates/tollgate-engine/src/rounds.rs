//! A run in one environment, from calibration to findings. [`measure`] is the whole run; [`schedule`] and [`case_state`] have the
//! cases of one suite and the order of their batches, [`commands`] the whole commands of workloads.

pub(crate) mod case_state;
pub(crate) mod commands;
pub(crate) mod measure;
pub(crate) mod schedule;
