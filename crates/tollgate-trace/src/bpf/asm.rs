//! An assembler for the kernel's virtual machine, see Documentation/bpf/standardization/instruction-set.rst of the kernel.
//!
//! A program is a list of [`Instruction`]s with labels among them. [`Assembler`] has a method for each; [`super::wire`] has the 8 bytes
//! each that bpf(2) takes. Operations, conditions and widths have the numbers of their codes there.

/// A register. R0 is what a call returns, R1 to R5 are its arguments and lost by it, R6 to R9 stay, R10 is the end of the stack.
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
/// The end of the stack of 512 bytes, which is reached by negative offsets.
pub(crate) const FRAME: Register = Register(10);

/// The second operand of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    Register(Register),
    /// Extended with its sign to 64 bits.
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

/// How much a load or a store moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Word = 0x00,
    Half = 0x08,
    Byte = 0x10,
    Double = 0x18,
}

impl Width {
    /// The one of so many bytes; of other numbers the widest.
    pub const fn of(bytes: usize) -> Self {
        match bytes {
            1 => Self::Byte,
            2 => Self::Half,
            4 => Self::Word,
            _ => Self::Double,
        }
    }
}

/// Where something lies in a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub offset: i16,
    pub width: Width,
}

impl Field {
    /// A word of 8 bytes.
    pub const fn double(offset: i16) -> Self {
        Self { offset, width: Width::Double }
    }

    /// The same field of a structure that lies so many bytes further.
    pub const fn at(self, base: i16) -> Self {
        Self { offset: self.offset + base, width: self.width }
    }
}

/// Operations of two operands, of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Add = 0x00,
    Subtract = 0x10,
    Multiply = 0x20,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Xor = 0xa0,
    Move = 0xb0,
}

/// When a jump is taken. Comparisons are unsigned but for [`Condition::Negative`].
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

/// An atomic operation on memory. Its register gets the old value, but of [`Atomic::Add`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Atomic {
    Add = 0x00,
    FetchAdd = 0x01,
    /// Stores the register where memory equals R0, which gets the old value.
    CompareExchange = 0xf1,
}

/// A constant of 64 bits, or an address that the kernel substitutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Constant {
    Number(u64),
    /// A map, by its file descriptor.
    Map(i32),
    /// The value of an array map with one entry, so many bytes into it.
    Value(i32, u32),
}

/// Functions of the kernel that programs call: `BPF_FUNC_*` in include/uapi/linux/bpf.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Helper {
    MapLookup = 1,
    MapUpdate = 2,
    KtimeGetNs = 5,
    GetSmpProcessorId = 8,
    GetCurrentComm = 16,
    ProbeReadKernel = 113,
    ProbeReadUserString = 114,
    ProbeReadKernelString = 115,
    TaskStorageGet = 156,
    GetCurrentTaskBtf = 158,
}

/// A jump target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label(u32);

/// One instruction, or the position of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instruction {
    Operate(Operation, Register, Operand),
    Constant(Register, Constant),
    Load(Register, Register, Field),
    Store(Register, Field, Operand),
    Atomic(Atomic, Register, Field, Register),
    Jump(Label),
    JumpIf(Condition, Register, Operand, Label),
    Call(Helper),
    Exit,
    Label(Label),
}

/// A program that is being written.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    pub instructions: Vec<Instruction>,
    pub labels: u32,
}

impl Assembler {
    /// A label that is not bound yet.
    pub fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    fn push(&mut self, instruction: Instruction) {
        self.instructions.push(instruction);
    }

    /// Binds the label to this position.
    pub fn bind(&mut self, label: Label) {
        self.push(Instruction::Label(label));
    }

    pub fn operate(&mut self, operation: Operation, to: Register, with: impl Into<Operand>) {
        self.push(Instruction::Operate(operation, to, with.into()));
    }

    /// A constant that an immediate cannot hold.
    pub fn constant(&mut self, to: Register, number: u64) {
        self.push(Instruction::Constant(to, Constant::Number(number)));
    }

    /// A map, as helpers take it.
    pub fn map(&mut self, to: Register, fd: i32) {
        self.push(Instruction::Constant(to, Constant::Map(fd)));
    }

    /// The address of the only value of an array map, `offset` bytes into it.
    pub fn value(&mut self, to: Register, fd: i32, offset: u32) {
        self.push(Instruction::Constant(to, Constant::Value(fd, offset)));
    }

    pub fn load(&mut self, to: Register, base: Register, field: Field) {
        self.push(Instruction::Load(to, base, field));
    }

    pub fn store(&mut self, base: Register, field: Field, from: impl Into<Operand>) {
        self.push(Instruction::Store(base, field, from.into()));
    }

    pub fn atomic(&mut self, atomic: Atomic, base: Register, field: Field, with: Register) {
        self.push(Instruction::Atomic(atomic, base, field, with));
    }

    /// Adds to a field that has no other writer meanwhile. `scratch` is lost.
    pub fn increase(&mut self, base: Register, field: Field, by: impl Into<Operand>, scratch: Register) {
        self.load(scratch, base, field);
        self.add(scratch, by);
        self.store(base, field, scratch);
    }

    /// Adds one to a counter that others count in as well. R1 and R2 are lost.
    pub fn count(&mut self, fd: i32, field: Field) {
        self.value(R1, fd, field.offset as u32);
        self.mov(R2, 1);
        self.atomic(Atomic::Add, R1, Field::double(0), R2);
    }

    pub fn jump(&mut self, to: Label) {
        self.push(Instruction::Jump(to));
    }

    pub fn jump_if(&mut self, condition: Condition, a: Register, b: impl Into<Operand>, to: Label) {
        self.push(Instruction::JumpIf(condition, a, b.into(), to));
    }

    pub fn call(&mut self, helper: Helper) {
        self.push(Instruction::Call(helper));
    }

    /// An address so far from the end of the stack.
    pub fn on_stack(&mut self, to: Register, offset: i16) {
        self.mov(to, FRAME);
        self.add(to, i32::from(offset));
    }

    /// Ends the program with 0, which tracepoints expect.
    pub fn exit(&mut self) {
        self.mov(R0, 0);
        self.push(Instruction::Exit);
    }
}

macro_rules! operations {
    ($($name:ident $operation:ident),+) => {
        impl Assembler {
            $(
                pub fn $name(&mut self, to: Register, with: impl Into<Operand>) {
                    self.operate(Operation::$operation, to, with);
                }
            )+
        }
    };
}
operations!(mov Move, add Add, sub Subtract, and And, or Or, mul Multiply, shl ShiftLeft, shr ShiftRight);

impl Label {
    /// Its number among the program's labels.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
