use crate::prelude::*;

mod alignment;
mod branch;
mod breakpoint;
mod cow_fault;
mod divide;
mod emulator;
mod file_fault;
mod fresh_page;
mod general_protection;
mod handler;
mod id_register;
mod imul;
mod invalid_opcode;
mod locked;
mod memory;
mod minor_fault;
mod module_emulation;
mod opcode;
mod power;
mod returns;
mod segv;
mod signal_install;
mod signal_self;
mod sigreturn;
mod single_step;
#[cfg(test)]
mod tests;
mod touched;
mod userfaultfd;

pub use invalid_opcode::needs_kernel_module;

pub(crate) static SUITE: Suite = Suite {
    name: "traps",
    about: "Exceptions, page faults and signals, and faster alternatives.",
    benchmarks: &[
        &imul::BENCHMARK,
        &branch::BENCHMARK,
        &invalid_opcode::BENCHMARK,
        &breakpoint::BENCHMARK,
        &id_register::BENCHMARK,
        &divide::BENCHMARK,
        &general_protection::BENCHMARK,
        &segv::BENCHMARK,
        &single_step::BENCHMARK,
        &alignment::BENCHMARK,
        &signal_install::BENCHMARK,
        &signal_self::BENCHMARK,
        &sigreturn::BENCHMARK,
        &minor_fault::BENCHMARK,
        &cow_fault::BENCHMARK,
        &returns::BENCHMARK,
        &file_fault::BENCHMARK,
        &fresh_page::BENCHMARK,
        &userfaultfd::BENCHMARK,
    ],
};
