//! Communication between threads and between processes. A [`channel`] carries messages; the peer is at its other end.

use crate::prelude::*;

mod cases;
mod channel;
mod connect;
mod copy;
mod endpoint;
mod epoll_ctl;
mod file_lock;
mod message;
mod peer;
mod round_trip;
mod talk;
#[cfg(test)]
mod tests;
mod throughput;
mod wait;

pub(crate) static SUITE: Suite = Suite {
    name: "ipc",
    about: "Communication between threads and between processes.",
    benchmarks: &[
        &connect::BENCHMARK,
        &wait::BENCHMARK,
        &epoll_ctl::BENCHMARK,
        &copy::BENCHMARK,
        &file_lock::BENCHMARK,
        &round_trip::BENCHMARK,
        &throughput::BENCHMARK,
    ],
};
