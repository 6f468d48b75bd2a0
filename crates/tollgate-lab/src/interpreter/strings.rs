//! MOVS, STOS, LODS, SCAS and CMPS, and their repetition.

use iced_x86::Mnemonic as M;
use tollgate_x86::Rflags;

use super::arithmetic::mask;
use super::decoded::{Decoded, Operand, RCX, Repeat, What};
use super::state::{Done, Processor};

/// Repetitions that are made at a time. Then the instruction begins again, as after an interrupt, so that no count keeps the
/// run from ending.
const AT_A_TIME: u32 = 64;

impl Decoded {
    /// Returns whether it is a string instruction other than INS and OUTS. (MOVSD and CMPSD are SSE instructions as well.)
    pub(super) fn is_string(&self) -> bool {
        let to_ports = matches!(self.mnemonic, M::Insb | M::Insw | M::Insd | M::Outsb | M::Outsw | M::Outsd);
        self.code.is_string_instruction() && !to_ports
    }

    fn compares(&self) -> bool {
        matches!(
            self.mnemonic,
            M::Scasb | M::Scasw | M::Scasd | M::Scasq | M::Cmpsb | M::Cmpsw | M::Cmpsd | M::Cmpsq
        )
    }
}

impl Processor {
    /// Executes a string instruction, or the repetitions that are made at a time. Each repetition counts as an instruction,
    /// and so does the check that finds a count of 0, as with QEMU's `-icount`. An interrupt may come between two.
    pub(super) fn string(&mut self, i: &Decoded) -> Done {
        let Some(repeat) = i.repeat else { return self.string_once(i) };
        let at_a_time = if self.flags.has(Rflags::TF) { 1 } else { AT_A_TIME };
        for at in 1..=at_a_time {
            let count = self.register(RCX) & mask(i.address);
            if count == 0 {
                return Ok(());
            }
            self.string_once(i)?;
            self.set_register(RCX, 0, i.address, count - 1);
            let equal = self.flags.has(Rflags::ZF);
            if i.compares() && equal != (repeat == Repeat::WhileEqual) {
                return Ok(());
            }
            if at == at_a_time || self.budget == 0 || self.now() >= self.ports.attention() {
                break;
            }
            self.budget -= 1;
            self.counts.instructions += 1;
        }
        self.rip = self.start;
        Ok(())
    }

    fn string_once(&mut self, i: &Decoded) -> Done {
        let [first, second, _] = &i.operands;
        if i.compares() {
            // SCAS compares the accumulator, CMPS the source, with the bytes at ES:RDI.
            let (a, b) = (self.get(first)?, self.get(second)?);
            self.flags.subtract(a, b, false, first.bytes);
        } else {
            let value = self.get(second)?;
            self.put(first, value)?;
        }
        self.advance(first);
        self.advance(second);
        Ok(())
    }

    /// Advances RSI or RDI, backwards if DF is set.
    fn advance(&mut self, operand: &Operand) {
        if let What::Memory(address) = operand.what {
            let step = u64::from(operand.bytes);
            let old = self.register(address.base);
            let new =
                if self.flags.has(Rflags::DF) { old.wrapping_sub(step) } else { old.wrapping_add(step) };
            self.set_register(address.base, 0, address.bytes, new);
        }
    }
}
