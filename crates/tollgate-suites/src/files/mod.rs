use crate::prelude::*;

mod aligned;
mod alignment;
mod block;
mod close_after_write;
mod create;
mod data;
pub(crate) mod data_dir;
mod direct_read;
pub(crate) mod large;
mod names;
mod open;
pub(crate) mod placement;
mod queue;
mod read;
pub(crate) mod refusal;
mod rename;
pub(crate) mod residency;
mod single;
mod small_file;
mod stat;
mod sync;
mod unlink;
mod uring_read;
mod write;

pub(crate) static SUITE: Suite = Suite {
    name: "files",
    about: "File reads, writes, syncs, and calls on names.",
    benchmarks: &[
        &read::BENCHMARK,
        &direct_read::BENCHMARK,
        &uring_read::BENCHMARK,
        &queue::BENCHMARK,
        &write::BENCHMARK,
        &sync::FSYNC,
        &sync::FDATASYNC,
        &open::BENCHMARK,
        &stat::BENCHMARK,
        &create::BENCHMARK,
        &rename::BENCHMARK,
        &unlink::BENCHMARK,
        &close_after_write::BENCHMARK,
        &small_file::BENCHMARK,
        &large::WRITTEN,
        &large::READS,
    ],
};
