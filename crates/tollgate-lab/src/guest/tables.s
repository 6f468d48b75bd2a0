# Descriptor tables, TSS and MSRs. They are written anew before each batch of an experiment, so that no change of the last one
# remains.

# The order of the GDT is not arbitrary. Four instructions compute the selectors that they load:
#     SYSCALL  CS = STAR[47:32], SS = that + 8
#     SYSRET   SS = STAR[63:48] + 8; CS = STAR[63:48] to a 32-bit program, that + 16 to a 64-bit one
#     SYSENTER CS = SYSENTER_CS, SS = that + 8
#     SYSEXIT  CS = SYSENTER_CS + 16, SS + 24 to a 32-bit program; CS + 32, SS + 40 to a 64-bit one
# (SDM 3A, "Fast system calls in 64-bit mode"; SDM 2B, the instructions; APM 2, "SYSCALL and SYSRET".)
# With both first selectors 8, the six segments below serve all of them.
    .set .LKERNEL_CODE, 0x08    # STAR[47:32] and SYSENTER_CS
    .set .LKERNEL_DATA, 0x10    # the stack of SYSCALL and SYSENTER: + 8
    .set .LUSER_CODE32, 0x1b    # STAR[63:48], of SYSRET to 32 bits; SYSEXIT's + 16
    .set .LUSER_DATA, 0x23      # the stack of both SYSRETs: + 8; of SYSEXIT to 32 bits: + 24
    .set .LUSER_CODE, 0x2b      # SYSRET to 64 bits: + 16; SYSEXIT's + 32
    .set .LUSER_DATA_EXIT, 0x33 # the stack of SYSEXIT to 64 bits: + 40. A copy of 20h, required by the sum.
    .set .LSPARE, 0x38          # kernel code of 32 bits: unused, so wrong setups overwrite it
    .set .LTASK, 0x40           # the TSS: a system descriptor takes 16 bytes in long mode
    .set .LCALL_GATE, 0x50      # so does a gate
    .set .LGDT_SIZE, 0x60
    .set .LSTAR, 0x001b0008     # the high half; SYSRET itself sets RPL 3, which is stated here too

    .subsection 1
    .balign 16
.Lk_gdt:
    .quad 0
    .quad 0x00af9b000000ffff    # 08 code, 64 bits, ring 0
    .quad 0x00cf93000000ffff    # 10 data, ring 0
    .quad 0x00cffb000000ffff    # 18 code, 32 bits, ring 3
    .quad 0x00cff3000000ffff    # 20 data, ring 3
    .quad 0x00affb000000ffff    # 28 code, 64 bits, ring 3
    .quad 0x00cff3000000ffff    # 30 data, ring 3
    .quad 0x00cf9b000000ffff    # 38 code, 32 bits, ring 0
    .quad 0x67 + (.LTSS << 16) + (0x89 << 40), 0
    .quad 0, 0                  # 50 the call gate: set_up fills in its handler
.Lk_gdt_end:

    .short 0, 0, 0
# Loaded on the way to long mode: the copy in the image. set_up loads the live one.
.Lk_gdt_pointer:
    .short .LGDT_SIZE - 1
    .quad .Lk_gdt - .Lk_begin + .LBASE

    .short 0, 0, 0
.Lk_live_gdt:
    .short .LGDT_SIZE - 1
    .quad .LGDT

# Vectors up to 84h: those of exceptions, and five that programs use.
    .set .LVECTORS, 0x85
    .short 0, 0, 0
.Lk_live_idt:
    .short .LVECTORS * 16 - 1
    .quad .LIDT
    .subsection 0

# Kinds of gates, as in their second word of 4 bytes: present, DPL, type, and the TSS's stack to use, if any.
    .set .LINTERRUPT, 0x8e00        # an interrupt gate that programs may not call
    .set .LFAULT, 0x8e01            # the same, always on stack 1 of the TSS
    .set .LPUBLIC, 0xee00           # one that ring 3 may
    .set .LCALL, 0xec00             # a call gate that ring 3 may

# Writes a gate of 16 bytes at rdi, with the target rax and the kind edx, through the kernel's code segment. SDM 3A, "64-Bit
# mode IDT". Call gates have the same layout ("Call gates").
    .balign 16, 0x90
.Lk_set_gate:
    mov %ax, (%rdi)
    movw $.LKERNEL_CODE, 2(%rdi)
    mov %edx, 4(%rdi)
    shr $16, %rax
    mov %ax, 6(%rdi)
    shr $16, %rax
    mov %rax, 8(%rdi)
    ret

