//! An assembler for the kernel's virtual machine, see Documentation/bpf/standardization/instruction-set.rst of the kernel.
//!
//! [`Assembler`] has a method for each instruction, which encodes it for bpf(2): opcode, two registers, an offset and an
//! immediate in 8 bytes; 64-bit constants take two. Conditions and widths have their encodings as numbers.

/// A register. R0 is a call's result, R1 to R5 its arguments, which it clobbers; R6 to R9 are preserved, R10 ends the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Register(pub u8);

pub(crate) const R0: Register = Register(0);
pub(crate) const R1: Register = Register(1);
pub(crate) const R2: Register = Register(2);
pub(crate) const R3: Register = Register(3);
pub(crate) const R4: Register = Register(4);
pub(crate) const R5: Register = Register(5);
pub(crate) const R6: Register = Register(6);
pub(crate) const R7: Register = Register(7);
pub(crate) const R8: Register = Register(8);
pub(crate) const R9: Register = Register(9);
/// The end of the stack of 512 bytes, which is addressed by negative offsets.
pub(crate) const FRAME: Register = Register(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    Register(Register),
    /// Sign-extended to 64 bits.
    Immediate(i32),
}

impl From<Register> for Operand {
    fn from(register: Register) -> Self {
        Self::Register(register)
    }
}

impl From<i32> for Operand {
    fn from(immediate: i32) -> Self {
        Self::Immediate(immediate)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Word = 0x00,
    Half = 0x08,
    Byte = 0x10,
    Double = 0x18,
}

impl Width {
    pub const fn from_bytes(bytes: usize) -> Self {
        match bytes {
            1 => Self::Byte,
            2 => Self::Half,
            4 => Self::Word,
            _ => Self::Double,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub offset: i16,
    pub width: Width,
}

impl Field {
    pub const fn double(offset: i16) -> Self {
        Self { offset, width: Width::Double }
    }

    pub const fn word(offset: i16) -> Self {
        Self { offset, width: Width::Word }
    }

    /// Returns the same field of a structure that begins `base` bytes later.
    pub const fn at(self, base: i16) -> Self {
        Self { offset: self.offset + base, width: self.width }
    }
}

/// The condition of a jump. Comparisons are unsigned except [`Condition::Negative`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    Equal = 0x10,
    AtLeast = 0x30,
    /// They have a bit in common.
    AnyBit = 0x40,
    NotEqual = 0x50,
    Below = 0xa0,
    /// The first is below the second as signed numbers.
    Negative = 0xc0,
}

/// An atomic operation on memory. Its register receives the old value, except with [`Atomic::Add`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Atomic {
    Add = 0x00,
    FetchAdd = 0x01,
    /// Stores the register if memory equals R0. R0 receives the old value.
    CompareExchange = 0xf1,
}

/// Helpers that programs call: `BPF_FUNC_*` in include/uapi/linux/bpf.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Helper {
    MapLookup = 1,
    MapUpdate = 2,
    KtimeGetNs = 5,
    GetSmpProcessorId = 8,
    GetCurrentComm = 16,
    ProbeReadUser = 112,
    ProbeReadKernel = 113,
    ProbeReadUserString = 114,
    ProbeReadKernelString = 115,
    TaskStorageGet = 156,
    GetCurrentTaskBtf = 158,
    TaskPtRegs = 175,
    GetStackId = 27,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label(usize);

// Classes, sources and modes of opcodes: include/uapi/linux/bpf_common.h and bpf.h.
const LDX: u8 = 0x01;
const ST: u8 = 0x02;
const STX: u8 = 0x03;
const JMP: u8 = 0x05;
const ALU64: u8 = 0x07;
const FROM_REGISTER: u8 = 0x08;
const MEM: u8 = 0x60;
const ATOMIC: u8 = 0xc0;
const LOAD_IMMEDIATE_64: u8 = 0x18;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
// Kinds of 64-bit constants, in the source register field.
const PSEUDO_MAP_FD: u8 = 1;
const PSEUDO_MAP_VALUE: u8 = 2;
const PSEUDO_KFUNC: u8 = 2;

#[derive(Debug, Default)]
pub(crate) struct Assembler {
    words: Vec<u64>,
    /// The index of the instruction after each label, once the label is bound.
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    /// Returns the instructions as bpf(2) takes them.
    ///
    /// # Errors
    /// If a label was never bound, or a jump spans more than 32,767 instructions.
    pub fn finish(&self) -> Result<Vec<u64>, String> {
        let mut words = self.words.clone();
        for &(at, label) in &self.jumps {
            let place = self.labels[label.0].ok_or("a jump has no target")?;
            // Jump offsets count from the next instruction.
            let offset = i16::try_from(place as i64 - at as i64 - 1).map_err(|_| "a jump is too far")?;
            words[at] |= u64::from(offset as u16) << 16;
        }
        Ok(words)
    }

