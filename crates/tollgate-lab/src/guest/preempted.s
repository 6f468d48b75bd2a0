# Entries of SYSCALL in a preemptible kernel. Two threads make one call each, and the timer switches between them wherever
# interrupts are on, in ring 3 and in ring 0. This is copied to .LQ_CODE of a separate machine, which interpreter/preempted.rs
# sets up; it is not part of the image that PCs boot.
#
# gs:0 is the running thread's kernel stack, gs:8 a place for the caller's stack, as in handlers.s.

.pushsection .rodata.tollgate_preempted, "a", @progbits
.balign 16

    .set .LQ_CODE, 0x7000
    .set .LQ_CURRENT, 0x8010        # the running thread: 0 or 8
    .set .LQ_SAVED, 0x8018          # the saved registers of a thread that does not run, by thread
    .set .LQ_STACK, 0x8028          # the ends of the kernel stacks, by thread
    .set .LQ_STACK_WORD, 0x8038     # the word in which the entry finds the running thread's stack: gs:0, or a word of the user's own entry
    .set .LQ_GS, 0x8040             # the base of the kernel's GS
    .set .LQ_RSP0, 0x8084           # in the TSS
    .set .LQ_USER_DATA, 0x23
    .set .LQ_USER_CODE, 0x2b

    .globl tollgate_preempted_begin
    .hidden tollgate_preempted_begin
tollgate_preempted_begin:
.Lq_begin:

    .balign 16, 0x90
.Lq_thread:
    syscall
.Lq_done:
    jmp .Lq_done

# Handles the timer: from ring 3 on RSP0, from ring 0 on the current stack. The kernel must make sure that this is its own.
    .balign 16, 0x90
.Lq_timer:
    testb $3, 8(%rsp)
    jz 1f
    swapgs
1:  .irp register, r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax
    push %\register
    .endr
    mov .LQ_CURRENT, %rdi
    mov %rsp, .LQ_SAVED(%rdi)
    xor $8, %rdi
    mov %rdi, .LQ_CURRENT
    mov .LQ_SAVED(%rdi), %rsp
    mov .LQ_STACK(%rdi), %rax
    mov %rax, .LQ_RSP0
    mov %gs:0, %rdx                 # a use of GS by the kernel: it faults if GS is ring 3's
    mov .LQ_STACK_WORD, %rdx
    mov %rax, (%rdx)
    .irp register, rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
    pop %\register
    .endr
    testb $3, 8(%rsp)
    jz 2f
    swapgs
2:  iretq
.Lq_timer_end:

# NMI and #MC can come anywhere, so the handler trusts neither CS nor RSP. It has a stack of its own, and gives GS the
# kernel's base.
    .balign 16, 0x90
.Lq_strike:
    push %rax
    push %rcx
    push %rdx
    mov $0xc0000101, %ecx           # IA32_GS_BASE
    rdmsr
    push %rax
    push %rdx
    mov .LQ_GS, %eax
    mov .LQ_GS + 4, %edx
    wrmsr
    mov %gs:0, %rax
    pop %rdx
    pop %rax
    wrmsr
    pop %rdx
    pop %rcx
    pop %rax
    iretq

# `early` runs before the caller's stack is in the frame; `on` and `off` allow interrupts and disable them again.
.macro tq_entry name, reload, early="", on="sti", off="cli"
    .balign 16, 0x90
.Lq_\name:
    swapgs
    mov %rsp, %gs:8
    mov %gs:0, %rsp
    \early
    push $.LQ_USER_DATA             # the frame that an interrupt would have pushed
    push %gs:8
    push %r11
    push $.LQ_USER_CODE
    push %rcx
    \on
    mov $0, %eax                    # the call
    \off
    pop %rcx
    add $8, %rsp
    pop %r11
    mov \reload, %rsp
    swapgs
    sysretq
.endm

tq_entry gs8, "%gs:8"
tq_entry frame, "(%rsp)"
tq_entry gs8_masked, "%gs:8", on="", off=""
tq_entry late, "(%rsp)", early="sti", on=""
tq_entry no_cli, "(%rsp)", off=""

    .globl tollgate_preempted_end
    .hidden tollgate_preempted_end
tollgate_preempted_end:

# The address of each part, in the order of Part in interpreter/preempted.rs, then the entries.
    .balign 4
    .globl tollgate_preempted_parts
    .hidden tollgate_preempted_parts
tollgate_preempted_parts:
    .irp part, thread, done, timer, timer_end, strike, gs8, frame, gs8_masked, late, no_cli
    .long .Lq_\part - .Lq_begin + .LQ_CODE
    .endr
    .globl tollgate_preempted_parts_end
    .hidden tollgate_preempted_parts_end
tollgate_preempted_parts_end:
.popsection
