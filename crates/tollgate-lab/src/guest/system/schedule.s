# The scheduler. Threads are in one table; the next ready thread after the current one runs, round robin. The timer ends
# turns. It runs only if needed: while two threads are ready, or one sleeps. So a program that runs alone is never
# interrupted, and its instructions are counted exactly.

# Changes the state of the thread at rbx, which was ready.
.macro ts_ready_no_more state
    decq .Ls_ready(%rip)
    movl $\state, .LTHREAD_STATE(%rbx)
.endm

# A tick, in ring 3.
    .balign 16, 0x90
.Ls_tick:
    incq .Ls_pending(%rip)
    mov $0x20, %al
    out %al, $0x20
.Ls_tick_pending:
    mov .Ls_pending(%rip), %rax
    movq $0, .Ls_pending(%rip)
    add %rax, .Ls_ticks(%rip)
    call .Ls_wake

# Chooses the next thread. If none is ready the processor waits for the timer; if none ever will be, the run ends.
    .balign 16, 0x90
.Ls_schedule:
    mov .Ls_thread(%rip), %rbx
    mov .Ls_limit(%rip), %rdx
    mov %rdx, %rcx
    sub $.LTHREADS, %rcx
    shr $10, %rcx                   # each is checked once
1:  add $.LTHREAD, %rbx
    cmp %rdx, %rbx
    jb 2f
    mov $.LTHREADS, %ebx
2:  cmpl $.LREADY, .LTHREAD_STATE(%rbx)
    je .Ls_leave
    dec %ecx
    jnz 1b
    cmpq $0, .Ls_sleeping(%rip)
    je .Ls_stop
    call .Ls_timer_needed
3:  cmpq $0, .Ls_pending(%rip)
    jne .Ls_tick_pending
    sti
    hlt
    cli
    jmp 3b

# Wakes the threads whose tick has come.
.Ls_wake:
    cmpq $0, .Ls_sleeping(%rip)
    je 3f
    mov $.LTHREADS, %ecx
    mov .Ls_ticks(%rip), %rax
1:  cmpl $.LSLEEPING, .LTHREAD_STATE(%rcx)
    jne 2f
    cmp .LTHREAD_FOR(%rcx), %rax
    jb 2f
    movl $.LREADY, .LTHREAD_STATE(%rcx)
    incq .Ls_ready(%rip)
    decq .Ls_sleeping(%rip)
2:  add $.LTHREAD, %ecx
    cmp .Ls_limit(%rip), %rcx
    jb 1b
3:  ret

# Switches to the thread at rbx. rcx is the last thread, or 0, until .Ls_at_switch.
    .balign 16, 0x90
.Ls_switch:
    mov .Ls_thread(%rip), %rcx
    test %rcx, %rcx
    jz 1f
    mov %ds, .LTHREAD_DS(%rcx)
    mov %es, .LTHREAD_ES(%rcx)
    mov %fs, .LTHREAD_FS(%rcx)
    mov %gs, .LTHREAD_GS(%rcx)
1:  mov %rbx, .Ls_thread(%rip)
    lea .LTHREAD(%rbx), %rax
    mov %rax, .Ls_frame(%rip)
    mov %rax, .LTSS + 4             # RSP0
    mov .LTHREAD_PROGRAM(%rbx), %rbp
    mov .LPROGRAM_ROOT(%rbp), %rax
    mov %rax, %cr3
    movq $.LUSER_CODE, .Ls_cs(%rip)
    testl $.LIS_32_BIT, .LPROGRAM_FLAGS(%rbp)
    jz 2f
    movq $.LUSER_CODE32, .Ls_cs(%rip)
2:  mov .LTHREAD_DS(%rbx), %ds      # what a program could load can be loaded here
    mov .LTHREAD_ES(%rbx), %es
    mov .LTHREAD_FS(%rbx), %fs
    mov .LTHREAD_GS(%rbx), %gs
    mov $.LKERNEL_DATA, %eax        # after an interrupt SS is null: SYSRET of some AMD processors would leave it null for 32-bit code
    mov %eax, %ss                   # (Linux, X86_BUG_SYSRET_SS_ATTRS)
    incq .LTHREAD_SWITCHES(%rbx)
    testl $.LOPTION_SWITCH, .Ls_options(%rip)
    jz 3f
    call .Ls_at_switch
