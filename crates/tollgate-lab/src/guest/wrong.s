# Set-ups that processors refuse by the manuals. Each changes one thing that set_up has done right; experiments.rs has the
# expected outcome.

# The program's vector in all that are about gates.
    .set .LWRONG, .LIDT + 0x82 * 16

    .balign 16, 0x90
# User code and user data have changed places, and STAR has not: SYSRET's sums hit the wrong ones.
.Lk_wrong_order:
    mov .LGDT + 0x20, %rax
    mov .LGDT + 0x28, %rdx
    mov %rdx, .LGDT + 0x20
    mov %rax, .LGDT + 0x28
    ret

# Ring 3 may not call it.
.Lk_wrong_gate_dpl:
    tg_gate 0x82, .Lk_interrupt, .LINTERRUPT
    ret

# It leads to a data segment,
.Lk_wrong_gate_data:
    tg_gate 0x82, .Lk_interrupt, .LPUBLIC
    movw $.LKERNEL_DATA, .LWRONG + 2
    ret

# to none,
.Lk_wrong_gate_null:
    tg_gate 0x82, .Lk_interrupt, .LPUBLIC
    movw $0, .LWRONG + 2
    ret

# is not present itself,
.Lk_wrong_gate_absent:
    tg_gate 0x82, .Lk_interrupt, .LPUBLIC - 0x8000
    ret

# or leads to a segment that is not.
.Lk_wrong_segment_absent:
    tg_gate 0x82, .Lk_interrupt, .LPUBLIC
    movw $.LSPARE, .LWRONG + 2
    movabs $0x00af1b000000ffff, %rax
    mov %rax, .LGDT + .LSPARE
    ret

# SYSRET to an address that no program can be at.
.Lk_wrong_return:
    tg_wrmsr_address .LLSTAR, .Lk_return_nowhere
    ret
    .balign 16, 0x90
.Lk_return_nowhere:
    inc %r15
    movabs $0x800000000000, %rcx
    sysretq

# SYSENTER_CS 0 means that there is no kernel to enter.
.Lk_wrong_sysenter_cs:
    tg_wrmsr .LSYSENTER_CS, 0
    ret

# The gate wants stack 7 of a TSS that ends before it. The stack for faults, number 1, is still inside.
.Lk_wrong_tss_limit:
    tg_gate 0x82, .Lk_interrupt, .LPUBLIC + 7
    movw $0x53, .LGDT + .LTASK
    andb $0xfd, .LGDT + .LTASK + 5  # not busy, or LTR would refuse it
    mov $.LTASK, %eax
    ltr %ax
    ret

# A call gate that ring 3 may not use.
.Lk_wrong_call_dpl:
    andb $0x9f, .LGDT + .LCALL_GATE + 5
    ret

# IRETQ to an address that no program can be at.
.Lk_wrong_iret:
    tg_gate 0x82, .Lk_iret_nowhere, .LPUBLIC
    ret
    .balign 16, 0x90
.Lk_iret_nowhere:
    inc %r15
    movabs $0x800000000000, %rax
    mov %rax, (%rsp)
    iretq

# Nothing is wrong but the program, which reads the kernel's memory.
.Lk_wrong_nothing:
    ret
