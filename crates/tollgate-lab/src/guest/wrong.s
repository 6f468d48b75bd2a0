# Setups that processors must refuse according to the manuals. Each changes one thing that set_up has done right;
# experiments.rs has the expected outcome.

# The program's vector in all setups about gates.
    .set .LWRONG, .LIDT + 0x82 * 16

    .balign 16, 0x90
# User code and user data are swapped, but STAR is unchanged: SYSRET's sums select the wrong ones.
.Lk_wrong_order:
    mov .LGDT + 0x20, %rax
    mov .LGDT + 0x28, %rdx
    mov %rdx, .LGDT + 0x20
    mov %rax, .LGDT + 0x28
    ret

# Ring 3 may not call the gate.
.Lk_wrong_gate_dpl:
    tg_gate 0x82, .Lk_interrupt, .LINTERRUPT
    ret

# The gate leads to a data segment.
.Lk_wrong_gate_data:
    tg_gate 0x82, .Lk_interrupt, .LPUBLIC
    movw $.LKERNEL_DATA, .LWRONG + 2
    ret

# The gate leads to the null selector.
.Lk_wrong_gate_null:
    tg_gate 0x82, .Lk_interrupt, .LPUBLIC
    movw $0, .LWRONG + 2
    ret

# The gate is not present.
.Lk_wrong_gate_absent:
    tg_gate 0x82, .Lk_interrupt, .LPUBLIC - 0x8000
    ret

# The gate leads to a segment that is not present.
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

# The gate uses stack 7 of a TSS that ends before it. The stack for faults, number 1, is still inside.
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

# Only the program is wrong: it reads the kernel's memory, or writes to a port.
.Lk_wrong_nothing:
    ret

# A root in a page that nothing else uses: its entry denies ring 3 everything below, including the program's page.
    .set .LWRONG_ROOT, 0x208000
.Lk_wrong_user_page:
    movq $.LPDPT + 3, .LWRONG_ROOT
    mov $.LWRONG_ROOT, %eax
    mov %rax, %cr3
    ret

# The GDT ends before the segments of 64-bit programs.
.Lk_wrong_gdt_limit:
    lgdt .Lk_short_gdt(%rip)
    ret

# The IDT ends before the program's vector.
.Lk_wrong_idt_limit:
    tg_gate 0x82, .Lk_interrupt, .LPUBLIC
    lidt .Lk_short_idt(%rip)
    ret

    .subsection 1
    .short 0, 0, 0
.Lk_short_gdt:
    .short .LUSER_CODE / 8 * 8 - 1
    .quad .LGDT
    .short 0, 0, 0
.Lk_short_idt:
    .short 0x82 * 16 - 1
    .quad .LIDT
    .subsection 0

# LTR has marked the TSS as busy, and is executed again.
.Lk_wrong_ltr:
    mov $.LTASK, %eax
    ltr %ax
    ret

# The stack for ring 0 is in a page that is absent.
.Lk_wrong_rsp0:
    tg_gate 0x82, .Lk_interrupt, .LPUBLIC
    movq $.LABSENT + 0x1000, .LTSS + 0x04
    ret

# The gate uses a stack of the TSS that was never set: the frame would end at 0.
.Lk_wrong_ist:
    tg_gate 0x82, .Lk_interrupt, .LPUBLIC + 2
    ret

# gs in the kernel points to an absent page.
.Lk_wrong_kernel_gs:
    tg_wrmsr_address .LLSTAR, .Lk_syscall_path
    tg_wrmsr .LKERNEL_GS_BASE, .LABSENT
    ret

# SYSCALL exists, but is not enabled.
.Lk_wrong_sce:
    mov $.LEFER, %ecx
    rdmsr
    and $0xfffffffe, %eax
    wrmsr
    ret

# SYSCALL leads to a page that is absent.
.Lk_wrong_lstar:
    tg_wrmsr .LLSTAR, .LABSENT
    ret

# SYSCALL clears no flag: the program's single step continues in the kernel.
.Lk_wrong_fmask:
    tg_wrmsr .LFMASK, 0
    ret

# SYSENTER leads to a page that is absent.
.Lk_wrong_sysenter_eip:
    tg_wrmsr .LSYSENTER_EIP, .LABSENT
    ret

# The stack of SYSENTER is in a page that is absent.
.Lk_wrong_sysenter_esp:
    tg_wrmsr .LSYSENTER_ESP, .LABSENT + 0x1000
    tg_wrmsr_address .LSYSENTER_EIP, .Lk_push_first
    ret
    .balign 16, 0x90
.Lk_push_first:
    inc %r15
    push %rcx
    ud2