# Writes the gate of one vector.
.macro tg_gate vector, handler, kind
    mov $.LIDT + \vector * 16, %edi
    lea \handler(%rip), %rax
    mov $\kind, %edx
    call .Lk_set_gate
.endm

.macro tg_wrmsr number, low, high=0
    mov $\number, %ecx
    mov $\low, %eax
    mov $\high, %edx
    wrmsr
.endm

# Writes an MSR that holds an address of the image.
.macro tg_wrmsr_address number, label
    mov $\number, %ecx
    lea \label(%rip), %rax
    xor %edx, %edx
    wrmsr
.endm

    .set .LSYSENTER_CS, 0x174
    .set .LSYSENTER_ESP, 0x175
    .set .LSYSENTER_EIP, 0x176
    .set .LEFER, 0xc0000080
    .set .LSTAR_MSR, 0xc0000081
    .set .LLSTAR, 0xc0000082
    .set .LCSTAR, 0xc0000083
    .set .LFMASK, 0xc0000084
    .set .LGS_BASE, 0xc0000101
    .set .LKERNEL_GS_BASE, 0xc0000102

    .balign 16, 0x90
.Lk_set_up:
    cli
    mov $.LPML4, %eax
    mov %rax, %cr3
    mov $0xa0, %eax                 # PAE, PGE, and no process-context identifiers
    mov %rax, %cr4

# Copies the GDT; this also clears the busy bit that LTR sets in the TSS's descriptor.
    lea .Lk_gdt(%rip), %rsi
    mov $.LGDT, %edi
    mov $.LGDT_SIZE, %ecx
    rep movsb
    mov $.LGDT + .LCALL_GATE, %edi
    lea .Lk_far_call(%rip), %rax
    mov $.LCALL, %edx
    call .Lk_set_gate
    lgdt .Lk_live_gdt(%rip)

# Makes the TSS (SDM 3A, "Task management in 64-bit mode"): the stack for ring 0, and one for faults. The map of ports would
# begin at the end of the segment, so there is none.
    mov $.LTSS, %edi
    xor %eax, %eax
    mov $0x68, %ecx
    rep stosb
    movq $.LSTACK_RSP0, .LTSS + 0x04
    movq $.LSTACK_IST, .LTSS + 0x24
    movw $0x68, .LTSS + 0x66
    mov $.LTASK, %eax
    ltr %ax

# Makes the IDT: every exception ends the experiment, except those that it uses.
    mov $.LIDT, %edi
    xor %eax, %eax
    mov $.LVECTORS * 2, %ecx
    rep stosq
    mov $.LIDT, %edi
    lea .Lk_exceptions(%rip), %rsi
1:  mov %rsi, %rax
    mov $.LFAULT, %edx
    call .Lk_set_gate
    add $16, %edi
    add $16, %rsi
    cmp $.LIDT + 32 * 16, %edi
    jne 1b
    tg_gate 0x80, .Lk_interrupt, .LPUBLIC
    tg_gate 0x81, .Lk_interrupt_swapgs, .LPUBLIC
    lidt .Lk_live_idt(%rip)

# In the kernel gs points to this processor's data, in ring 3 it is 0. SWAPGS exchanges the two.
    movq $.LSTACK_SYSCALL, .LPER_CPU
    movq $0, .LPER_CPU + 8
    tg_wrmsr .LGS_BASE, 0
    tg_wrmsr .LKERNEL_GS_BASE, .LPER_CPU

    testl $.LHAS_SYSCALL, .Lk_features(%rip)
    jz 2f
    mov $.LEFER, %ecx
    rdmsr
    or $1, %eax                     # SCE
    wrmsr
    tg_wrmsr .LSTAR_MSR, 0, .LSTAR
    tg_wrmsr_address .LLSTAR, .Lk_syscall
    tg_wrmsr_address .LCSTAR, .Lk_syscall_compat
    tg_wrmsr .LFMASK, 0x47700       # AC, NT, IOPL, DF, IF and TF are not the caller's to choose
2:
    testl $.LHAS_SYSENTER, .Lk_features(%rip)
    jz 3f
    tg_wrmsr .LSYSENTER_CS, .LKERNEL_CODE
    tg_wrmsr .LSYSENTER_ESP, .LSTACK_SYSENTER
    tg_wrmsr_address .LSYSENTER_EIP, .Lk_sysenter
3:
    ret
