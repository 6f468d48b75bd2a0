//! tollgate: measures, explains and compares what it costs to cross the boundaries of a machine.
//!
//! The command parses ([`args`]), calls one function of another crate per verb, and prints ([`out`], [`say`]). [`failure`]
//! decides every exit status.

#![forbid(unsafe_code)]

mod agent;
mod args;
mod bill;
mod boundaries;
mod claims;
mod compare;
mod complete;
mod config;
mod configuration;
mod decode;
mod destination;
mod doctor;
mod document;
mod environments;
mod examples;
mod explain;
mod export;
mod failure;
mod inspect;
mod lab;
mod list;
mod man;
mod named;
mod out;
mod ram;
mod report;
mod run;
mod runs;
mod say;
mod schedules;
#[cfg(test)]
mod schemas;
mod show;
mod size;
mod storage;
mod store;
mod time;
mod trace;
mod versus;

use std::process::ExitCode;

use rustix::process::{Resource, getrlimit};

fn main() -> ExitCode {
    // Before anything that the user names is read.
    let given_up = match tollgate_os::privileges::give_up() {
        Ok(given_up) => given_up,
        Err(error) => return failure::conclude(Err(failure::Failure::input(error.to_string()))),
    };
    tollgate_engine::interrupt::expect_children();
    // A measuring process is this program too, and parses no arguments.
    tollgate_engine::serve_if_worker(tollgate_suites::find);
    tollgate_environments::serve_if_init();
    tollgate_engine::interrupt::ignore_file_size_signal();
    if let Err(failure) = expect_stack() {
        return failure::conclude(Err(failure));
    }
    if !given_up.is_empty() {
        let names = given_up.join(", ");
        say::say(&format!(
            "these capabilities of this program's file are not used, since they do not serve to trace a command: {names}"
        ));
    }
    failure::conclude(run_verb())
}

/// Less than this is not enough for the arguments alone.
const LEAST_STACK: u64 = 512 << 10;

/// Checks that the stack suffices: otherwise the kernel ends the program by SIGSEGV.
fn expect_stack() -> Result<(), failure::Failure> {
    match getrlimit(Resource::Stack).current {
        Some(bytes) if bytes < LEAST_STACK => Err(failure::Failure::input(format!(
            "the stack limit is {} KiB, but {} KiB are needed; raise it with `ulimit -s {1}`",
            bytes >> 10,
            LEAST_STACK >> 10
        ))),
        _ => Ok(()),
    }
}

/// Parses the arguments and does what they request. Kept out of line, so that its frame is not allocated if the stack is too
/// small.
#[inline(never)]
fn run_verb() -> Result<(), failure::Failure> {
    if complete::serve()? {
        return Ok(());
    }
    args::parse()?.execute()
}
