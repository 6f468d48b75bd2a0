//! Arithmetic and its flags. SDM 1, "EFLAGS register" and appendix A, "EFLAGS cross-reference"; SDM 2, each instruction's
//! "Flags affected".
//!
//! Operands have 1, 2, 4 or 8 bytes, and no bits above that. Flags that the manual leaves undefined are cleared or unchanged.

use tollgate_x86::Rflags;

const ALL: u64 = Rflags::CF.0 | Rflags::PF.0 | Rflags::AF.0 | Rflags::ZF.0 | Rflags::SF.0 | Rflags::OF.0;

pub(super) const fn mask(bytes: u8) -> u64 {
    if bytes < 8 { (1 << (8 * bytes)) - 1 } else { u64::MAX }
}

const fn is_negative(value: u64, bytes: u8) -> bool {
    value >> (8 * bytes as u32 - 1) & 1 == 1
}

pub(super) const fn sign_extend(value: u64, bytes: u8) -> u64 {
    let unused = 64 - 8 * bytes as u32;
    ((value << unused) as i64 >> unused) as u64
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flags(pub(super) u64);

impl Flags {
    pub(super) const fn has(self, flag: Rflags) -> bool {
        self.0 & flag.0 != 0
    }

    pub(super) const fn set(&mut self, flag: Rflags, on: bool) {
        if on { self.0 |= flag.0 } else { self.0 &= !flag.0 }
    }

    /// Sets SF, ZF and PF by the result, and clears CF, AF and OF.
    fn of_result(&mut self, result: u64, bytes: u8) {
        self.0 &= !ALL;
        self.set(Rflags::SF, is_negative(result, bytes));
        self.set(Rflags::ZF, result == 0);
        self.set(Rflags::PF, (result as u8).count_ones().is_multiple_of(2));
    }

    /// Returns whether a condition holds, by its four bits in the opcode. SDM 2, appendix B, "Encoding of conditional test
    /// field".
    pub(super) const fn condition(self, code: u8) -> bool {
        let less = self.has(Rflags::SF) != self.has(Rflags::OF);
        let holds = match code >> 1 {
            0 => self.has(Rflags::OF),
            1 => self.has(Rflags::CF),
            2 => self.has(Rflags::ZF),
            3 => self.has(Rflags::CF) || self.has(Rflags::ZF),
            4 => self.has(Rflags::SF),
            5 => self.has(Rflags::PF),
            6 => less,
            _ => less || self.has(Rflags::ZF),
        };
        holds != (code & 1 == 1)
    }

    pub(super) fn add(&mut self, a: u64, b: u64, carry: bool, bytes: u8) -> u64 {
        let result = a.wrapping_add(b).wrapping_add(u64::from(carry)) & mask(bytes);
        self.of_result(result, bytes);
        // A bit carries if both have it set, or one has and the sum has not.
        let carries = a & b | (a | b) & !result;
        self.set(Rflags::AF, carries & 1 << 3 != 0);
        self.set_both(is_negative(carries, bytes), is_negative((a ^ result) & (b ^ result), bytes));
        result
    }

    pub(super) fn subtract(&mut self, a: u64, b: u64, borrow: bool, bytes: u8) -> u64 {
        let result = a.wrapping_sub(b).wrapping_sub(u64::from(borrow)) & mask(bytes);
        self.of_result(result, bytes);
        let borrows = !a & b | (!a | b) & result;
        self.set(Rflags::AF, borrows & 1 << 3 != 0);
        self.set_both(is_negative(borrows, bytes), is_negative((a ^ b) & (a ^ result), bytes));
        result
    }

    /// INC and DEC: CF is unchanged.
    pub(super) fn step(&mut self, value: u64, up: bool, bytes: u8) -> u64 {
        let carry = self.has(Rflags::CF);
        let result =
            if up { self.add(value, 1, false, bytes) } else { self.subtract(value, 1, false, bytes) };
        self.set(Rflags::CF, carry);
        result
    }

    /// AND, OR, XOR and TEST: CF and OF are clear. AF is undefined.
    pub(super) fn logic(&mut self, result: u64, bytes: u8) -> u64 {
        self.of_result(result, bytes);
        result
    }

    /// SHL, SHR and SAR. A count of 0 changes no flag; OF is defined for a count of 1.
    pub(super) fn shift(&mut self, way: Shift, value: u64, count: u64, bytes: u8) -> u64 {
        let count = masked(count, bytes);
        if count == 0 {
            return value;
        }
        let bits = 8 * u32::from(bytes);
        let signed = sign_extend(value, bytes) as i64;
        // 128 bits, because a count may exceed the operand's bits.
        let (result, carry, overflow) = match way {
            Shift::Left => {
                let wide = u128::from(value) << count;
                let result = wide as u64 & mask(bytes);
                let carry = wide >> bits & 1 == 1;
                (result, carry, is_negative(result, bytes) != carry)
            }
            Shift::Right => {
                let carry = value >> (count - 1) & 1 == 1;
                (value >> count, carry, is_negative(value, bytes))
            }
            Shift::Arithmetic => {
                (((signed >> count) as u64) & mask(bytes), signed >> (count - 1) & 1 == 1, false)
            }
        };
        self.of_result(result, bytes);
        self.set_both(carry, overflow);
        result
    }

    /// ROL and ROR. A count of 0 changes no flag; a whole rotation sets CF.
    pub(super) fn rotate(&mut self, left: bool, value: u64, count: u64, bytes: u8) -> u64 {
        let count = masked(count, bytes);
        if count == 0 {
            return value;
        }
        let bits = 8 * u32::from(bytes);
        let turn = if left { count % bits } else { (bits - count % bits) % bits };
        let wide = u128::from(value) << turn;
        let result = (wide | wide >> bits) as u64 & mask(bytes);
        let carry = if left { result & 1 == 1 } else { is_negative(result, bytes) };
        self.rotated(left, carry, result, bytes)
    }

    /// RCL and RCR rotate through the carry, so a rotation has one bit more than the operand.
    pub(super) fn rotate_through_carry(&mut self, left: bool, value: u64, count: u64, bytes: u8) -> u64 {
        let bits = 8 * u32::from(bytes);
        let turn = bits + 1;
        let count = masked(count, bytes) % turn;
        if count == 0 {
            return value;
        }
        let turned = if left { count } else { turn - count };
        let wide = u128::from(value) | u128::from(self.has(Rflags::CF)) << bits;
        let wide = wide << turned | wide >> (turn - turned);
        let result = wide as u64 & mask(bytes);
        self.rotated(left, wide >> bits & 1 == 1, result, bytes)
    }

    fn rotated(&mut self, left: bool, carry: bool, result: u64, bytes: u8) -> u64 {
        let second = result >> (8 * u32::from(bytes) - 2) & 1 == 1;
        self.set_both(carry, is_negative(result, bytes) != if left { carry } else { second });
        result
    }

    /// SHLD and SHRD shift in bits of `other`. OF is defined for a count of 1.
    pub(super) fn shift_double(&mut self, left: bool, value: u64, other: u64, count: u64, bytes: u8) -> u64 {
        let count = masked(count, bytes);
        let bits = 8 * u32::from(bytes);
        if count == 0 || count > bits {
            return value;
        }
        let (result, carry) = if left {
            let wide = u128::from(value) << bits | u128::from(other);
            ((wide << count >> bits) as u64 & mask(bytes), value >> (bits - count) & 1 == 1)
        } else {
            let wide = u128::from(other) << bits | u128::from(value);
            ((wide >> count) as u64 & mask(bytes), value >> (count - 1) & 1 == 1)
        };
        self.of_result(result, bytes);
        self.set_both(carry, is_negative(value ^ result, bytes));
        result
    }

    /// Returns the lower and upper half of an unsigned product. CF and OF are set if the upper half matters; the others are
    /// undefined.
    pub(super) fn multiply(&mut self, a: u64, b: u64, bytes: u8) -> (u64, u64) {
        let product = u128::from(a) * u128::from(b);
        let (low, high) = halves(product, bytes);
        self.set_both(high != 0, high != 0);
        (low, high)
    }

    /// Returns the halves of a signed product. CF and OF are set if the lower half alone is not the product.
    pub(super) fn multiply_signed(&mut self, a: u64, b: u64, bytes: u8) -> (u64, u64) {
        let signed = |value| i128::from(sign_extend(value, bytes) as i64);
        let product = signed(a) * signed(b);
        let (low, high) = halves(product as u128, bytes);
        let is_cut = product != signed(low);
        self.set_both(is_cut, is_cut);
        (low, high)
    }

    fn set_both(&mut self, carry: bool, overflow: bool) {
        self.set(Rflags::CF, carry);
        self.set(Rflags::OF, overflow);
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Shift {
    Left,
    Right,
    Arithmetic,
}

const fn masked(count: u64, bytes: u8) -> u32 {
    (count & if bytes == 8 { 63 } else { 31 }) as u32
}

fn halves(product: u128, bytes: u8) -> (u64, u64) {
    let bits = 8 * u32::from(bytes);
    (product as u64 & mask(bytes), (product >> bits) as u64 & mask(bytes))
}

/// A division of a number in two halves, high first, by a divisor of some bytes.
pub(super) type Division = fn(u64, u64, u64, u8) -> Option<(u64, u64)>;

/// Returns quotient and remainder; `None` if the quotient does not fit: #DE.
pub(super) fn divide(high: u64, low: u64, by: u64, bytes: u8) -> Option<(u64, u64)> {
    let number = u128::from(high) << (8 * u32::from(bytes)) | u128::from(low);
    let by = u128::from(by);
    let quotient = number.checked_div(by)?;
    (quotient <= u128::from(mask(bytes))).then(|| (quotient as u64, (number % by) as u64))
}

/// The remainder has the sign of the dividend.
pub(super) fn divide_signed(high: u64, low: u64, by: u64, bytes: u8) -> Option<(u64, u64)> {
    let bits = 8 * u32::from(bytes);
    let unused = 128 - 2 * bits;
    let number = ((u128::from(high) << bits | u128::from(low)) << unused) as i128 >> unused;
    let by = i128::from(sign_extend(by, bytes) as i64);
    let quotient = number.checked_div(by)?;
    let fits = i128::from(sign_extend(quotient as u64 & mask(bytes), bytes) as i64) == quotient;
    fits.then(|| (quotient as u64 & mask(bytes), (number % by) as u64 & mask(bytes)))
}
