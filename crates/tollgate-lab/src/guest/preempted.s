# Entries of SYSCALL in a kernel that may be preempted: two threads, each of which makes one call, and the timer, which gives the processor
# from one to the other wherever interrupts are on, in ring 3 and in ring 0. It is copied to .LQ_CODE of a machine of its own, which
# interpreter/preempted.rs sets up; it does not belong to the image that PCs boot.
#
# gs:0 is the stack of the running thread in the kernel, gs:8 a place for the caller's, as in handlers.s.

.pushsection .rodata.tollgate_preempted, "a", @progbits
.balign 16

    .set .LQ_CODE, 0x7000
    .set .LQ_CURRENT, 0x8010        # which thread runs: 0 or 8
    .set .LQ_SAVED, 0x8018          # where the registers of one that does not run are, by thread
    .set .LQ_STACK, 0x8028          # the ends of their stacks in the kernel, by thread
    .set .LQ_STACK_WORD, 0x8038     # where the entry finds the running thread's: gs:0, or a word of a reader's own
    .set .LQ_GS, 0x8040             # the base of the kernel's GS
    .set .LQ_RSP0, 0x8084           # in the TSS
    .set .LQ_USER_DATA, 0x23
    .set .LQ_USER_CODE, 0x2b

    .globl tollgate_preempted_begin
    .hidden tollgate_preempted_begin
tollgate_preempted_begin:
.Lq_begin:

# A thread.
    .balign 16, 0x90
.Lq_thread:
    syscall
.Lq_done:
    jmp .Lq_done

# An interrupt: from ring 3 it is on RSP0, from ring 0 on the stack that it finds. Whose stack that is the kernel has to see to.
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
    mov %gs:0, %rdx                 # a kernel that uses GS: a fault where it is ring 3's
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

# NMI and #MC come wherever they like: the handler trusts neither CS nor RSP. It has a stack of its own, and gives GS the kernel's base.
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

# early: what stands before the caller's stack is in the frame; on and off: what lets interrupts come, and keeps them away again.
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

# Where each part begins, in the order of Part in interpreter/preempted.rs, and behind them the entries.
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
