//! What it costs to use files: to read what is in memory and what is not, to write, and all that is usually hidden
//! around it.

use tollgate_engine::benchmark::{Means, Suite};

mod aligned;
mod alignment;
mod block;
pub(crate) mod certificate;
mod close_after_write;
mod create;
mod data;
mod direct_read;
mod names;
mod open;
pub(crate) mod place;
mod read;
pub(crate) mod refusal;
mod rename;
mod single;
mod small_file;
mod stat;
mod sync;
mod unlink;
mod uring_read;
mod write;

/// The files.
pub(crate) static SUITE: Suite = Suite {
    name: "files",
    about: "Reading and writing files, and what is usually hidden around it.",
    benchmarks: &[
        &read::BENCHMARK,
        &direct_read::BENCHMARK,
        &uring_read::BENCHMARK,
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
    ],
    control: None,
    means: Means::Rounds,
};
