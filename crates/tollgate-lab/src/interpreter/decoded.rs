//! Instructions as they are executed: decoded by iced, with prepared operands.

use iced_x86::{Code, CpuidFeature, Instruction, Mnemonic, OpKind, Register};
use tollgate_x86::Selector;
use tollgate_x86::walk::SegmentRegister;

/// The numbers of general registers.
pub(super) const RAX: u8 = 0;
pub(super) const RCX: u8 = 1;
pub(super) const RDX: u8 = 2;
pub(super) const RBX: u8 = 3;
pub(super) const RSP: u8 = 4;
pub(super) const RBP: u8 = 5;
pub(super) const RSI: u8 = 6;
pub(super) const RDI: u8 = 7;
pub(super) const R11: u8 = 11;
/// No register: it holds 0 and is never written.
pub(super) const NONE: u8 = 16;

/// An instruction. It does not say where it lies: relative operands are added when it is executed, so that it serves
/// at every linear address that its page has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decoded {
    pub(super) mnemonic: Mnemonic,
    pub(super) code: Code,
    /// In bytes; 0 of what is no instruction.
    pub(super) length: u8,
    /// The condition, as [`Flags::condition`](super::arithmetic::Flags::condition) takes it.
    pub(super) condition: u8,
    /// REP or REPE, and REPNE.
    pub(super) repeat: Option<Repeat>,
    /// How many bytes a push, pop, call or return takes of the stack.
    pub(super) slot: u8,
    /// How wide the address is, in bytes: of strings, of LOOP and JCXZ the width of the counter.
    pub(super) address: u8,
    pub(super) operands: [Operand; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// REP, and of comparing instructions REPE.
    WhileEqual,
    /// REPNE.
    WhileDifferent,
}

/// An operand, and how many bytes it has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operand {
    pub(super) what: What,
    pub(super) bytes: u8,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    /// There is none, or the instruction's meaning says which.
    None,
    /// A general register: which, and from which bit on (8 of AH to BH).
    Register(u8, u8),
    Segment(SegmentRegister),
    /// CR0 to CR15.
    Control(u8),
    /// A debug register, or another that is not modelled.
    Foreign,
    Memory(Address),
    /// A number, its sign extended.
    Immediate(u64),
    /// The distance of a jump's target from the instruction's first byte.
    Near(u64),
    Far(Selector, u32),
}

/// Where an operand is in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Address {
    pub(super) segment: SegmentRegister,
    /// A general register, or [`NONE`].
    pub(super) base: u8,
    /// A general register, or [`NONE`].
    pub(super) index: u8,
    /// By how many bits the index is shifted.
    pub(super) scale: u8,
    /// How wide the sum is, in bytes.
    pub(super) bytes: u8,
    /// Whether the displacement counts from the instruction's first byte.
    pub(super) relative: bool,
    pub(super) displacement: u64,
}

impl Decoded {
    /// Makes ready what was decoded as if it lay at 0.
    pub(super) fn of(instruction: &Instruction) -> Self {
        let mut operands = [Operand { what: What::None, bytes: 0 }; 3];
        for (number, operand) in operands.iter_mut().enumerate().take(instruction.op_count() as usize) {
            *operand = operand_of(instruction, number as u32);
        }
        let [first, second, _] = operands;
        Self {
            mnemonic: instruction.mnemonic(),
            code: instruction.code(),
            length: instruction.len() as u8,
            condition: (instruction.condition_code() as u8).wrapping_sub(1),
            repeat: if instruction.has_repne_prefix() {
                Some(Repeat::WhileDifferent)
            } else {
                instruction.has_rep_prefix().then_some(Repeat::WhileEqual)
            },
            slot: slot_of(instruction),
            address: match (first.what, second.what) {
                (What::Memory(address), _) | (_, What::Memory(address)) => address.bytes,
                _ => counter_of(instruction.code()),
            },
            operands,
        }
    }

    /// Whether it is one of the x87 unit, which may be switched off: #NM.
    pub(super) fn is_x87(&self) -> bool {
        self.code
            .cpuid_features()
            .iter()
            .any(|feature| matches!(feature, CpuidFeature::FPU | CpuidFeature::FPU287 | CpuidFeature::FPU387))
    }

    /// Whether it belongs to an extension of the general registers that most processors have, and this one has not.
    pub(super) fn is_elsewhere(&self) -> bool {
        let features = self.code.cpuid_features();
        features.iter().any(|feature| ELSEWHERE.contains(feature))
            && features.iter().all(|feature| ELSEWHERE.contains(feature) || OFFERED.contains(feature))
    }

    /// Whether it belongs to an extension that CPUID does not offer: #UD.
    pub(super) fn is_foreign(&self) -> bool {
        !self.code.cpuid_features().iter().all(|feature| OFFERED.contains(feature))
    }
}

/// Extensions that CPUID does not offer here, and whose instructions use the general registers and memory alone: most processors have
/// them, so that a program's compiler may count on them. Those that VEX encodes are not decoded at all and are #UD.
const ELSEWHERE: [CpuidFeature; 10] = [
    CpuidFeature::POPCNT,
    CpuidFeature::LZCNT,
    CpuidFeature::BMI1,
    CpuidFeature::BMI2,
    CpuidFeature::ADX,
    CpuidFeature::MOVBE,
    CpuidFeature::RDRAND,
    CpuidFeature::RDSEED,
    CpuidFeature::CMPXCHG16B,
    CpuidFeature::RDPID,
];

