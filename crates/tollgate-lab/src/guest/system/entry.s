# The ways in and out. Every way in pushes the program's registers to the end of its thread, in the form of an interrupt
# frame, and .Ls_leave returns from there.
#
# There is no SWAPGS: with one processor the kernel's data have fixed addresses. So no value of a program's GS matters here.

# An interrupt or exception: on RSP0, which is the thread's end, the processor has pushed ss, rsp, rflags, cs, rip and, for
# some exceptions, an error code. For the others a zero takes its place.
.macro ts_way number
    push $0
    push $\number
    jmp .Ls_way
.endm

    .balign 16, 0x90
.Ls_exceptions:
    .set .Ls_vector, 0
    .rept 32
    .balign 16, 0x90
    .if ((0x60227d00 >> .Ls_vector) & 1) == 0
    push $0
    .endif
    push $.Ls_vector
    jmp .Ls_way
    .set .Ls_vector, .Ls_vector + 1
    .endr

    .balign 16, 0x90
.Ls_int80:
    ts_way 0x80

# The engine has met an unknown instruction in ring 3.
    .balign 16, 0x90
.Ls_unknown:
    ts_way .LUNKNOWN

# The timer. In ring 0 it can come in two places: while nothing is ready, and at the first instructions of a call through the
# gate, which does not disable interrupts. There it is only counted.
    .balign 16, 0x90
.Ls_timer:
    testb $3, 8(%rsp)
    jz 1f
    ts_way .LTIMER
1:  push %rax
    incq .Ls_pending(%rip)
    mov $0x20, %al                  # the end of the interrupt, to the controller
    out %al, $0x20
    pop %rax
    iretq

# A non-maskable interrupt, a double fault and a machine check can come before there is a stack, so they have one of their
# own. Nothing here causes them.
    .balign 16, 0x90
.Ls_nmi:
    push $0
    push $2
    jmp .Ls_broken
    .balign 16, 0x90
.Ls_double_fault:
    push $8
    jmp .Ls_broken
    .balign 16, 0x90
.Ls_machine_check:
    push $0
    push $18
    jmp .Ls_broken

# A spurious interrupt: no device has requested it.
    .balign 16, 0x90
.Ls_spurious:
    iretq

# SYSCALL: rcx is rip, r11 is rflags, and the stack is still the caller's.
    .balign 16, 0x90
.Ls_syscall:
    mov %rsp, .Ls_rsp(%rip)
    mov .Ls_frame(%rip), %rsp
    push $.LUSER_DATA
    push .Ls_rsp(%rip)
    push %r11
    push $.LUSER_CODE
    push %rcx
    push $0
    push $.LWAY_SYSCALL
    jmp .Ls_save

# SYSCALL from 32-bit code.
    .balign 16, 0x90
.Ls_syscall_compat:
    mov %rsp, .Ls_rsp(%rip)
    mov .Ls_frame(%rip), %rsp
    push $.LUSER_DATA
    push .Ls_rsp(%rip)
    push %r11
    push $.LUSER_CODE32
    push %rcx
    push $0
    push $.LWAY_SYSCALL
    jmp .Ls_save

# SYSENTER: by convention rdx is rip and rcx is rsp. It clears only IF: the caller's DF, NT and AC are still set. With NT set
# IRETQ would fault. (TF stays set as well: .Ls_ring_0.)
    .balign 16, 0x90
.Ls_sysenter:
    mov .Ls_frame(%rip), %rsp
    push $.LUSER_DATA
    push %rcx
    pushfq
    orq $0x200, (%rsp)
    push .Ls_cs(%rip)
    push %rdx
    push $0
    push $.LWAY_SYSENTER
    push $2
    popfq
    jmp .Ls_save

# The call gate: RSP0 has ss, rsp, cs and rip, but no flags; they are still the caller's, even IF. They are inserted into the
# frame.
    .balign 16, 0x90
.Ls_gate:
    pushfq
    cli
    push %rax
    mov 8(%rsp), %rax
    xchg %rax, 24(%rsp)             # the flags to where cs was,
    xchg %rax, 16(%rsp)             # cs to where rip was,
    mov %rax, 8(%rsp)               # and rip to where the flags were
    pop %rax
    push $0
    push $.LWAY_GATE
    push $2
    popfq
    jmp .Ls_save

.Ls_way:
    testb $3, 24(%rsp)
    jz .Ls_ring_0
.Ls_save:
    .irp register, rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
    push %\register
    .endr
    mov $.LSTACK, %esp
    cld
    mov .Ls_thread(%rip), %rbx
    mov .LTHREAD_PROGRAM(%rbx), %rbp
    mov .LSAVED_WAY(%rbx), %eax
    cmp $.LTIMER, %eax
    jb .Ls_fault
    je .Ls_tick
    cmp $.LUNKNOWN, %eax
    je .Ls_end_unknown
    jmp .Ls_call

# Returns to the thread at rbx.
    .balign 16, 0x90
.Ls_leave:
    cmpq $0, .Ls_pending(%rip)
    jne .Ls_tick_pending
    call .Ls_timer_needed
    cmp .Ls_thread(%rip), %rbx
    je 1f
    call .Ls_switch
