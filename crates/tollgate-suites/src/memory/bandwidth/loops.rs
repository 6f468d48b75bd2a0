//! The loops of bandwidth: each iteration moves one chunk of the working set, and the next one continues after it.
//!
//! Words of each loop: 0: the first byte; 1: bytes of a chunk; 2: the offset of the next chunk; 3: bytes of a pass,
//! after which it begins again; 4: the value to store, or the distance from source to destination.
//!
//! A chunk is a multiple of 256 bytes. Vector loops move 256 bytes between two branches, so only vector widths differ.

use tollgate_arch::features;

use crate::prelude::*;

/// One loop: its preparation, its work on a chunk from `rcx` to `rdx`, and the step to the next chunk. The chunk is from `x14` to
/// `x15` on arm64, whose loops have other registers and so are loops of their own.
macro_rules! pass {
    ($(#[$doc:meta])* $name:ident: aarch64 $($body:literal),*) => {
        timed_loop! {
            $(#[$doc])*
            $name: none "x86-64 has no such instructions";
            aarch64
                first "ldr x9, [x20]", "ldr x10, [x20, #8]", "ldr x11, [x20, #16]", "ldr x12, [x20, #24]",
                "ldr x13, [x20, #32]";
                "add x14, x9, x11", "add x15, x14, x10",
                $($body,)*
                "add x11, x11, x10", "cmp x11, x12", "csel x11, xzr, x11, eq", "str x11, [x20, #16]"
        }
    };
    ($(#[$doc:meta])* $name:ident: $($body:literal),*) => {
        timed_loop! {
            $(#[$doc])*
            $name:
                first "mov rbx, [r13]", "mov r11, [r13 + 8]", "mov r8, [r13 + 16]", "mov r9, [r13 + 24]",
                "mov r10, [r13 + 32]";
                "lea rcx, [rbx + r8]", "lea rdx, [rcx + r11]",
                $($body,)*
                "add r8, r11", "cmp r8, r9", "jne 4f", "xor r8d, r8d", "4:", "mov [r13 + 16], r8";
            aarch64 none "arm64 has no such instructions"
        }
    };
}

pass! {
    /// Adds all words, so that the sum shows that they were read.
    read_sse2:
        "pxor xmm0, xmm0", "pxor xmm1, xmm1", "pxor xmm2, xmm2", "pxor xmm3, xmm3",
        "3:",
        "paddq xmm0, [rcx]", "paddq xmm1, [rcx + 16]", "paddq xmm2, [rcx + 32]", "paddq xmm3, [rcx + 48]",
        "paddq xmm0, [rcx + 64]", "paddq xmm1, [rcx + 80]", "paddq xmm2, [rcx + 96]", "paddq xmm3, [rcx + 112]",
        "paddq xmm0, [rcx + 128]", "paddq xmm1, [rcx + 144]", "paddq xmm2, [rcx + 160]", "paddq xmm3, [rcx + 176]",
        "paddq xmm0, [rcx + 192]", "paddq xmm1, [rcx + 208]", "paddq xmm2, [rcx + 224]", "paddq xmm3, [rcx + 240]",
        "add rcx, 256", "cmp rcx, rdx", "jne 3b",
        "paddq xmm0, xmm1", "paddq xmm2, xmm3", "paddq xmm0, xmm2",
        "movq rdx, xmm0", "add rax, rdx", "psrldq xmm0, 8", "movq rdx, xmm0", "add rax, rdx"
}

pass! {
    read_avx2:
        "vpxor xmm0, xmm0, xmm0", "vpxor xmm1, xmm1, xmm1", "vpxor xmm2, xmm2, xmm2", "vpxor xmm3, xmm3, xmm3",
        "3:",
        "vpaddq ymm0, ymm0, [rcx]", "vpaddq ymm1, ymm1, [rcx + 32]",
        "vpaddq ymm2, ymm2, [rcx + 64]", "vpaddq ymm3, ymm3, [rcx + 96]",
        "vpaddq ymm0, ymm0, [rcx + 128]", "vpaddq ymm1, ymm1, [rcx + 160]",
        "vpaddq ymm2, ymm2, [rcx + 192]", "vpaddq ymm3, ymm3, [rcx + 224]",
        "add rcx, 256", "cmp rcx, rdx", "jne 3b",
        "vpaddq ymm0, ymm0, ymm1", "vpaddq ymm2, ymm2, ymm3", "vpaddq ymm0, ymm0, ymm2",
        "vextracti128 xmm1, ymm0, 1", "vpaddq xmm0, xmm0, xmm1",
        "vmovq rdx, xmm0", "add rax, rdx", "vpsrldq xmm0, xmm0, 8", "vmovq rdx, xmm0", "add rax, rdx", "vzeroupper"
}

pass! {
    read_avx512:
        "vpxor xmm0, xmm0, xmm0", "vpxor xmm1, xmm1, xmm1", "vpxor xmm2, xmm2, xmm2", "vpxor xmm3, xmm3, xmm3",
        "3:",
        "vpaddq zmm0, zmm0, [rcx]", "vpaddq zmm1, zmm1, [rcx + 64]",
        "vpaddq zmm2, zmm2, [rcx + 128]", "vpaddq zmm3, zmm3, [rcx + 192]",
        "add rcx, 256", "cmp rcx, rdx", "jne 3b",
        "vpaddq zmm0, zmm0, zmm1", "vpaddq zmm2, zmm2, zmm3", "vpaddq zmm0, zmm0, zmm2",
        "vextracti64x4 ymm1, zmm0, 1", "vpaddq ymm0, ymm0, ymm1",
        "vextracti128 xmm1, ymm0, 1", "vpaddq xmm0, xmm0, xmm1",
        "vmovq rdx, xmm0", "add rax, rdx", "vpsrldq xmm0, xmm0, 8", "vmovq rdx, xmm0", "add rax, rdx", "vzeroupper"
}

pass! {
    write_sse2:
        "movq xmm0, r10", "punpcklqdq xmm0, xmm0",
        "3:",
        "movdqa [rcx], xmm0", "movdqa [rcx + 16], xmm0", "movdqa [rcx + 32], xmm0", "movdqa [rcx + 48], xmm0",
        "movdqa [rcx + 64], xmm0", "movdqa [rcx + 80], xmm0", "movdqa [rcx + 96], xmm0", "movdqa [rcx + 112], xmm0",
        "movdqa [rcx + 128], xmm0", "movdqa [rcx + 144], xmm0", "movdqa [rcx + 160], xmm0",
        "movdqa [rcx + 176], xmm0", "movdqa [rcx + 192], xmm0", "movdqa [rcx + 208], xmm0",
        "movdqa [rcx + 224], xmm0", "movdqa [rcx + 240], xmm0",
        "add rcx, 256", "cmp rcx, rdx", "jne 3b"
}

pass! {
    write_avx2:
        "vmovq xmm0, r10", "vpbroadcastq ymm0, xmm0",
        "3:",
        "vmovdqa [rcx], ymm0", "vmovdqa [rcx + 32], ymm0", "vmovdqa [rcx + 64], ymm0", "vmovdqa [rcx + 96], ymm0",
        "vmovdqa [rcx + 128], ymm0", "vmovdqa [rcx + 160], ymm0", "vmovdqa [rcx + 192], ymm0",
        "vmovdqa [rcx + 224], ymm0",
        "add rcx, 256", "cmp rcx, rdx", "jne 3b", "vzeroupper"
}

pass! {
    write_avx512:
        "vpbroadcastq zmm0, r10",
        "3:",
        "vmovdqa64 [rcx], zmm0", "vmovdqa64 [rcx + 64], zmm0", "vmovdqa64 [rcx + 128], zmm0",
        "vmovdqa64 [rcx + 192], zmm0",
        "add rcx, 256", "cmp rcx, rdx", "jne 3b", "vzeroupper"
}

pass! {
    /// Stores bypassing the caches. The fence waits until the stores are visible (Intel SDM volume 1, 10.4.6.2).
    write_nt_sse2:
        "movq xmm0, r10", "punpcklqdq xmm0, xmm0",
        "3:",
        "movntdq [rcx], xmm0", "movntdq [rcx + 16], xmm0", "movntdq [rcx + 32], xmm0", "movntdq [rcx + 48], xmm0",
        "movntdq [rcx + 64], xmm0", "movntdq [rcx + 80], xmm0", "movntdq [rcx + 96], xmm0",
        "movntdq [rcx + 112], xmm0", "movntdq [rcx + 128], xmm0", "movntdq [rcx + 144], xmm0",
        "movntdq [rcx + 160], xmm0", "movntdq [rcx + 176], xmm0", "movntdq [rcx + 192], xmm0",
        "movntdq [rcx + 208], xmm0", "movntdq [rcx + 224], xmm0", "movntdq [rcx + 240], xmm0",
        "add rcx, 256", "cmp rcx, rdx", "jne 3b", "sfence"
}

pass! {
    write_nt_avx2:
        "vmovq xmm0, r10", "vpbroadcastq ymm0, xmm0",
        "3:",
        "vmovntdq [rcx], ymm0", "vmovntdq [rcx + 32], ymm0", "vmovntdq [rcx + 64], ymm0",
        "vmovntdq [rcx + 96], ymm0", "vmovntdq [rcx + 128], ymm0", "vmovntdq [rcx + 160], ymm0",
        "vmovntdq [rcx + 192], ymm0", "vmovntdq [rcx + 224], ymm0",
        "add rcx, 256", "cmp rcx, rdx", "jne 3b", "sfence", "vzeroupper"
}

pass! {
    write_nt_avx512:
        "vpbroadcastq zmm0, r10",
        "3:",
        "vmovntdq [rcx], zmm0", "vmovntdq [rcx + 64], zmm0", "vmovntdq [rcx + 128], zmm0",
        "vmovntdq [rcx + 192], zmm0",
        "add rcx, 256", "cmp rcx, rdx", "jne 3b", "sfence", "vzeroupper"
}

pass! {
    /// Copies to the address word 4 bytes further on.
    copy_sse2:
        "3:",
        "movdqa xmm0, [rcx]", "movdqa xmm1, [rcx + 16]", "movdqa xmm2, [rcx + 32]", "movdqa xmm3, [rcx + 48]",
        "movdqa [rcx + r10], xmm0", "movdqa [rcx + r10 + 16], xmm1", "movdqa [rcx + r10 + 32], xmm2",
        "movdqa [rcx + r10 + 48], xmm3",
        "movdqa xmm0, [rcx + 64]", "movdqa xmm1, [rcx + 80]", "movdqa xmm2, [rcx + 96]", "movdqa xmm3, [rcx + 112]",
        "movdqa [rcx + r10 + 64], xmm0", "movdqa [rcx + r10 + 80], xmm1", "movdqa [rcx + r10 + 96], xmm2",
        "movdqa [rcx + r10 + 112], xmm3",
        "add rcx, 128", "cmp rcx, rdx", "jne 3b"
}

pass! {
    copy_avx2:
        "3:",
        "vmovdqa ymm0, [rcx]", "vmovdqa ymm1, [rcx + 32]", "vmovdqa ymm2, [rcx + 64]", "vmovdqa ymm3, [rcx + 96]",
        "vmovdqa [rcx + r10], ymm0", "vmovdqa [rcx + r10 + 32], ymm1", "vmovdqa [rcx + r10 + 64], ymm2",
        "vmovdqa [rcx + r10 + 96], ymm3",
        "vmovdqa ymm0, [rcx + 128]", "vmovdqa ymm1, [rcx + 160]", "vmovdqa ymm2, [rcx + 192]",
        "vmovdqa ymm3, [rcx + 224]",
        "vmovdqa [rcx + r10 + 128], ymm0", "vmovdqa [rcx + r10 + 160], ymm1", "vmovdqa [rcx + r10 + 192], ymm2",
        "vmovdqa [rcx + r10 + 224], ymm3",
        "add rcx, 256", "cmp rcx, rdx", "jne 3b", "vzeroupper"
}

pass! {
    copy_avx512:
        "3:",
        "vmovdqa64 zmm0, [rcx]", "vmovdqa64 zmm1, [rcx + 64]", "vmovdqa64 zmm2, [rcx + 128]",
        "vmovdqa64 zmm3, [rcx + 192]",
        "vmovdqa64 [rcx + r10], zmm0", "vmovdqa64 [rcx + r10 + 64], zmm1", "vmovdqa64 [rcx + r10 + 128], zmm2",
        "vmovdqa64 [rcx + r10 + 192], zmm3",
        "add rcx, 256", "cmp rcx, rdx", "jne 3b", "vzeroupper"
}

pass! {
    /// Copies a chunk with one instruction, as glibc's memcpy does on processors with ERMS.
    copy_rep: "mov rsi, rcx", "lea rdi, [rcx + r10]", "mov rcx, r11", "rep movsb"
}

pass! {
    /// Stores the low byte of word 4 to a chunk with one instruction, as the kernel clears pages.
    fill_rep: "mov eax, r10d", "mov rdi, rcx", "mov rcx, r11", "rep stosb"
}

pass! {
    /// By registers of 16 bytes, as with SSE2.
    read_neon: aarch64
        "movi v0.2d, 0", "movi v1.2d, 0", "movi v2.2d, 0", "movi v3.2d, 0",
        "3:",
        ".irp at, 0, 64, 128, 192",
        "ldp q4, q5, [x14, \\at]", "ldp q6, q7, [x14, \\at + 32]",
        "add v0.2d, v0.2d, v4.2d", "add v1.2d, v1.2d, v5.2d", "add v2.2d, v2.2d, v6.2d", "add v3.2d, v3.2d, v7.2d",
        ".endr",
        "add x14, x14, 256", "cmp x14, x15", "b.ne 3b",
        "add v0.2d, v0.2d, v1.2d", "add v2.2d, v2.2d, v3.2d", "add v0.2d, v0.2d, v2.2d",
        "addp d0, v0.2d", "fmov x16, d0", "add x0, x0, x16"
}

pass! {
    write_neon: aarch64
        "dup v0.2d, x13",
        "3:",
        ".irp at, 0, 32, 64, 96, 128, 160, 192, 224", "stp q0, q0, [x14, \\at]", ".endr",
        "add x14, x14, 256", "cmp x14, x15", "b.ne 3b"
}

pass! {
    /// Stores of data that is not used again soon. The barrier waits until they are visible.
    write_nt_neon: aarch64
        "dup v0.2d, x13",
        "3:",
        ".irp at, 0, 32, 64, 96, 128, 160, 192, 224", "stnp q0, q0, [x14, \\at]", ".endr",
        "add x14, x14, 256", "cmp x14, x15", "b.ne 3b", "dmb ish"
}

pass! {
    copy_neon: aarch64
        "add x16, x14, x13",
        "3:",
        ".irp at, 0, 64, 128, 192",
        "ldp q0, q1, [x14, \\at]", "ldp q2, q3, [x14, \\at + 32]",
        "stp q0, q1, [x16, \\at]", "stp q2, q3, [x16, \\at + 32]",
        ".endr",
        "add x16, x16, 256", "add x14, x14, 256", "cmp x14, x15", "b.ne 3b"
}

pass! {
    /// Sets blocks to zero, as the kernel clears pages. DCZID_EL0 has the logarithm of their size in words of four bytes.
    zero_zva: aarch64
        "mrs x16, dczid_el0", "and x16, x16, 15", "mov x17, 4", "lsl x16, x17, x16",
        "3:", "dc zva, x14", "add x14, x14, x16", "cmp x14, x15", "b.lo 3b"
}

words! {
    pub enum Op("op") { Read = "read", Write = "write", WriteNt = "write-nt", Copy = "copy", Fill = "fill", Zero = "zero" }
}

words! {
    /// REP MOVSB and REP STOSB, or registers of 16, 32 and 64 bytes; registers of 16 bytes and DC ZVA on arm64.
    pub enum By("by") {
        Rep = "rep",
        Sse2 = "sse2",
        Avx2 = "avx2",
        Avx512 = "avx512",
        Neon = "neon",
        Zva = "zva",
    }
}

impl By {
    /// Returns `self`, or `other` on an architecture that does not do `op` by `self`.
    pub fn or(self, other: Self, op: Op, on: Architecture) -> Self {
        if is_on(on, op, self) { self } else { other }
    }

    /// Checks that the processor has the instructions and the kernel saves their registers (CPUID and XCR0).
    pub fn is_here(self) -> Result<()> {
        let (has, name) = match self {
            Self::Rep | Self::Sse2 | Self::Neon => (true, ""),
            Self::Zva => (features::has_zva(), "DC ZVA (DCZID_EL0.DZP)"),
            Self::Avx2 => (features::has_avx2(), "AVX2 (CPUID.7.0:EBX[5], XCR0[2:1])"),
            Self::Avx512 => (features::has_avx512(), "AVX-512F (CPUID.7.0:EBX[16], XCR0[7:5])"),
        };
        if has { Ok(()) } else { Err(skip!("the processor or the kernel has no {name}")) }
    }
}

/// A loop, the instruction that moves its data, and how often the loop contains the instruction.
pub type Code = (LongLoop, &'static str, usize);

/// Whether an architecture does `op` by these instructions.
pub fn is_on(on: Architecture, op: Op, by: By) -> bool {
    code(op, by).is_some_and(|(code, ..)| code.why_absent(on).is_none())
}

pub fn code(op: Op, by: By) -> Option<Code> {
    Some(match (op, by) {
        (Op::Read, By::Sse2) => (read_sse2, "paddq", 19),
        (Op::Read, By::Avx2) => (read_avx2, "vpaddq", 12),
        (Op::Read, By::Avx512) => (read_avx512, "vpaddq", 9),
        (Op::Write, By::Sse2) => (write_sse2, "movdqa", 16),
        (Op::Write, By::Avx2) => (write_avx2, "vmovdqa", 8),
        (Op::Write, By::Avx512) => (write_avx512, "vmovdqa64", 4),
        (Op::WriteNt, By::Sse2) => (write_nt_sse2, "movntdq", 16),
        (Op::WriteNt, By::Avx2) => (write_nt_avx2, "vmovntdq", 8),
        (Op::WriteNt, By::Avx512) => (write_nt_avx512, "vmovntdq", 4),
        (Op::Copy, By::Rep) => (copy_rep, "movsb", 1),
        (Op::Copy, By::Sse2) => (copy_sse2, "movdqa", 16),
        (Op::Copy, By::Avx2) => (copy_avx2, "vmovdqa", 16),
        (Op::Copy, By::Avx512) => (copy_avx512, "vmovdqa64", 8),
        (Op::Fill, By::Rep) => (fill_rep, "stosb", 1),
        (Op::Read, By::Neon) => (read_neon, "ldp", 8),
        (Op::Write, By::Neon) => (write_neon, "stp", 8),
        (Op::WriteNt, By::Neon) => (write_nt_neon, "stnp", 8),
        (Op::Copy, By::Neon) => (copy_neon, "stp", 8),
        (Op::Zero, By::Zva) => (zero_zva, "dc zva", 1),
        _ => return None,
    })
}
