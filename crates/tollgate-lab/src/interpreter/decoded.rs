use iced_x86::{Code, CpuidFeature, Instruction, Mnemonic, OpKind, Register};
use tollgate_x86::Selector;
use tollgate_x86::walk::SegmentRegister;

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

/// An instruction without its address: relative operands are added on execution, so it is valid at every linear address of
/// its page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decoded {
    pub(super) mnemonic: Mnemonic,
    pub(super) code: Code,
    /// Bytes; 0 for an invalid instruction.
    pub(super) length: u8,
    /// The condition code of [`Flags::condition`](super::arithmetic::Flags::condition).
    pub(super) condition: u8,
    pub(super) repeat: Option<Repeat>,
    /// Bytes of the stack that a push, pop, call or return takes.
    pub(super) slot: u8,
    /// Width of the address in bytes; for strings, LOOP and JCXZ, the width of the counter.
    pub(super) address: u8,
    pub(super) operands: [Operand; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// REP, or REPE on comparing instructions.
    WhileEqual,
    /// REPNE.
    WhileDifferent,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Operand {
    pub(super) what: What,
    pub(super) bytes: u8,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    /// Absent, or implied by the instruction.
    None,
    /// A general register: number and first bit (8 for AH to BH).
    Register(u8, u8),
    Segment(SegmentRegister),
    Control(u8),
    /// A debug register, or another that is not modelled.
    Foreign,
    Memory(Address),
    /// A sign-extended immediate.
    Immediate(u64),
    /// The distance of a jump's target from the instruction's first byte.
    Near(u64),
    Far(Selector, u32),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Address {
    pub(super) segment: SegmentRegister,
    pub(super) base: u8,
    pub(super) index: u8,
    pub(super) scale: u8,
    pub(super) bytes: u8,
    /// Whether the displacement counts from the instruction's first byte.
    pub(super) relative: bool,
    pub(super) displacement: u64,
}

impl Decoded {
    /// Prepares an instruction that was decoded as if it lay at 0.
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

    /// Returns whether it uses the x87 unit, which may be switched off: #NM.
    pub(super) fn is_x87(&self) -> bool {
        self.code
            .cpuid_features()
            .iter()
            .any(|feature| matches!(feature, CpuidFeature::FPU | CpuidFeature::FPU287 | CpuidFeature::FPU387))
    }

    /// Returns whether it needs an extension of the general registers that most processors have, but this one does not.
    pub(super) fn is_elsewhere(&self) -> bool {
        let features = self.code.cpuid_features();
        features.iter().any(|feature| ELSEWHERE.contains(feature))
            && features.iter().all(|feature| ELSEWHERE.contains(feature) || OFFERED.contains(feature))
    }

    /// Returns whether it needs an extension that CPUID does not offer: #UD.
    pub(super) fn is_foreign(&self) -> bool {
        !self.code.cpuid_features().iter().all(|feature| OFFERED.contains(feature))
    }
}

/// Extensions that CPUID does not offer here, but whose instructions use only general registers and memory. Most processors
/// have them, so a compiler may rely on them. VEX-encoded ones are not decoded at all and raise #UD.
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
        // An immediate is as wide as the operand that it goes with.
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
        // A displacement without registers may be shorter than the address that it encodes.
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

/// Returns how far one push or pop moves the stack pointer.
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
