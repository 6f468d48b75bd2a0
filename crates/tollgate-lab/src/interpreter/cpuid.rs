//! The answers of CPUID: exactly the features of the interpreter. SDM 2A, CPUID; APM 3, appendix E.

use tollgate_x86::{Cr4, Vendor};

use super::control::CR4;
use super::state::Processor;
use super::tlb::PHYSICAL_BITS;

const BASIC: u32 = 7;
const EXTENDED: u32 = 0x8000_0021;

/// Leaf 1, EDX: PSE, TSC, MSR, PAE, MCE, CX8, SEP, PGE, CMOV. No x87, no SSE.
const FEATURES: u32 = 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 11 | 1 << 13 | 1 << 15;
/// Leaf 1, ECX: PCID, and the bit that every hypervisor sets, as this is not a real processor.
const MORE_FEATURES: u32 = 1 << 17 | 1 << 31;
/// Leaf 7, EBX: FSGSBASE, SMEP, INVPCID, SMAP.
const EXTENSIONS: u32 = 1 | 1 << 7 | 1 << 10 | 1 << 20;
/// Leaf 7, ECX.
const UMIP: u32 = 1 << 2;
/// Leaf 7, EDX, on Intel's: VERW clears buffers; IBRS and IBPB, STIBP, SSBD.
const SPECULATION: u32 = 1 << 10 | 1 << 26 | 1 << 27 | 1 << 31;
/// Leaf 80000001h, EDX: SYSCALL (in 64-bit mode), NX, 1 GiB pages, RDTSCP, long mode.
const LONG: u32 = 1 << 11 | 1 << 20 | 1 << 26 | 1 << 27 | 1 << 29;
/// Leaf 80000008h, EBX, on AMD's: IBPB, IBRS, STIBP, SSBD.
const AMD_SPECULATION: u32 = 1 << 12 | 1 << 14 | 1 << 15 | 1 << 24;
/// Leaf 80000021h, EAX, on AMD's: a null selector clears the base of FS and GS.
const NULL_CLEARS_BASE: u32 = 1 << 6;

// The bits that can be set in CR4 match these.
const _: () =
    assert!(CR4.has(Cr4::SMEP.with(Cr4::SMAP).with(Cr4::UMIP).with(Cr4::FSGSBASE).with(Cr4::PCIDE)));

impl Processor {
    pub(super) fn cpuid(&self, leaf: u32, subleaf: u32) -> [u32; 4] {
        let intel = self.vendor == Vendor::Intel;
        match leaf {
            0 => {
                let name = if intel { b"GenuineIntel" } else { b"AuthenticAMD" };
                [BASIC, word(name, 0), word(name, 8), word(name, 4)]
            }
            // Family 6 of Intel's, 17h of AMD's: kernels expect long mode there.
            1 => [if intel { 0x0006_06a0 } else { 0x0080_0f00 }, 0x0001_0800, MORE_FEATURES, FEATURES],
            7 if subleaf == 0 => [0, EXTENSIONS, UMIP, if intel { SPECULATION } else { 0 }],
            0x8000_0000 => {
                let [_, ebx, ecx, edx] = if intel { [0; 4] } else { self.cpuid(0, 0) };
                [EXTENDED, ebx, ecx, edx]
            }
            // LAHF in 64-bit mode.
            0x8000_0001 => [0, 0, 1, LONG],
            0x8000_0002..=0x8000_0004 => {
                let name = b"tollgate's interpreter\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
                let at = (leaf as usize - 0x8000_0002) * 16;
                [word(name, at), word(name, at + 4), word(name, at + 8), word(name, at + 12)]
            }
            0x8000_0008 => [48 << 8 | PHYSICAL_BITS, if intel { 0 } else { AMD_SPECULATION }, 0, 0],
            0x8000_0021 if !intel => [NULL_CLEARS_BASE, 0, 0, 0],
            _ => [0; 4],
        }
    }
}

fn word(text: &[u8], at: usize) -> u32 {
    text.iter().skip(at).take(4).rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
}
