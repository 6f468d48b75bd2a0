//! Executes data, arithmetic and conditional instructions; stack and jumps, strings and the system have their own files. SDM
//! 2, each instruction's "Operation".

use iced_x86::Mnemonic as M;
use tollgate_x86::Rflags;
use tollgate_x86::walk::Exception;

use super::arithmetic::{Division, Flags, Shift, divide, divide_signed, mask, sign_extend};
use super::decoded::{Decoded, NONE, Operand, RAX, RBX, RCX, RDX, What};
use super::state::{Done, Processor, Trap};

const DIVIDE_ERROR: Exception = Exception(0);

impl Processor {
    /// Executes an instruction. RIP is already the next one's address.
    #[inline]
    pub(super) fn execute(&mut self, i: &Decoded) -> Done {
        let [first, second, third] = &i.operands;
        let bytes = first.bytes;
        match i.mnemonic {
            M::Mov | M::Movzx => {
                let value = self.get(second)?;
                self.put(first, value)
            }
            M::Movsx | M::Movsxd => {
                let value = self.get(second)?;
                self.put(first, sign_extend(value, second.bytes))
            }
            M::Lea => match second.what {
                What::Memory(address) => self.put(first, self.offset(&address)),
                _ => Err(self.invalid_opcode()),
            },
            M::Xchg => {
                let (a, b) = (self.get(first)?, self.get(second)?);
                self.put(first, b)?;
                self.put(second, a)
            }
            M::Bswap => {
                let value = self.get(first)?;
                self.put(first, value.swap_bytes() >> (64 - 8 * u32::from(bytes)))
            }
            M::Add => self.binary(i, |flags, a, b, bytes| flags.add(a, b, false, bytes)),
            M::Adc => self.binary(i, |flags, a, b, bytes| flags.add(a, b, flags.has(Rflags::CF), bytes)),
            M::Sub => self.binary(i, |flags, a, b, bytes| flags.subtract(a, b, false, bytes)),
            M::Sbb => self.binary(i, |flags, a, b, bytes| flags.subtract(a, b, flags.has(Rflags::CF), bytes)),
            M::And => self.binary(i, |flags, a, b, bytes| flags.logic(a & b, bytes)),
            M::Or => self.binary(i, |flags, a, b, bytes| flags.logic(a | b, bytes)),
            M::Xor => self.binary(i, |flags, a, b, bytes| flags.logic(a ^ b, bytes)),
            M::Cmp => {
                let (a, b) = (self.get(first)?, self.get(second)? & mask(bytes));
                self.flags.subtract(a, b, false, bytes);
                Ok(())
            }
            M::Test => {
                let (a, b) = (self.get(first)?, self.get(second)? & mask(bytes));
                self.flags.logic(a & b, bytes);
                Ok(())
            }
            M::Inc => self.unary(first, |flags, a, bytes| flags.step(a, true, bytes)),
            M::Dec => self.unary(first, |flags, a, bytes| flags.step(a, false, bytes)),
            M::Neg => self.unary(first, |flags, a, bytes| flags.subtract(0, a, false, bytes)),
            M::Not => self.unary(first, |_, a, bytes| !a & mask(bytes)),
            M::Shl | M::Sal => self.binary(i, |flags, a, n, bytes| flags.shift(Shift::Left, a, n, bytes)),
            M::Shr => self.binary(i, |flags, a, n, bytes| flags.shift(Shift::Right, a, n, bytes)),
            M::Sar => self.binary(i, |flags, a, n, bytes| flags.shift(Shift::Arithmetic, a, n, bytes)),
            M::Rol => self.binary(i, |flags, a, n, bytes| flags.rotate(true, a, n, bytes)),
            M::Ror => self.binary(i, |flags, a, n, bytes| flags.rotate(false, a, n, bytes)),
            M::Rcl => self.binary(i, |flags, a, n, bytes| flags.rotate_through_carry(true, a, n, bytes)),
            M::Rcr => self.binary(i, |flags, a, n, bytes| flags.rotate_through_carry(false, a, n, bytes)),
            M::Shld | M::Shrd => {
                let (value, other, count) = (self.get(first)?, self.get(second)?, self.get(third)?);
                let mut flags = self.flags;
                let result = flags.shift_double(i.mnemonic == M::Shld, value, other, count, bytes);
                self.put_with(first, result, flags)
            }
            M::Mul => self.multiply(first, false),
            M::Imul if matches!(second.what, What::None) => self.multiply(first, true),
            M::Imul => {
                let factor = if matches!(third.what, What::None) { first } else { third };
                let (a, b) = (self.get(second)?, self.get(factor)?);
                let (low, _) = self.flags.multiply_signed(a, b & mask(bytes), bytes);
                self.put(first, low)
            }
            M::Div => self.divide(first, divide),
            M::Idiv => self.divide(first, divide_signed),
            M::Cbw => self.extend_accumulator(1),
            M::Cwde => self.extend_accumulator(2),
            M::Cdqe => self.extend_accumulator(4),
            M::Cwd => self.sign_into_rdx(2),
            M::Cdq => self.sign_into_rdx(4),
            M::Cqo => self.sign_into_rdx(8),
            M::Xadd => {
                let (a, b) = (self.get(first)?, self.get(second)?);
                let mut flags = self.flags;
                let sum = flags.add(a, b, false, bytes);
                // Memory is written first, because that may fault. If both operands are the same register, it keeps the sum.
                let mut writes = [(first, sum), (second, a)];
                if !matches!(first.what, What::Memory(_)) {
                    writes.reverse();
                }
                for (operand, value) in writes {
                    self.put(operand, value)?;
                }
                self.flags = flags;
                Ok(())
            }
            M::Cmpxchg => self.compare_exchange(first, second),
            M::Cmpxchg8b => self.compare_exchange_8(first),
            M::Bt | M::Bts | M::Btr | M::Btc => self.bit(i),
            M::Bsf | M::Bsr => self.scan(i),
            M::Xlatb => {
                let What::Memory(mut address) = first.what else { return Err(self.unknown()) };
                // The index is AL, not the whole register.
                (address.index, address.displacement) = (NONE, self.register(RAX) & 0xff);
                let value = self.load(address.segment, self.offset(&address), 1)?;
                self.set_register(RAX, 0, 1, value);
                Ok(())
            }
            M::Clc => self.set_flag(Rflags::CF, false),
            M::Stc => self.set_flag(Rflags::CF, true),
            M::Cmc => self.set_flag(Rflags::CF, !self.flags.has(Rflags::CF)),
            M::Cld => self.set_flag(Rflags::DF, false),
            M::Std => self.set_flag(Rflags::DF, true),
            // Fences exist without SSE2, which introduced them; nothing here is out of order.
            M::Nop | M::Pause | M::Lfence | M::Mfence | M::Sfence | M::Endbr64 | M::Endbr32 => Ok(()),
            _ if i.is_string() => self.string(i),
            // SETcc and CMOVcc; the operand of a jump is a target.
            _ if i.condition < 16 && matches!(first.what, What::Register(..) | What::Memory(_)) => {
                let holds = self.flags.condition(i.condition);
                if matches!(second.what, What::None) {
                    return self.put(first, holds.into());
                }
                // With 4 bytes, the upper half becomes 0 either way.
                let (value, old) = (self.get(second)?, self.get(first)?);
                self.put(first, if holds { value } else { old })
            }
            _ => self.execute_jump(i),
        }
    }

