# The end of a program: by a fault, by an instruction that the engine does not know, or by an address that no program can be
# at. All of its threads end with it, and nothing else does.

# An exception of the thread at rbx.
    .balign 16, 0x90
.Ls_fault:
    mov %cr2, %rax
    mov %rax, .Ls_cr2(%rip)
    andq $-0x10001, .LSAVED_RFLAGS(%rbx)  # RF belongs to the fault, not to the program; QEMU does not set it
    cmpl $14, .LSAVED_WAY(%rbx)
    jne .Ls_dead
    testl $.LOPTION_PAGE_FAULT, .Ls_options(%rip)
    jz .Ls_dead
    call .Ls_at_page_fault
    test %eax, %eax
    jz .Ls_leave
.Ls_dead:
    cmpl $14, .LSAVED_WAY(%rbx)     # CR2 is valid only for page faults
    je 1f
    movq $0, .Ls_cr2(%rip)
1:  call .Ls_say_dead
    call .Ls_say_registers
    jmp .Ls_end_program

# A return to an address that is not canonical, or beyond 4 GiB for 32-bit code, which SYSENTER can request: the program gets
# a #GP(0) there.
.Ls_nowhere:
    mov .Ls_thread(%rip), %rbx
    mov .LTHREAD_PROGRAM(%rbx), %rbp
    movq $13, .LSAVED_WAY(%rbx)
    movq $0, .LSAVED_ERROR(%rbx)
    jmp .Ls_dead

.Ls_end_unknown:
    call .Ls_say_unknown
    call .Ls_say_registers

# Ends the program at rbp.
.Ls_end_program:
    mov $.LTHREADS, %ebx
1:  cmp %rbp, .LTHREAD_PROGRAM(%rbx)
    jne 4f
    cmpl $.LREADY, .LTHREAD_STATE(%rbx)
    jne 2f
    decq .Ls_ready(%rip)
2:  cmpl $.LSLEEPING, .LTHREAD_STATE(%rbx)
    jne 3f
    decq .Ls_sleeping(%rip)
3:  movl $.LFREE, .LTHREAD_STATE(%rbx)
4:  add $.LTHREAD, %rbx
    cmp .Ls_limit(%rip), %rbx
    jb 1b
    jmp .Ls_schedule

# Nothing is ready, and nothing will be. Threads that still wait would wait for ever.
.Ls_stop:
    mov $.LTHREADS, %ebx
1:  cmp .Ls_limit(%rip), %rbx
    jae 3f
    cmpl $.LWAITING, .LTHREAD_STATE(%rbx)
    jne 2f
    call .Ls_say_stuck
2:  add $.LTHREAD, %rbx
    jmp 1b
3:  call .Ls_say_stop
    jmp .Lk_end
