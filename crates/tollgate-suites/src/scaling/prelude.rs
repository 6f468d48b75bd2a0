pub(super) use std::io;
pub(super) use std::os::fd::AsRawFd;

pub(super) use tollgate_engine::parallel::{Operation, Seat, Work};

pub(super) use super::cases::{
    SCALED, crossed_with_others, every_kind, numbers, processes_only, threads_at_both_ends,
};
pub(super) use super::instance::{instance, instance_on_files};
pub(super) use super::work::{both, calls, pass};
pub(super) use crate::prelude::*;