    #[inline]
    fn binary(&mut self, i: &Decoded, operation: impl FnOnce(&mut Flags, u64, u64, u8) -> u64) -> Done {
        let [first, second, _] = &i.operands;
        let (a, b) = (self.get(first)?, self.get(second)? & mask(first.bytes));
        let mut flags = self.flags;
        let result = operation(&mut flags, a, b, first.bytes);
        self.put_with(first, result, flags)
    }

    #[inline]
    fn unary(&mut self, operand: &Operand, operation: impl FnOnce(&mut Flags, u64, u8) -> u64) -> Done {
        let value = self.get(operand)?;
        let mut flags = self.flags;
        let result = operation(&mut flags, value, operand.bytes);
        self.put_with(operand, result, flags)
    }

    /// Sets an operand. The flags change only when nothing can fault any more.
    #[inline]
    fn put_with(&mut self, operand: &Operand, value: u64, flags: Flags) -> Done {
        self.put(operand, value)?;
        self.flags = flags;
        Ok(())
    }

    pub(super) fn set_flag(&mut self, flag: Rflags, on: bool) -> Done {
        self.flags.set(flag, on);
        Ok(())
    }

    /// MUL and IMUL of the accumulator: the product is in DX:AX, or for bytes in AX.
    fn multiply(&mut self, operand: &Operand, signed: bool) -> Done {
        let bytes = operand.bytes;
        let (a, b) = (self.register(RAX) & mask(bytes), self.get(operand)?);
        let multiply = if signed { Flags::multiply_signed } else { Flags::multiply };
        let (low, high) = multiply(&mut self.flags, a, b, bytes);
        self.set_pair(low, high, bytes);
        Ok(())
    }

