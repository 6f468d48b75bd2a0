//! What it costs to leave a program by a fault, and what lowers it: the instruction that the processor does
//! not know, the page that is not there, the signal that a handler answers, and the ways around each of them.

use crate::probe::{Means, Suite};

mod alignment;
mod branch;
mod breakpoint;
mod cow_fault;
mod divide;
mod file_fault;
mod fresh_page;
mod general_protection;
mod handler;
mod imul;
mod invalid_opcode;
mod locked;
mod memory;
mod minor_fault;
mod power;
mod segv;
mod signal_install;
mod signal_self;
mod sigreturn;
mod single_step;
#[cfg(test)]
mod tests;
mod touched;
mod userfaultfd;

/// The traps.
pub(crate) static SUITE: Suite = Suite {
    name: "traps",
    about: "Leaving a program by a fault, and what lowers the price.",
    probes: &[
        &imul::PROBE,
        &branch::PROBE,
        &invalid_opcode::PROBE,
        &breakpoint::PROBE,
        &divide::PROBE,
        &general_protection::PROBE,
        &segv::PROBE,
        &single_step::PROBE,
        &alignment::PROBE,
        &signal_install::PROBE,
        &signal_self::PROBE,
        &sigreturn::PROBE,
        &minor_fault::PROBE,
        &cow_fault::PROBE,
        &file_fault::PROBE,
        &fresh_page::PROBE,
        &userfaultfd::PROBE,
    ],
    twin: None,
    means: Means::Rounds,
};
