# Records of the system, in the form of records.s. Their time is charged to no program.

    .subsection 1
.Ls_text_out:       .asciz "tg1 out"
.Ls_text_exit:      .asciz "tg1 exit"
.Ls_text_dead:      .asciz "tg1 dead"
.Ls_text_unknown:   .asciz "tg1 unknown"
.Ls_text_registers: .asciz "tg1 regs"
.Ls_text_unloaded:  .asciz "tg1 unloaded"
.Ls_text_stuck:     .asciz "tg1 stuck"
.Ls_text_stop:      .asciz "tg1 stop"
    .subsection 0

# Begins a record, which ends with `jmp .Ls_spoken`, or a call of it.
.macro ts_speak kind
    call .Ls_quiet
    lea .Ls_text_\kind(%rip), %rsi
    call .Lk_say_kind
.endm

    .balign 16, 0x90
.Ls_quiet:
    call .Ls_clock
    mov %rax, .Ls_quiet_since(%rip)
    ret

.Ls_spoken:
    push %rbx
    call .Lk_say_checksum
    pop %rbx
    call .Ls_clock
    sub .Ls_quiet_since(%rip), %rax
    add %rax, .Ls_silence(%rip)
    ret

# Writes the numbers of the program at rbp and the thread at rbx.
.Ls_say_who:
    mov .LPROGRAM_NUMBER(%rbp), %eax
    call .Lk_say_number
    mov .LTHREAD_NUMBER(%rbx), %rax
    jmp .Lk_say_number

# Writes the thread's ticks until now.
.Ls_say_ticks:
    mov .Ls_quiet_since(%rip), %rax
    sub .LTHREAD_BEGAN(%rbx), %rax
    jmp .Lk_say_number

.Ls_say_exit:
    ts_speak exit
    call .Ls_say_who
    tg_say_field .LTHREAD_STATUS(%rbx)
    call .Ls_say_ticks
    tg_say_field .LTHREAD_CALLS(%rbx)
    tg_say_field .LTHREAD_SWITCHES(%rbx)
    jmp .Ls_spoken

.Ls_say_dead:
    ts_speak dead
    call .Ls_say_who
    tg_say_field .LSAVED_WAY(%rbx)
    tg_say_field .LSAVED_ERROR(%rbx)
    tg_say_field .LSAVED_CS(%rbx)
    tg_say_field .LSAVED_RIP(%rbx)
    tg_say_field .Ls_cr2(%rip)
.Ls_say_rest:
    tg_say_field .LSAVED_RSP(%rbx)
    tg_say_field .LSAVED_RFLAGS(%rbx)
    call .Ls_say_ticks
    jmp .Ls_spoken

.Ls_say_unknown:
    ts_speak unknown
    call .Ls_say_who
    tg_say_field .LSAVED_CS(%rbx)
    tg_say_field .LSAVED_RIP(%rbx)
    jmp .Ls_say_rest

# Writes the registers by number: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
.Ls_say_registers:
    testl $.LOPTION_BRIEF, .Ls_options(%rip)
    jnz 2f
    ts_speak registers
    call .Ls_say_who
    tg_say_field .LSAVED_RAX(%rbx)
    tg_say_field .LSAVED_RCX(%rbx)
    tg_say_field .LSAVED_RDX(%rbx)
    tg_say_field .LSAVED_RBX(%rbx)
    tg_say_field .LSAVED_RSP(%rbx)
    tg_say_field .LSAVED_RBP(%rbx)
    tg_say_field .LSAVED_RSI(%rbx)
    tg_say_field .LSAVED_RDI(%rbx)
    xor %edi, %edi
1:  mov .LSAVED_R8(%rbx,%rdi,8), %rax
    call .Lk_say_number
    dec %rdi
    cmp $-8, %rdi
    jne 1b
    jmp .Ls_spoken
2:  ret

# Writes rsi bytes at rdi, which are readable, in records of at most 64.
.Ls_say_out:
    mov %rdi, %r8
    lea (%rdi,%rsi), %r9
1:  ts_speak out
    mov .LPROGRAM_NUMBER(%rbp), %eax
    call .Lk_say_number
    mov $' ', %al
    call .Lk_say_byte
    mov $64, %r10d
2:  movzbl (%r8), %eax
    mov $4, %ecx
    call .Lk_say_digits
    inc %r8
    cmp %r9, %r8
    je 3f
    dec %r10d
    jnz 2b
    call .Ls_spoken
    jmp 1b
3:  jmp .Ls_spoken

# Reports that the program ecx was not loaded; eax is the reason.
.Ls_say_unloaded:
    push %rax
    push %rcx
    ts_speak unloaded
    pop %rax
    call .Lk_say_number
    pop %rax
    call .Lk_say_number
    jmp .Ls_spoken

.Ls_say_stuck:
    mov .LTHREAD_PROGRAM(%rbx), %rbp
    ts_speak stuck
    call .Ls_say_who
    jmp .Ls_spoken

.Ls_say_stop:
    ts_speak stop
    jmp .Ls_spoken