    /// DIV and IDIV: quotient in AX and remainder in DX, or for bytes in AL and AH.
    fn divide(&mut self, operand: &Operand, divide: Division) -> Done {
        let bytes = operand.bytes;
        let by = self.get(operand)?;
        let low = self.register(RAX) & mask(bytes);
        let high = if bytes == 1 { self.register(RAX) >> 8 } else { self.register(RDX) } & mask(bytes);
        let (quotient, remainder) =
            divide(high, low, by, bytes).ok_or_else(|| self.fault(DIVIDE_ERROR, None))?;
        self.set_pair(quotient, remainder, bytes);
        Ok(())
    }

    fn set_pair(&mut self, low: u64, high: u64, bytes: u8) {
        self.set_register(RAX, 0, bytes, low);
        match bytes {
            1 => self.set_register(RAX, 8, 1, high),
            _ => self.set_register(RDX, 0, bytes, high),
        }
    }

    /// CBW, CWDE and CDQE double the width of the accumulator.
    fn extend_accumulator(&mut self, bytes: u8) -> Done {
        let value = sign_extend(self.register(RAX) & mask(bytes), bytes);
        self.set_register(RAX, 0, 2 * bytes, value);
        Ok(())
    }

    /// CWD, CDQ and CQO fill RDX with the accumulator's sign.
    fn sign_into_rdx(&mut self, bytes: u8) -> Done {
        let negative = (self.register(RAX) >> (8 * u32::from(bytes) - 1)) & 1 == 1;
        self.set_register(RDX, 0, bytes, if negative { u64::MAX } else { 0 });
        Ok(())
    }

    /// CMPXCHG. Memory is written either way.
    fn compare_exchange(&mut self, to: &Operand, from: &Operand) -> Done {
        let bytes = to.bytes;
        let (old, new) = (self.get(to)?, self.get(from)?);
        let expected = self.register(RAX) & mask(bytes);
        let mut flags = self.flags;
        flags.subtract(expected, old, false, bytes);
        let equal = flags.has(Rflags::ZF);
        if equal || matches!(to.what, What::Memory(_)) {
            self.put(to, if equal { new } else { old })?;
        }
        if !equal {
            self.set_register(RAX, 0, bytes, old);
        }
        self.flags = flags;
        Ok(())
    }

    /// CMPXCHG8B compares EDX:EAX with memory, and stores ECX:EBX. Only ZF changes.
    fn compare_exchange_8(&mut self, to: &Operand) -> Done {
        let pair = |high, low| self.register(high) << 32 | self.register(low) & 0xffff_ffff;
        let (expected, new) = (pair(RDX, RAX), pair(RCX, RBX));
        let old = self.get(to)?;
        let equal = old == expected;
        self.put(to, if equal { new } else { old })?;
        if !equal {
            self.set_pair(old, old >> 32, 4);
        }
        self.set_flag(Rflags::ZF, equal)
    }

    /// BT, BTS, BTR and BTC. With a memory operand, a register may name a bit far from the address.
    fn bit(&mut self, i: &Decoded) -> Done {
        let [first, second, _] = i.operands;
        let number = self.get(&second)?;
        let bits = 8 * u64::from(first.bytes);
        let mut place = first;
        if let (What::Memory(address), What::Register(..)) = (&mut place.what, second.what) {
            let words = sign_extend(number, second.bytes) as i64 >> bits.trailing_zeros();
            let distance = (words as u64).wrapping_mul(first.bytes.into());
            address.displacement = address.displacement.wrapping_add(distance);
        }
        let bit = 1 << (number & (bits - 1));
        let value = self.get(&place)?;
        match i.mnemonic {
            M::Bts => self.put(&place, value | bit)?,
            M::Btr => self.put(&place, value & !bit)?,
            M::Btc => self.put(&place, value ^ bit)?,
            _ => {}
        }
        self.set_flag(Rflags::CF, value & bit != 0)
    }

    /// BSF and BSR. If the source is zero, the destination is unchanged.
    fn scan(&mut self, i: &Decoded) -> Done {
        let [first, second, _] = &i.operands;
        let value = self.get(second)?;
        self.flags.set(Rflags::ZF, value == 0);
        if value == 0 {
            return Ok(());
        }
        let number = if i.mnemonic == M::Bsf { value.trailing_zeros() } else { value.ilog2() };
        self.put(first, number.into())
    }

    /// An instruction that is decoded but not implemented is #UD if CPUID does not offer it, and otherwise ends the run.
    pub(super) fn unknown(&self) -> Trap {
        self.stop("an instruction unknown to the interpreter")
    }
}
