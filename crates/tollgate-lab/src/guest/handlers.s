# The targets of the crossings. A handler counts in r15, which no program here uses for anything else, to prove that each
# operation arrived; then it returns. It does more only if the experiment is about more.

    .balign 64, 0x90
.Lk_interrupt:                      # int 80h, int3
    inc %r15
    iretq

    .balign 64, 0x90
.Lk_interrupt_swapgs:               # int 81h
    swapgs
    inc %r15
    swapgs
    iretq

    .balign 64, 0x90
.Lk_far_call:                       # through the call gate
    inc %r15
    lretq

# SYSCALL changes neither the stack nor gs: this handler is on the caller's stack and must not use it.
    .balign 64, 0x90
.Lk_syscall:
    inc %r15
    sysretq

    .balign 64, 0x90
.Lk_syscall_compat:
    inc %r15
    sysretl

    .balign 64, 0x90
.Lk_syscall_swapgs:
    swapgs
    inc %r15
    swapgs
    sysretq

# The complete path of a small kernel. On arrival rcx holds the caller's rip, r11 its rflags, FMASK has cleared IF, and rsp is
# still the caller's. rax holds the number of the call, and later its result.
    .balign 64, 0x90
.Lk_syscall_path:
    swapgs                          # gs: this processor's data
    mov %rsp, %gs:8                 # the caller's stack pointer, until there is another place for it
    mov %gs:0, %rsp                 # the kernel's stack
    push $.LUSER_DATA               # the frame that an interrupt would have pushed: ss,
    push %gs:8                      # rsp,
    push %r11                       # rflags,
    push $.LUSER_CODE               # cs,
    push %rcx                       # rip
    push %rbx                       # and every register but rax, which is the result
    push %rcx
    push %rdx
    push %rsi
    push %rdi
    push %rbp
    push %r8
    push %r9
    push %r10
    push %r11
    push %r12
    push %r13
    push %r14
    sti                             # everything is saved: interrupts may come
    cmp $.LCALLS, %rax
    jae 1f
    lea .Lk_calls(%rip), %rcx
    call *(%rcx,%rax,8)
    jmp 2f
1:  mov $-38, %rax                  # no such call
2:  cli                             # interrupts may not come: gs and the stack will be the caller's
    pop %r14
    pop %r13
    pop %r12
    pop %r11
    pop %r10
    pop %r9
    pop %r8
    pop %rbp
    pop %rdi
    pop %rsi
    pop %rdx
    pop %rcx
    pop %rbx
    mov 24(%rsp), %rsp              # the caller's stack, out of the frame
    swapgs
    sysretq                         # rip from rcx, rflags from r11

# The table of calls. The only one counts.
    .set .LCALLS, 1
    .subsection 1
    .balign 8
.Lk_calls:
    .quad .Lk_call_count - .Lk_begin + .LBASE
    .subsection 0
    .balign 16, 0x90
.Lk_call_count:
    inc %r15
    mov %r15, %rax
    ret

# SYSENTER saves nothing of the caller's: by convention rdx is the return address and rcx the stack pointer, as SYSEXIT
# requires. IF was cleared, and SYSEXIT does not set it. The instruction after STI executes before an interrupt can come.
    .balign 64, 0x90
.Lk_sysenter:
    inc %r15
    sti
    sysexitq

    .balign 64, 0x90
.Lk_sysenter_compat:
    inc %r15
    sti
    sysexitl

# Emulates an invalid instruction: eax to the power of ecx. The stack has the frame of a fault without an error code. Its rip
# is that of the instruction, so the handler must skip it.
    .balign 64, 0x90
.Lk_emulate:
    push %rcx
    push %rdx
    mov 16(%rsp), %rdx              # rip
    mov (%rdx), %edx
    and $0xffffff, %edx
    cmp $0xc889f0, %edx             # lock mov %ecx,%eax
    je 1f
    cmp $0xc8b90f, %edx             # ud1 %eax,%ecx
    jne 4f
1:  mov %eax, %edx
    mov $1, %eax
    test %ecx, %ecx
    jz 3f
2:  imul %edx, %eax
    dec %ecx
    jnz 2b
3:  addq $3, 16(%rsp)
    inc %r15
    pop %rdx
    pop %rcx
    iretq
4:  pop %rdx                        # any other still ends the experiment
    pop %rcx
    jmp .Lk_exceptions + 6 * 16

# Handles an absent page: the load gets the address, from CR2, and is skipped (8b 07, 2 bytes). The frame comes after the
# error code.
    .balign 64, 0x90
.Lk_page_fault:
    mov %cr2, %rax
    addq $2, 8(%rsp)
    inc %r15
    add $8, %rsp
    iretq

# Skips a privileged instruction of 1 byte in ring 3.
    .balign 64, 0x90
.Lk_general_protection:
    addq $1, 8(%rsp)
    inc %r15
    add $8, %rsp
    iretq

# Unexpected exceptions. Each vector has an entry of 16 bytes, which pushes a zero unless the processor pushes an error code,
# and the vector. SDM 3A, "Error code": 8, 10 to 14, 17 and 21 push one; APM 2, "Vectors": 29 and 30 as well.
    .balign 16, 0x90
.Lk_exceptions:
    .set .Lvector, 0
    .rept 32
    .balign 16, 0x90
    .if ((0x60227d00 >> .Lvector) & 1) == 0
    push $0
    .endif
    push $.Lvector
    jmp .Lk_exception
    .set .Lvector, .Lvector + 1
    .endr

# Ends the batch. It is on stack 1 of the TSS, from any ring, mode and stack: vector, error code, rip, cs, rflags, rsp, ss.
# Either the program of ring 3 has reached its last instruction, UD2, or it has faulted. The dispatcher continues after its
# call, with its own stack.
    .balign 16, 0x90
.Lk_exception:
    cld
    mov %rax, .Lk_ticks(%rip)       # the program's result: its ticks in edx:eax
    mov %edx, .Lk_ticks + 4(%rip)
    mov %r15, .Lk_count(%rip)
    mov %rdi, .Lk_value(%rip)
    mov $.LKERNEL_DATA, %eax
    mov %eax, %ss
    mov %eax, %ds
    mov %eax, %es
    pop %rax
    mov %rax, .Lk_vector(%rip)
    pop %rax
    mov %rax, .Lk_error(%rip)
    pop %rax
    mov %rax, .Lk_rip(%rip)
    pop %rax
    mov %rax, .Lk_cs(%rip)
    mov .Lk_resume(%rip), %rsp
    test %rsp, %rsp
    jz .Lk_broken
    movq $0, .Lk_resume(%rip)
    cmpq $6, .Lk_vector(%rip)
    jne 1f
    mov .Lk_rip(%rip), %rcx
    xor %eax, %eax
    cmp $.Lu_done - .Lu_begin + .LUSER, %rcx
    je 2f
    cmp $.Lu_done32 - .Lu_begin + .LUSER, %rcx
    je 2f
1:  mov $1, %eax
2:  ret
