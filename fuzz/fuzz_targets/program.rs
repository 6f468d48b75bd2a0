//! Any bytes as a program for the lab: as an ELF file, as a flat binary, and what is taken in an archive for the kernel.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_lab::system::{Archive, Program, Timer, foreign};

fuzz_target!(|bytes: &[u8]| {
    let elf = Program::elf("fuzz", bytes).ok();
    for program in elf.into_iter().chain(Program::flat("fuzz", bytes)) {
        let _ = foreign(&program);
        let _ = Archive::new(&[program], Timer::Usual);
    }
});