    fn push(&mut self, opcode: u8, to: Register, from: u8, offset: i16, immediate: i32) {
        self.words.push(
            u64::from(opcode)
                | u64::from(to.0 | from << 4) << 8
                | u64::from(offset as u16) << 16
                | u64::from(immediate as u32) << 32,
        );
    }

    fn push_with(&mut self, opcode: u8, to: Register, with: Operand) {
        match with {
            Operand::Register(from) => self.push(opcode | FROM_REGISTER, to, from.0, 0, 0),
            Operand::Immediate(immediate) => self.push(opcode, to, 0, 0, immediate),
        }
    }

    fn push_constant(&mut self, to: Register, kind: u8, low: u32, high: u32) {
        self.push(LOAD_IMMEDIATE_64, to, kind, 0, low as i32);
        self.push(0, R0, 0, 0, high as i32);
    }

    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    pub fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.words.len());
    }

    pub fn constant(&mut self, to: Register, number: u64) {
        self.push_constant(to, 0, number as u32, (number >> 32) as u32);
    }

    pub fn map(&mut self, to: Register, fd: i32) {
        self.push_constant(to, PSEUDO_MAP_FD, fd as u32, 0);
    }

    /// Loads the address `offset` bytes into the only value of an array map.
    pub fn value(&mut self, to: Register, fd: i32, offset: u32) {
        self.push_constant(to, PSEUDO_MAP_VALUE, fd as u32, offset);
    }

    pub fn load(&mut self, to: Register, base: Register, field: Field) {
        self.push(LDX | MEM | field.width as u8, to, base.0, field.offset, 0);
    }

    pub fn store(&mut self, base: Register, field: Field, from: impl Into<Operand>) {
        let opcode = MEM | field.width as u8;
        match from.into() {
            Operand::Register(from) => self.push(STX | opcode, base, from.0, field.offset, 0),
            Operand::Immediate(immediate) => self.push(ST | opcode, base, 0, field.offset, immediate),
        }
    }

    pub fn atomic(&mut self, atomic: Atomic, base: Register, field: Field, with: Register) {
        self.push(STX | ATOMIC | field.width as u8, base, with.0, field.offset, atomic as i32);
    }

    /// Adds to a field that nothing else writes at the same time. Clobbers `scratch`.
    pub fn increase(&mut self, base: Register, field: Field, by: impl Into<Operand>, scratch: Register) {
        self.load(scratch, base, field);
        self.add(scratch, by);
        self.store(base, field, scratch);
    }

    /// Adds atomically to a shared field. Clobbers R1 if `by` is a number.
    pub fn increase_shared(&mut self, base: Register, field: Field, by: impl Into<Operand>) {
        let by = match by.into() {
            Operand::Register(by) => by,
            number => {
                self.mov(R1, number);
                R1
            }
        };
        self.atomic(Atomic::Add, base, field, by);
    }

    /// Increments a shared counter atomically. Clobbers R1 and R2.
    pub fn count(&mut self, fd: i32, field: Field) {
        self.value(R1, fd, field.offset as u32);
        self.mov(R2, 1);
        self.atomic(Atomic::Add, R1, Field::double(0), R2);
    }

    pub fn jump(&mut self, to: Label) {
        self.jumps.push((self.words.len(), to));
        self.push(JMP, R0, 0, 0, 0);
    }

    pub fn jump_if(&mut self, condition: Condition, a: Register, b: impl Into<Operand>, to: Label) {
        self.jumps.push((self.words.len(), to));
        self.push_with(JMP | condition as u8, a, b.into());
    }

    /// Skips what `then` writes if the condition holds.
    pub fn unless(
        &mut self,
        condition: Condition,
        a: Register,
        b: impl Into<Operand>,
        then: impl FnOnce(&mut Self),
    ) {
        let behind = self.label();
        self.jump_if(condition, a, b, behind);
        then(self);
        self.bind(behind);
    }

    pub fn call(&mut self, helper: Helper) {
        self.push(JMP | CALL, R0, 0, 0, helper as i32);
    }

    /// Calls a kernel function that is not a helper (kfunc), by its type id.
    pub fn call_kernel(&mut self, function: u32) {
        self.push(JMP | CALL, R0, PSEUDO_KFUNC, 0, function as i32);
    }

    pub fn on_stack(&mut self, to: Register, offset: i16) {
        self.mov(to, FRAME);
        self.add(to, i32::from(offset));
    }

    /// Returns 0 from the program, as tracepoints expect.
    pub fn exit(&mut self) {
        self.mov(R0, 0);
        self.push(JMP | EXIT, R0, 0, 0, 0);
    }
}