/// The extensions that CPUID offers.
const OFFERED: [CpuidFeature; 18] = [
    CpuidFeature::INTEL8086,
    CpuidFeature::INTEL186,
    CpuidFeature::INTEL286,
    CpuidFeature::INTEL386,
    CpuidFeature::INTEL486,
    CpuidFeature::X64,
    CpuidFeature::CPUID,
    CpuidFeature::CMOV,
    CpuidFeature::CX8,
    CpuidFeature::MSR,
    CpuidFeature::TSC,
    CpuidFeature::SEP,
    CpuidFeature::SYSCALL,
    CpuidFeature::FSGSBASE,
    CpuidFeature::SMAP,
    CpuidFeature::MULTIBYTENOP,
    CpuidFeature::PAUSE,
    CpuidFeature::INVPCID,
];

fn operand_of(instruction: &Instruction, number: u32) -> Operand {
    let memory = |base, segment, bytes| {
        let address =
            Address { segment, base, index: NONE, scale: 0, bytes, relative: false, displacement: 0 };
        What::Memory(address)
    };
    let source = segment_of(instruction.memory_segment());
    let what = match instruction.op_kind(number) {
        OpKind::Register => {
            let register = instruction.op_register(number);
            return Operand { what: register_of(register), bytes: register.size() as u8 };
        }
        OpKind::Memory => What::Memory(address_of(instruction)),
        OpKind::MemorySegSI => memory(RSI, source, 2),
        OpKind::MemorySegESI => memory(RSI, source, 4),
        OpKind::MemorySegRSI => memory(RSI, source, 8),
        OpKind::MemoryESDI => memory(RDI, SegmentRegister::Es, 2),
        OpKind::MemoryESEDI => memory(RDI, SegmentRegister::Es, 4),
        OpKind::MemoryESRDI => memory(RDI, SegmentRegister::Es, 8),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => {
            What::Near(instruction.near_branch_target())
        }
        kind @ (OpKind::FarBranch16 | OpKind::FarBranch32) => {
            let narrow = (kind == OpKind::FarBranch16).then(|| instruction.far_branch16().into());
            let offset = narrow.unwrap_or_else(|| instruction.far_branch32());
            What::Far(Selector(instruction.far_branch_selector()), offset)
        }
        _ => match instruction.try_immediate(number) {
            Ok(value) => What::Immediate(value),
            Err(_) => What::Foreign,
        },
    };
    let bytes = match what {
        What::Memory(_) => instruction.memory_size().size() as u8,
        // An immediate is as wide as what it goes with.
        _ => instruction.op0_register().size() as u8,
    };
    Operand { what, bytes }
}

fn address_of(instruction: &Instruction) -> Address {
    let base = instruction.memory_base();
    let index = instruction.memory_index();
    let bytes = match (base, index) {
        (Register::None, Register::None) => instruction.memory_displ_size() as u8,
        (Register::None, register) | (register, _) => register.size() as u8,
    };
    let number = |register: Register| if register.is_gpr() { general(register) } else { NONE };
    Address {
        segment: segment_of(instruction.memory_segment()),
        base: number(base),
        index: number(index),
        scale: instruction.memory_index_scale().trailing_zeros() as u8,
        // A displacement without registers may be shorter than the address that it is.
        bytes: bytes.max(2),
        relative: instruction.is_ip_rel_memory_operand(),
        displacement: instruction.memory_displacement64(),
    }
}

fn general(register: Register) -> u8 {
    register.full_register().number() as u8 & 15
}

fn register_of(register: Register) -> What {
    if register.is_gpr() {
        let is_high = matches!(register, Register::AH | Register::CH | Register::DH | Register::BH);
        What::Register(general(register), if is_high { 8 } else { 0 })
    } else if register.is_segment_register() {
        What::Segment(segment_of(register))
    } else if register.is_cr() {
        What::Control(register.number() as u8)
    } else {
        What::Foreign
    }
}

fn segment_of(register: Register) -> SegmentRegister {
    match register {
        Register::ES => SegmentRegister::Es,
        Register::CS => SegmentRegister::Cs,
        Register::SS => SegmentRegister::Ss,
        Register::FS => SegmentRegister::Fs,
        Register::GS => SegmentRegister::Gs,
        _ => SegmentRegister::Ds,
    }
}

/// How far the stack pointer goes, of what pushes or pops one slot.
fn slot_of(instruction: &Instruction) -> u8 {
    let size = match instruction.code() {
        // RET n releases more than the slot of its address.
        Code::Retnq | Code::Retnq_imm16 | Code::Leaveq => 8,
        Code::Retnd | Code::Retnd_imm16 | Code::Leaved => 4,
        Code::Retnw | Code::Retnw_imm16 | Code::Leavew => 2,
        _ => instruction.stack_pointer_increment().unsigned_abs(),
    };
    u8::try_from(size).unwrap_or(0)
}

/// The width of the counter of LOOP and JCXZ.
fn counter_of(code: Code) -> u8 {
    match code {
        Code::Loop_rel8_64_RCX
        | Code::Loope_rel8_64_RCX
        | Code::Loopne_rel8_64_RCX
        | Code::Jrcxz_rel8_64
        | Code::Jrcxz_rel8_16 => 8,
        Code::Loop_rel8_16_CX
        | Code::Loop_rel8_32_CX
        | Code::Loope_rel8_16_CX
        | Code::Loope_rel8_32_CX
        | Code::Loopne_rel8_16_CX
        | Code::Loopne_rel8_32_CX
        | Code::Jcxz_rel8_16
        | Code::Jcxz_rel8_32 => 2,
        _ => 4,
    }
}
