//! What it costs to use files: to read what is in memory and what is not, to write, and all that is usually hidden
//! around it.

use crate::probe::{Means, Suite};

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
    probes: &[
        &read::PROBE,
        &direct_read::PROBE,
        &uring_read::PROBE,
        &write::PROBE,
        &sync::FSYNC,
        &sync::FDATASYNC,
        &open::PROBE,
        &stat::PROBE,
        &create::PROBE,
        &rename::PROBE,
        &unlink::PROBE,
        &close_after_write::PROBE,
        &small_file::PROBE,
    ],
    twin: None,
    means: Means::Rounds,
};