3:  cmpq $0, .LTHREAD_BEGAN(%rbx)
    jne 4f
    call .Ls_clock
    mov %rax, .LTHREAD_BEGAN(%rbx)
4:  ret

# Starts or stops the timer. The interrupt controllers are initialised each time, which discards a late interrupt.
    .balign 16, 0x90
.Ls_timer_needed:
    xor %eax, %eax
    cmpq $2, .Ls_ready(%rip)
    jae 1f
    cmpq $0, .Ls_sleeping(%rip)
    je 2f
1:  cmpq $0, .Ls_period(%rip)
    setne %al
2:  cmp .Ls_is_ticking(%rip), %rax
    jne 3f
    ret
3:  mov %rax, .Ls_is_ticking(%rip)
    test %eax, %eax
    jnz 4f
    mov $0xff, %al
    out %al, $0x21
    ret
4:  mov $0x34, %al                  # channel 0, both bytes, mode 2: a rate generator (8254, "Control word format")
    out %al, $0x43
    mov .Ls_period(%rip), %rax
    out %al, $0x40
    mov %ah, %al
    out %al, $0x40
    mov $0x11, %al                  # ICW1: edges, two controllers, ICW4 follows (8259A, "Initialization sequence")
    out %al, $0x20
    out %al, $0xa0
    mov $.LTIMER, %al               # ICW2: the first vector
    out %al, $0x21
    mov $.LTIMER + 8, %al
    out %al, $0xa1
    mov $4, %al                     # ICW3: the second controller is at input 2
    out %al, $0x21
    mov $2, %al
    out %al, $0xa1
    mov $1, %al                     # ICW4: 8086 mode, and explicit end of interrupt
    out %al, $0x21
    out %al, $0xa1
    mov $0xfe, %al                  # only the timer
    out %al, $0x21
    mov $0xff, %al
    out %al, $0xa1
    ret

# Returns in rax the ticks of the TSC since the first program was loaded, without those spent on the serial port, which depend
# on its listener.
.Ls_clock:
    rdtsc
    shl $32, %rdx
    or %rdx, %rax
    sub .Ls_silence(%rip), %rax
    ret

# Makes a new thread of the program at rbp: rsi is its entry, rdi its argument, rdx the end of its stack. rax is the thread,
# or 0 if there are too many.
    .balign 16, 0x90
.Ls_new_thread:
    mov $.LTHREADS, %eax
1:  cmpl $.LFREE, .LTHREAD_STATE(%rax)
    je 2f
    add $.LTHREAD, %eax
    cmp $.LTHREADS + .LTHREAD * .LTHREAD_LIMIT, %eax
    jne 1b
    xor %eax, %eax
    ret
2:  lea .LTHREAD(%rax), %rcx
    cmp .Ls_limit(%rip), %rcx
    jbe 3f
    mov %rcx, .Ls_limit(%rip)
3:  movq $0, -8(%rcx)
    sub $8, %rcx
    cmp %rax, %rcx
    jne 3b
    mov %rbp, .LTHREAD_PROGRAM(%rax)
    mov .LPROGRAM_NEXT(%rbp), %rcx
    incq .LPROGRAM_NEXT(%rbp)
    mov %rcx, .LTHREAD_NUMBER(%rax)
    mov $.LUSER_DATA * 0x10001, %ecx
    mov %ecx, .LTHREAD_DS(%rax)     # and ES; FS and GS are null
    mov %rdi, .LSAVED_RDI(%rax)
    mov %rsi, .LSAVED_RIP(%rax)
    mov %rdx, .LSAVED_RSP(%rax)
    movq $.LUSER_DATA, .LSAVED_SS(%rax)
    movq $.LUSER_CODE, .LSAVED_CS(%rax)
    testl $.LIS_32_BIT, .LPROGRAM_FLAGS(%rbp)
    jz 4f
    movq $.LUSER_CODE32, .LSAVED_CS(%rax)
4:  movq $0x202, .LSAVED_RFLAGS(%rax)
    movl $.LREADY, .LTHREAD_STATE(%rax)
    incq .Ls_ready(%rip)
    ret