macro_rules! operations {
    ($($name:ident $code:literal),+) => {
        impl Assembler {
            $(
                pub fn $name(&mut self, to: Register, with: impl Into<Operand>) {
                    self.push_with(ALU64 | $code, to, with.into());
                }
            )+
        }
    };
}
operations!(add 0x00, sub 0x10, mul 0x20, or 0x40, and 0x50, shl 0x60, shr 0x70, xor 0xa0, mov 0xb0);

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes were encoded by hand from the instruction set document.
    #[test]
    fn instructions_are_the_words_of_the_manual() {
        let mut a = Assembler::default();
        a.mov(R6, R1);
        a.mov(R2, -1);
        a.add(R2, 8);
        a.shl(R3, R4);
        a.load(R0, R6, Field::double(8));
        a.load(R1, FRAME, Field::word(-4));
        a.store(FRAME, Field { offset: -8, width: Width::Byte }, 7);
        a.store(R8, Field { offset: 16, width: Width::Half }, R9);
        a.atomic(Atomic::Add, R1, Field::double(0), R2);
        a.atomic(Atomic::FetchAdd, R1, Field::double(24), R2);
        a.atomic(Atomic::CompareExchange, R1, Field::double(0), R2);
        a.call(Helper::KtimeGetNs);
        a.call_kernel(0x1_2345);
        a.exit();
        let words = a.finish().unwrap();
        let expected: [u64; 15] = [
            0x0000_0000_0000_16bf,
            0xffff_ffff_0000_02b7,
            0x0000_0008_0000_0207,
            0x0000_0000_0000_436f,
            0x0000_0000_0008_6079,
            0x0000_0000_fffc_a161,
            0x0000_0007_fff8_0a72,
            0x0000_0000_0010_986b,
            0x0000_0000_0000_21db,
            0x0000_0001_0018_21db,
            0x0000_00f1_0000_21db,
            0x0000_0005_0000_0085,
            0x0001_2345_0000_2085,
            0x0000_0000_0000_00b7,
            0x0000_0000_0000_0095,
        ];
        assert_eq!(words, expected, "{words:#018x?}");
    }

    #[test]
    fn constants_of_64_bits_take_two_words_and_jumps_count_them() {
        let mut a = Assembler::default();
        let end = a.label();
        let again = a.label();
        a.bind(again);
        a.jump_if(Condition::Equal, R1, 0, end);
        a.constant(R2, 0x1122_3344_5566_7788);
        a.map(R1, 5);
        a.value(R1, 6, 64);
        a.jump_if(Condition::AtLeast, R1, R2, again);
        a.jump(end);
        a.bind(end);
        a.exit();
        let words = a.finish().unwrap();
        assert_eq!(words[0], 0x0000_0000_0008_0115);
        assert_eq!(&words[1..3], &[0x5566_7788_0000_0218, 0x1122_3344_0000_0000]);
        assert_eq!(&words[3..5], &[0x0000_0005_0000_1118, 0]);
        assert_eq!(&words[5..7], &[0x0000_0006_0000_2118, 0x0000_0040_0000_0000]);
        assert_eq!(words[7], 0x0000_0000_fff8_213d);
        assert_eq!(words[8], 0x0000_0000_0000_0005);
    }

    #[test]
    fn a_label_that_is_not_bound_is_refused() {
        let mut a = Assembler::default();
        let nowhere = a.label();
        a.jump(nowhere);
        assert!(a.finish().is_err());
    }
}
