# A test-and-set that uses page faults, by Machida and Shinohara ("The Implementation of user level test-and-set on PS2
# Linux", Sony Research Forum 2000, figures 9 and 11), with r15 in place of their k1:
#
#     the primitive   is a page at .LPRIMITIVE_AT in every program. It copies the address of the lock to r15, tests the lock, and stores
#                     through r15. Nothing else in a program uses r15.
#     the hook        writes .LSPOILED, which is never mapped, to r15 of a program that resumes after another one ran.
#     the handler     of page faults knows the store by its three marks, and sends the program back to the primitive's beginning.
#
# So a store is executed only if its program has kept the processor since it wrote r15, and it wrote r15 before it tested. A
# program that was preempted in between faults instead, and tests again. A restart repeats nothing harmful: before the store
# the primitive changes only eax, r15 and the flags, and rdi is unchanged.
#
# It holds on one processor only: with two, the other can store between test and store without any interruption here.
# `tollgate lab locks --prove` tries every point at which a program can be preempted.

# Called if bit 8 of the archive's options is set, before another thread than the last is entered. rbx is the thread, rcx the
# last one, or 0.
.Ls_at_switch:
    testl $.LOPTION_TIMER_ONLY, .Ls_options(%rip)
    jnz 1f
.Ls_spoil:
    movq $.LSPOILED, .LSAVED_R15(%rbx)
    ret

# Wrong: it spoils r15 only if the timer ended the last turn. But a thread that the timer interrupted also resumes when
# another yields or ends.
1:  test %rcx, %rcx
    jz 2f
    cmpl $.LTIMER, .LSAVED_WAY(%rcx)
    je .Ls_spoil
2:  ret

# Called if bit 9 is set, at a page fault of the thread at rbx; .Ls_cr2 is its address. With eax 0 the thread continues, else
# the fault ends the program.
#
# A program may write .LSPOILED to r15 itself and jump into the page. It starts again and loses only time. If it passes
# .LSPOILED as the lock, the error code keeps it from repeating for ever: its first fault is that of a load.
.Ls_at_page_fault:
    mov $1, %eax
    cmpq $.LSPOILED, .Ls_cr2(%rip)
    jne 1f
    cmpl $6, .LSAVED_ERROR(%rbx)    # a program's write, no page (SDM 3A, "Page-fault exceptions")
    jne 1f
    mov .LSAVED_RIP(%rbx), %rcx
    mov %rcx, %rdx
    and $-4096, %rdx
    cmp $.LPRIMITIVE_AT, %rdx       # by an instruction of the page
    jne 1f
    xor %eax, %eax
    testl $.LOPTION_RESUME + .LOPTION_REPEAT, .Ls_options(%rip)
    jnz 2f
    and $-.LPLACE, %rcx             # each primitive begins at its place
    mov %rcx, .LSAVED_RIP(%rbx)
1:  ret

# Wrong: the program repeats its store, with or without the address of the lock in r15.
2:  testl $.LOPTION_RESUME, .Ls_options(%rip)
    jz 3f
    mov .LSAVED_RDI(%rbx), %rcx
    mov %rcx, .LSAVED_R15(%rbx)
3:  ret

# The page. rdi is the address of the lock, four bytes; eax becomes their old value: 0 if the caller now has the lock. r15 and
# the flags are lost, all other registers kept.
    .set .LPLACE, 64
.macro ts_place
    .balign .LPLACE, 0xcc
.endm

    .balign .LPLACE, 0xcc
.Ls_primitive:
    mov %rdi, %r15                  # a preemption after this is noticed,
    mov (%rdi), %eax                # the test,
    test %eax, %eax
    jnz 1f
    movl $1, (%r15)                 # and the store, or a fault
1:  ret

# Figure 11: it checks r15 before it stores, so it usually starts again without the fault, which still guards the last step.
    ts_place
2:  mov %rdi, %r15
    mov (%rdi), %eax
    test %eax, %eax
    jnz 1f
    cmp %rdi, %r15
    jne 2b
    movl $1, (%r15)
1:  ret

# Wrong: a preemption between the test and the copy is not noticed.
    ts_place
    mov (%rdi), %eax
    mov %rdi, %r15
    test %eax, %eax
    jnz 1f
    movl $1, (%r15)
1:  ret

# Wrong: the store does not go through r15.
    ts_place
    mov %rdi, %r15
    mov (%rdi), %eax
    test %eax, %eax
    jnz 1f
    movl $1, (%rdi)
1:  ret
.Ls_primitive_end:

# Bit 10: maps a page of zeroes that every program can read and write, for locks between programs.
.Ls_share_words:
    testl $.LOPTION_WORDS, .Ls_options(%rip)
    jz 1f
    mov $.LWORDS, %edi
    xor %eax, %eax
    mov $4096 / 8, %ecx
    rep stosq
    mov .Ls_no_execute(%rip), %rax
    or $.LWORDS + 7, %rax
    mov %rax, .LSHARED_PT + 510 * 8
1:  ret

# Checks that 4 bytes at rdi lie in that page. ZF is set if they do.
.Ls_is_shared_word:
    testl $.LOPTION_WORDS, .Ls_options(%rip)
    jz 1f
    lea -.LWORDS_AT(%rdi), %rax
    cmp $4096 - 4, %rax
    ja 1f
    cmp %eax, %eax
    ret
1:  or $1, %eax
    ret

# The memory that decides how programs continue, besides their registers, memory and page tables: address, and number of words
# of 8 bytes. Counters and clocks are excluded. First the words that programs share, then the kernel's own, then a line for
# each of the first threads.
    .subsection 1
    .balign 4
    .globl tollgate_guest_system_state
    .hidden tollgate_guest_system_state
tollgate_guest_system_state:
    .long .LWORDS, 6
    .long .Ls_thread - .Lk_begin + .LBASE, 2
    .long .Ls_limit - .Lk_begin + .LBASE, 2
    .long .LTSS + 4, 1
    .set .Ls_at, .LTHREADS
    .rept 3
    .long .Ls_at, 5
    .long .Ls_at + .LTHREAD_SAVED, 22
    .set .Ls_at, .Ls_at + .LTHREAD
    .endr
    .globl tollgate_guest_system_state_end
    .hidden tollgate_guest_system_state_end
tollgate_guest_system_state_end:
    .subsection 0
