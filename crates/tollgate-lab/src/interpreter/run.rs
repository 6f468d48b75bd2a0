use std::rc::Rc;
use std::time::{Duration, Instant};

use iced_x86::{Decoder, DecoderError, DecoderOptions};
use tollgate_x86::Rflags;
use tollgate_x86::walk::{Exception, Fault, SegmentRegister};

use super::decoded::Decoded;
use super::state::{Done, End, Processor, Trap};
use super::tlb::{Access, is_canonical};
use super::watch::{Watcher, written};
use crate::engine::Unknown;
use crate::host::hex;

/// The longest instruction. SDM 2A, "Instruction format".
const LONGEST: usize = 15;
const GLANCE: u64 = 1 << 14;
/// Without BMI1 and LZCNT, TZCNT and LZCNT execute as BSF and BSR with an ignored prefix. Compilers rely on it.
const OPTIONS: u32 = DecoderOptions::NO_MPFX_0FBC | DecoderOptions::NO_MPFX_0FBD;
const DEBUG: Exception = Exception(1);

impl Processor {
    pub(super) fn run(&mut self, most: u64, patience: Duration, mut watcher: Option<Watcher>) -> End {
        let begin = Instant::now();
        self.budget = most;
        let mut steps = 0_u64;
        // Begun instructions count, completed or not, so an instruction that faults forever ends as well.
        while self.budget > 0 {
            if steps.is_multiple_of(GLANCE) && begin.elapsed() >= patience {
                let seconds = patience.as_secs_f64();
                return self.cut_short(&format!("stopped after {seconds} s"), self.rip);
            }
            steps += 1;
            self.budget -= 1;
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

    #[inline]
    pub(super) fn step(&mut self) -> Result<(), End> {
        self.start = self.rip;
        let held_back = std::mem::take(&mut self.shadow);
        if self.now() >= self.ports.attention() && self.is_asked() && !held_back {
            let vector = self.ports.acknowledge();
            return self.interrupt(vector);
        }
        let single = self.flags.has(Rflags::TF);
        self.counts.instructions += 1;
        let done = self.fetch().and_then(|instruction| {
            self.rip = self.start.wrapping_add(instruction.length.into()) & self.address_mask();
            self.execute(&instruction)?;
            if single { self.single_step(&instruction) } else { Ok(()) }
        });
        match done {
            Ok(()) => Ok(()),
            Err(Trap::Unknown(why)) => self.not_known(why),
            Err(Trap::Refused(fault)) => self.raise(fault),
            Err(Trap::Fault(fault)) => {
                self.counts.instructions -= 1;
                self.raise(fault)
            }
            Err(Trap::End(end)) => Err(end),
        }
    }

    #[cold]
    fn is_asked(&mut self) -> bool {
        let now = self.now();
        self.ports.pass(now) && self.flags.has(Rflags::IF)
    }

    /// HLT: time passes until an interrupt is requested.
    pub(super) fn halt(&mut self) -> Done {
        /// If the timer's output has an edge at all, it comes within this many changes.
        const CHANGES: u32 = 8;
        if !self.flags.has(Rflags::IF) {
            return Err(self.stop("HLT with interrupts off"));
        }
        for _ in 0..CHANGES {
            let now = self.now();
            if self.ports.pass(now) {
                return Ok(());
            }
            let Some(due) = self.ports.due() else { break };
            self.waited += due.saturating_sub(now);
        }
        Err(self.stop("HLT with interrupts on, but none can come"))
    }

    /// Raises #DB after an instruction that began with RFLAGS.TF set. SDM 3B, "Single-step exception condition": not after a
    /// software interrupt, which clears TF, nor after a load of SS; SYSCALL applies its flag mask first.
    #[cold]
    fn single_step(&mut self, instruction: &Decoded) -> Done {
        use iced_x86::Mnemonic as M;
        let exempt = match instruction.mnemonic {
            M::Int | M::Int1 | M::Int3 | M::Into => true,
            M::Syscall => !self.flags.has(Rflags::TF),
            _ => self.shadow,
        };
        if exempt {
            return Ok(());
        }
        // It is delivered after the instruction, which has completed.
        self.start = self.rip;
        Err(Trap::Refused(self.exception(DEBUG, None)))
    }

    /// Handles an instruction that is not modelled. In ring 3, if the guest has asked for it, an interrupt that
    /// nothing else raises reports the instruction; otherwise the run ends.
    #[cold]
    fn not_known(&mut self, why: String) -> Result<(), End> {
        let bytes = self.bytes_here();
        let vector = self.ports.unknown.filter(|_| self.cpl == 3);
        let Some(vector) = vector else {
            return Err(End::CutShort(match bytes.as_slice() {
                [] => why,
                bytes => {
                    format!("{why}: {} ({})", hex(bytes), written(bytes, self.is_64_bit(), self.start).1)
                }
            }));
        };
        self.counts.instructions -= 1;
        let text = written(&bytes, self.is_64_bit(), self.start).1;
        self.unknown.push(Unknown { rip: self.start, bytes, text });
        self.rip = self.start;
        self.interrupt(vector)
    }

    fn raise(&mut self, fault: Fault) -> Result<(), End> {
        if let Some(record) = &mut self.record {
            record.exception = Some(fault);
        }
        self.deliver(fault)
    }

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

    /// Decodes the instruction at a physical address, and caches it unless it continues in another page.
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
                _ => self.stop("an instruction that continues where there is no memory"),
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

    /// Returns the bytes of the instruction; none if they cannot be read.
    pub(super) fn bytes_here(&mut self) -> Vec<u8> {
        let code = self.hidden(SegmentRegister::Cs).base;
        let linear = if self.is_64_bit() { self.start } else { code.wrapping_add(self.start) & 0xffff_ffff };
        let Ok(physical) = self.translate(linear, Access::KernelRead) else { return Vec::new() };
        let in_page = LONGEST.min(0x1000 - (physical & 0xfff) as usize);
        let bytes = self.memory.slice(physical, in_page);
        let (decoded, _) = decode(bytes, self.is_64_bit());
        bytes[..usize::from(decoded.length).min(bytes.len())].to_vec()
    }
}

/// Decodes bytes as if they lay at 0. Invalid bytes, an invalid LOCK included, decode as no instruction.
fn decode(bytes: &[u8], is_64_bit: bool) -> (Decoded, DecoderError) {
    let bitness = if is_64_bit { 64 } else { 32 };
    let mut decoder = Decoder::with_ip(bitness, bytes, 0, OPTIONS);
    let instruction = decoder.decode();
    (Decoded::of(&instruction), decoder.last_error())
}