1:  mov .LSAVED_RIP(%rbx), %rax     # an address that no program can be at: IRETQ would fault in the kernel
    mov $47, %ecx
    cmpq $.LUSER_CODE32, .LSAVED_CS(%rbx)
    jne 2f
    mov $32, %ecx
2:  shr %cl, %rax
    jnz .Ls_nowhere
    lea .LTHREAD_SAVED(%rbx), %rsp
    .irp register, r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx
    pop %\register
    .endr
    cmpq $.LWAY_SYSCALL, 8(%rsp)
    jne 3f
    cmpq $.LUSER_CODE, 32(%rsp)
    jne 3f
    pop %rax                        # SYSRET needs in rcx and r11 what SYSCALL left there
    mov 16(%rsp), %rcx
    mov 32(%rsp), %r11
    mov 40(%rsp), %rsp
    sysretq
3:  pop %rax                        # SYSEXIT could not restore the flags, and the gate's caller need not be in 64-bit mode
    add $16, %rsp
    iretq

# An exception in the kernel is a defect and ends the run, with one exception: the single step of a program that sets TF and
# enters by SYSENTER or the call gate, which do not clear it. It interrupts the entry's first instruction, and is treated as
# the program's.
    .balign 16, 0x90
.Ls_ring_0:
    cmpq $1, (%rsp)
    jne 2f
    push %rax
    lea .Ls_sysenter(%rip), %rax
    cmp %rax, 24(%rsp)
    je 1f
    lea .Ls_gate(%rip), %rax
    cmp %rax, 24(%rsp)
    pop %rax
    jne 2f
    mov .Ls_frame(%rip), %rsp       # ss, rsp, cs, rip
    sub $32, %rsp
    push $0x302
    push %rax
    mov 8(%rsp), %rax
    xchg %rax, 24(%rsp)
    xchg %rax, 16(%rsp)
    mov %rax, 8(%rsp)
    pop %rax
    push $0
    push $1
    jmp .Ls_save
1:  pop %rax
    mov .Ls_frame(%rip), %rsp
    push $.LUSER_DATA
    push %rcx
    push $0x302
    push .Ls_cs(%rip)
    push %rdx
    push $0
    push $1
    jmp .Ls_save
2:
.Ls_broken:
    popq .Lk_vector(%rip)
    popq .Lk_error(%rip)
    popq .Lk_rip(%rip)
    popq .Lk_cs(%rip)
    jmp .Lk_broken

# Sets the gates and MSRs that lead here, over those of set_up.
    .balign 16, 0x90
.Ls_set_up:
    mov $.LIDT, %edi
    lea .Ls_exceptions(%rip), %rsi
1:  mov %rsi, %rax
    mov $.LINTERRUPT, %edx
    call .Lk_set_gate
    add $16, %edi
    add $16, %rsi
    cmp $.LIDT + .LTIMER * 16, %edi
    jne 1b
2:  lea .Ls_spurious(%rip), %rax
    mov $.LINTERRUPT, %edx
    call .Lk_set_gate
    add $16, %edi
    cmp $.LIDT + .LUNKNOWN * 16, %edi
    jne 2b
    tg_gate 3, .Ls_exceptions+3*16, .LPUBLIC
    tg_gate 4, .Ls_exceptions+4*16, .LPUBLIC
    tg_gate 2, .Ls_nmi, .LFAULT
    tg_gate 8, .Ls_double_fault, .LFAULT
    tg_gate 18, .Ls_machine_check, .LFAULT
    tg_gate .LTIMER, .Ls_timer, .LINTERRUPT
    tg_gate .LUNKNOWN, .Ls_unknown, .LINTERRUPT
    tg_gate 0x80, .Ls_int80, .LPUBLIC
    movq $0, .LIDT + 0x81 * 16      # the gate of the experiments
    movq $0, .LIDT + 0x81 * 16 + 8
    mov $.LGDT + .LCALL_GATE, %edi
    lea .Ls_gate(%rip), %rax
    mov $.LCALL, %edx
    call .Lk_set_gate
    testl $.LHAS_SYSCALL, .Lk_features(%rip)
    jz 3f
    tg_wrmsr_address .LLSTAR, .Ls_syscall
    tg_wrmsr_address .LCSTAR, .Ls_syscall_compat
3:  testl $.LHAS_SYSENTER, .Lk_features(%rip)
    jz 4f
    tg_wrmsr_address .LSYSENTER_EIP, .Ls_sysenter

# There is no local descriptor table. After a reset there is one, of 64 KiB at address 0, from which a program could load any
# byte.
4:  xor %eax, %eax
    lldt %ax

# Asks the interpreter to report unknown instructions. Other engines have no device at this port.
    mov $.LUNKNOWN, %al
    out %al, $0xeb

# Disables x87: its state is shared by all programs, and not saved. CR0.EM makes each x87 instruction #NM, and MMX and SSE
# #UD.
    mov %cr0, %rax
    or $4, %eax
    mov %rax, %cr0
    ret
