//! Decodes the vector instructions of the bandwidth loops. The program builds its decoder without VEX and EVEX, whose
//! tables are large, and a build of the workspace has only one decoder. So these few are decoded here.

use iced_x86::{Code, Instruction};

/// An instruction's prefix (Intel SDM volume 2, 2.3.5 and 2.7.1).
struct Prefix {
    /// The opcode map: 1 is 0F, 2 is 0F38, 3 is 0F3A.
    map: u8,
    length: usize,
    is_evex: bool,
    /// VEX.L: 256 bits.
    is_long: bool,
}

impl Prefix {
    fn parse(bytes: &[u8]) -> Option<Self> {
        match *bytes {
            [0xc5, second, ..] => Some(Self { map: 1, length: 2, is_evex: false, is_long: second & 4 != 0 }),
            [0xc4, second, third, ..] => {
                Some(Self { map: second & 0x1f, length: 3, is_evex: false, is_long: third & 4 != 0 })
            }
            [0x62, second, _, fourth, ..] => {
                Some(Self { map: second & 7, length: 4, is_evex: true, is_long: fourth & 0x20 != 0 })
            }
            _ => None,
        }
    }
}

/// Decodes the first instruction of the bytes if it is one of those loops' vector instructions.
pub fn decode(bytes: &[u8], address: u64) -> Option<Instruction> {
    let prefix = Prefix::parse(bytes)?;
    let opcode = *bytes.get(prefix.length)?;
    let code = code(&prefix, opcode)?;
    let mut length = prefix.length + 1;
    if code != Code::VEX_Vzeroupper {
        length += operands(bytes.get(length..)?)?;
        length += usize::from(prefix.map == 3 || (prefix.map, opcode) == (1, 0x73));
    }
    let mut instruction = Instruction::default();
    instruction.set_code(code);
    instruction.set_ip(address);
    instruction.set_len(length);
    instruction.set_next_ip(address + length as u64);
    Some(instruction)
}

fn code(prefix: &Prefix, opcode: u8) -> Option<Code> {
    Some(match (prefix.is_evex, prefix.map, opcode, prefix.is_long) {
        (false, 1, 0x6e, false) => Code::VEX_Vmovq_xmm_rm64,
        (false, 1, 0x6f, true) => Code::VEX_Vmovdqa_ymm_ymmm256,
        (false, 1, 0x73, false) => Code::VEX_Vpsrldq_xmm_xmm_imm8,
        (false, 1, 0x77, false) => Code::VEX_Vzeroupper,
        (false, 1, 0x7e, false) => Code::VEX_Vmovq_rm64_xmm,
        (false, 1, 0x7f, true) => Code::VEX_Vmovdqa_ymmm256_ymm,
        (false, 1, 0xd4, false) => Code::VEX_Vpaddq_xmm_xmm_xmmm128,
        (false, 1, 0xd4, true) => Code::VEX_Vpaddq_ymm_ymm_ymmm256,
        (false, 1, 0xe7, true) => Code::VEX_Vmovntdq_m256_ymm,
        (false, 1, 0xef, false) => Code::VEX_Vpxor_xmm_xmm_xmmm128,
        (false, 2, 0x59, true) => Code::VEX_Vpbroadcastq_ymm_xmmm64,
        (false, 3, 0x39, true) => Code::VEX_Vextracti128_xmmm128_ymm_imm8,
        (true, 1, 0x6f, _) => Code::EVEX_Vmovdqa64_zmm_k1z_zmmm512,
        (true, 1, 0x7f, _) => Code::EVEX_Vmovdqa64_zmmm512_k1z_zmm,
        (true, 1, 0xd4, _) => Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64,
        (true, 1, 0xe7, _) => Code::EVEX_Vmovntdq_m512_zmm,
        (true, 2, 0x7c, _) => Code::EVEX_Vpbroadcastq_zmm_k1z_r64,
        (true, 3, 0x3b, _) => Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8,
        _ => return None,
    })
}

/// Length of ModRM, SIB and displacement in bytes (Intel SDM volume 2, table 2-2).
fn operands(bytes: &[u8]) -> Option<usize> {
    let modrm = *bytes.first()?;
    let (mode, rm) = (modrm >> 6, modrm & 7);
    let sib = usize::from(mode != 3 && rm == 4);
    let displacement = match mode {
        1 => 1,
        2 => 4,
        0 if rm == 5 => 4,
        _ => 0,
    };
    Some(1 + sib + displacement)
}
