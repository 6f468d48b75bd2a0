//! One start of a program, up to its entry point.
//!
//! By then the loader has finished and shared libraries have run their initializers, but none of the program's own instructions
//! has been executed. Then its process is made to call brk(2) and mmap(2), and ends.

use std::{fs::File, io::Read};

use tollgate_arch::registers::{AFTER_BREAKPOINT, BREAKPOINT, Registers, SYSTEM_CALL};

use super::child::Program;
use super::initial::{Initial, MOST_WORDS};
use super::traced::Traced;
use super::{LARGE, NoStart, Region, SMALL, Sighting, maps};

/// `INT 0x80`, in 32-bit code of x86.
const CALL_32: &[u8] = &[0xcd, 0x80];
/// `brk` and `mmap2` in the 32-bit table.
const BRK_32: u64 = 45;
const MMAP2_32: u64 = 192;
const MOST_MAPS: u64 = 4 << 20;

pub(super) fn observe(
    program: &Program,
    stop: &dyn Fn() -> bool,
) -> Result<(Sighting, Option<String>), NoStart> {
    let child = program.start().map_err(|error| NoStart::Failed("fork", error))?;
    match Traced::executed(child, stop) {
        Ok(traced) => look(traced),
        // It failed before execve(2) succeeded, and the child recorded why.
        Err(why) => Err(match program.refused() {
            Some(("ptrace", error)) => NoStart::NotTraced(error),
            Some((call, error)) => NoStart::Failed(call, error),
            None => why,
        }),
    }
}

fn look(mut traced: Traced) -> Result<(Sighting, Option<String>), NoStart> {
    let mut sighting = Sighting::default();
    let first = traced.registers()?;
    let initial = initial(&traced, first.stack(), first.is_32_bit())?;
    let entry = initial.entry.ok_or(NoStart::Unclear("the kernel did not say where its entry point is"))?;
    sighting.note(Region::Stack, Some(first.stack()));
    sighting.note(Region::Arguments, initial.arguments);
    sighting.note(Region::Code, Some(entry));
    sighting.note(Region::Loader, initial.base);
    sighting.note(Region::Vdso, initial.vdso);
    let mut registers = first;
    if first.instruction() != entry {
        traced.write(entry, BREAKPOINT)?;
        registers = traced.run_to(entry + AFTER_BREAKPOINT)?;
    }
    let is_32_bit = registers.is_32_bit();
    sighting.note(Region::ThreadStorage, Some(registers.thread_storage()));
    let maps = maps_of(traced.pid());
    let library = maps::library(&maps, entry, initial.base.unwrap_or(0));
    sighting.note(Region::Libraries, library.map(|(start, _)| start));
    let library = library.map(|(_, path)| path.to_owned());
    let call = if is_32_bit { CALL_32 } else { SYSTEM_CALL };
    traced.write(entry, &[call, BREAKPOINT].concat())?;
    let end = entry + call.len() as u64 + AFTER_BREAKPOINT;
    let mut caller = Caller { traced, registers, entry, end, is_32_bit };
    sighting.note(Region::Heap, caller.brk()?);
    sighting.note(Region::Mapping, caller.map(SMALL)?);
    sighting.note(Region::LargeMapping, caller.map(LARGE)?);
    Ok((sighting, library))
}

fn initial(traced: &Traced, stack: u64, is_32_bit: bool) -> Result<Initial, NoStart> {
    let size = if is_32_bit { 4 } else { 8 };
    let mut words = 512;
    loop {
        let bytes = traced.read(stack, words * size)?;
        let number = |word: &[u8]| word.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        match Initial::parse(bytes.chunks_exact(size).map(number)) {
            Some(initial) => return Ok(initial),
            None if bytes.len() < words * size || words >= MOST_WORDS => {
                return Err(NoStart::Unclear("its initial stack has no end"));
            }
            None => words *= 4,
        }
    }
}

fn maps_of(pid: libc::pid_t) -> String {
    let mut bytes = Vec::new();
    let read =
        File::open(format!("/proc/{pid}/maps")).and_then(|file| file.take(MOST_MAPS).read_to_end(&mut bytes));
    read.map(|_| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// A process at its entry point, where its first instructions were replaced by a system call and a breakpoint.
struct Caller<'a> {
    traced: Traced<'a>,
    registers: Registers,
    entry: u64,
    end: u64,
    is_32_bit: bool,
}

impl Caller<'_> {
    /// The end of its heap, which is still the beginning.
    fn brk(&mut self) -> Result<Option<u64>, NoStart> {
        let number = if self.is_32_bit { BRK_32 } else { libc::SYS_brk as u64 };
        self.call(number, [0; 6])
    }

    fn map(&mut self, bytes: u64) -> Result<Option<u64>, NoStart> {
        let number = if self.is_32_bit { MMAP2_32 } else { libc::SYS_mmap as u64 };
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        self.call(number, [0, bytes, protection, flags, u64::MAX, 0])
    }

    fn call(&mut self, number: u64, arguments: [u64; 6]) -> Result<Option<u64>, NoStart> {
        let mut registers = self.registers;
        registers.prepare_call(number, arguments);
        registers.go_to(self.entry);
        self.traced.set_registers(&registers)?;
        let answer = self.traced.run_to(self.end)?.result();
        let address = if self.is_32_bit { u64::from(answer as u32) } else { answer.cast_unsigned() };
        Ok(Some(address).filter(|_| !(-4095..0).contains(&answer)))
    }
}
