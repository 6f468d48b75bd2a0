# Single pieces of a kernel's entry, in ring 0, each by itself. r8 and r9 are two values that alternate.

# A batch, as in ring 3, but without a crossing.
    .balign 64, 0x90
.Lk_block:
    tg_stamp
    shl $32, %rdx
    or %rax, %rdx
    push %rdx
    xor %eax, %eax
    call *%rbx
    mov %rax, %rdi
    tg_stamp
    pop %rcx
    shl $32, %rdx
    or %rdx, %rax
    sub %rcx, %rax
    mov %rax, .Lk_ticks(%rip)
    mov %r15, .Lk_count(%rip)
    mov %rdi, .Lk_value(%rip)
    cli
    xor %eax, %eax
    ret

tg_loops .Lk_swapgs, "swapgs"
tg_loops .Lk_lfence, "lfence"
tg_loops .Lk_cli_sti, "cli; sti"
tg_loops .Lk_verw, "verw .Lk_data_selector(%rip)"
    .subsection 1
    .balign 8
.Lk_data_selector:
    .short .LKERNEL_DATA
    .subsection 0

# Loads the other root, which has the same mappings.
tg_loops .Lk_cr3, "xchg %r8, %r9; mov %r8, %cr3", "mov $.LPML4, %r8d; mov $.LPML4_OTHER, %r9d"

.macro tg_two_identifiers
    movabs $(.LPML4 + 1) + (1 << 63), %r8
    movabs $(.LPML4_OTHER + 2) + (1 << 63), %r9
.endm

# Alternates process-context identifiers 1 and 2; bit 63 keeps the cached translations of the new one (SDM 3A,
# "Process-context identifiers").
tg_loops .Lk_cr3_pcid, "xchg %r8, %r9; mov %r8, %cr3", tg_two_identifiers

# Writes the current value again.
tg_loops .Lk_spec_ctrl, "wrmsr", "mov $0x48, %ecx; rdmsr"

# Flushes all translations, those of global pages too: CR4.PGE off and on (SDM 3A, "Operations that invalidate TLBs and
# paging-structure caches").
tg_loops .Lk_tlb_flush, "mov %r8, %cr4; mov %r9, %cr4", "mov $0x20, %r8d; mov $0xa0, %r9d"
tg_loops .Lk_invlpg, "invlpg (%r8)", "mov $.LUSER, %r8d"

# Returns from ring 0 to ring 0, including the five pushes that make the frame.
.macro tg_iretq
    mov %rsp, %rcx
    lea .Lk_behind\@(%rip), %rdx
    push $.LKERNEL_DATA
    push %rcx
    pushfq
    push $.LKERNEL_CODE
    push %rdx
    iretq
.Lk_behind\@:
.endm
tg_loops .Lk_iretq, tg_iretq

# Pushes every register but the stack pointer, and pops them.
.macro tg_frame
    .irp register, rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
    push %\register
    .endr
    .irp register, r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax
    pop %\register
    .endr
.endm
tg_loops .Lk_frame, tg_frame

tg_loops .Lk_ud1, "mov $3, %eax; mov $3, %ecx; ud1l %eax, %ecx"
tg_loops .Lk_lock_mov, "mov $3, %eax; mov $3, %ecx; .byte 0xf0, 0x89, 0xc8"
