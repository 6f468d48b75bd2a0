//! One instruction after the other: fetched, executed, and its exception delivered.

use std::rc::Rc;
use std::time::{Duration, Instant};

use iced_x86::{Decoder, DecoderError, DecoderOptions};
use tollgate_x86::Rflags;
use tollgate_x86::walk::{Fault, SegmentRegister};

use super::decoded::Decoded;
use super::state::{Done, End, Processor, Trap};
use super::tlb::{Access, is_canonical};
use super::watch::{Watcher, written};
use crate::host::hex;

/// No instruction is longer. SDM 2A, "Instruction format".
const LONGEST: usize = 15;
/// The clock is read after so many steps.
const GLANCE: u64 = 1 << 14;

impl Processor {
    /// Runs until the guest ends it, or after so many instructions or so much time.
    pub(super) fn run(&mut self, most: u64, patience: Duration, mut watcher: Option<Watcher>) -> End {
        let begin = Instant::now();
        // Begun instructions count, completed or not: an instruction that faults forever ends as well.
        for begun in 0..most {
            if begun % GLANCE == 0 && begin.elapsed() >= patience {
                let seconds = patience.as_secs_f64();
                return self.cut_short(&format!("stopped after {seconds} s"), self.rip);
            }
            let step = match &mut watcher {
                None => self.step(),
                Some(watcher) => watcher.step(self),
            };
            if let Err(end) = step {
                return end;
            }
        }
        self.cut_short(&format!("stopped after {most} instructions"), self.rip)
    }

    /// Executes one instruction, or delivers its exception.
    #[inline]
    pub(super) fn step(&mut self) -> Result<(), End> {
        self.start = self.rip;
        if self.flags.has(Rflags::TF) {
            return Err(self.cut_short("single steps by RFLAGS.TF, which are not modelled", self.rip));
        }
        self.counts.instructions += 1;
        let done = self.fetch().and_then(|instruction| {
            self.rip = self.start.wrapping_add(instruction.length.into()) & self.address_mask();
            self.execute(&instruction)
        });
        match done {
            Ok(()) => Ok(()),
            Err(Trap::Refused(fault)) => self.raise(fault),
            Err(Trap::Fault(fault)) => {
                self.counts.instructions -= 1;
                self.raise(fault)
            }
            Err(Trap::End(End::CutShort(why))) => Err(End::CutShort(self.with_bytes(why))),
            Err(Trap::End(End::Asked)) => Err(End::Asked),
        }
    }

    fn raise(&mut self, fault: Fault) -> Result<(), End> {
        if let Some(record) = &mut self.record {
            record.exception = Some(fault);
        }
        self.deliver(fault)
    }

    /// The instruction at RIP.
    #[inline]
    fn fetch(&mut self) -> Done<Rc<Decoded>> {
        let is_64_bit = self.is_64_bit();
        let linear = if is_64_bit {
            self.demand(is_canonical(self.start))?;
            self.start
        } else {
            let code = self.hidden(SegmentRegister::Cs);
            if !code.descriptor.d {
                return Err(self.stop("16-bit code, which is not modelled"));
            }
            self.demand(self.start <= u64::from(code.descriptor.effective_limit()))?;
            code.base.wrapping_add(self.start) & 0xffff_ffff
        };
        let access = if self.cpl == 3 { Access::UserFetch } else { Access::KernelFetch };
        let physical = self.translate(linear, access).map_err(Trap::Fault)?;
        match self.memory.code.find(physical, is_64_bit) {
            Some(instruction) if self.record.is_none() => Ok(instruction),
            _ => self.decode(linear, physical, access),
        }
    }

    /// Decodes the instruction at a physical address, and keeps it if it does not go on in another page.
    #[cold]
    fn decode(&mut self, linear: u64, physical: u64, access: Access) -> Done<Rc<Decoded>> {
        let is_64_bit = self.is_64_bit();
        let in_page = LONGEST.min(0x1000 - (physical & 0xfff) as usize);
        let first = self.memory.slice(physical, in_page);
        if first.is_empty() {
            return Err(self.stop(&format!("code at {physical:x}, where there is no memory")));
        }
        let mut bytes = [0; LONGEST];
        bytes[..first.len()].copy_from_slice(first);
        let mut count = first.len();
        let (mut decoded, mut error) = decode(&bytes[..count], is_64_bit);
        let is_whole = error != DecoderError::NoMoreBytes;
        if !is_whole && in_page < LONGEST {
            let next = (linear & !0xfff).wrapping_add(0x1000);
            let next = self.translate(self.width().linear(next), access).map_err(Trap::Fault)?;
            let second = self.memory.slice(next, LONGEST - count);
            bytes[count..count + second.len()].copy_from_slice(second);
            count += second.len();
            (decoded, error) = decode(&bytes[..count], is_64_bit);
        }
        if error == DecoderError::NoMoreBytes {
            return Err(match count {
                LONGEST => self.protection(),
                _ => self.stop("an instruction that goes on where there is no memory"),
            });
        }
        let decoded = Rc::new(decoded);
        if is_whole && self.memory.code.find(physical, is_64_bit).is_none() {
            self.memory.code.keep(physical, is_64_bit, Rc::clone(&decoded));
        }
        if let Some(record) = &mut self.record {
            record.bytes = bytes[..usize::from(decoded.length).min(count)].to_vec();
        }
        Ok(decoded)
    }

    /// Adds the bytes at the instruction to why the run cannot go on.
    fn with_bytes(&mut self, why: String) -> String {
        let code = self.hidden(SegmentRegister::Cs).base;
        let linear = if self.is_64_bit() { self.start } else { code.wrapping_add(self.start) & 0xffff_ffff };
        let Ok(physical) = self.translate(linear, Access::KernelRead) else { return why };
        let in_page = LONGEST.min(0x1000 - (physical & 0xfff) as usize);
        let bytes = self.memory.slice(physical, in_page);
        let (decoded, _) = decode(bytes, self.is_64_bit());
        let bytes = &bytes[..usize::from(decoded.length).min(bytes.len())];
        match bytes {
            [] => why,
            bytes => format!("{why}: {} ({})", hex(bytes), written(bytes, self.is_64_bit(), self.start)),
        }
    }
}

/// Decodes bytes as if they lay at 0. Invalid bytes, an invalid LOCK included, are decoded as no instruction.
fn decode(bytes: &[u8], is_64_bit: bool) -> (Decoded, DecoderError) {
    let bitness = if is_64_bit { 64 } else { 32 };
    let mut decoder = Decoder::with_ip(bitness, bytes, 0, DecoderOptions::NONE);
    let instruction = decoder.decode();
    (Decoded::of(&instruction), decoder.last_error())
}
