# The sequence of a run: the chosen experiments, one after the other, each in rounds of two batches.

    .subsection 1
    .balign 8
.Lk_features:   .quad 0
.Lk_entry_now:  .quad 0         # the experiment's line in the list
.Lk_round_now:  .quad 0
.Lk_n:          .quad 0         # its iterations in a loop
.Lk_resume:     .quad 0         # the dispatcher's stack pointer while a batch runs, else 0
.Lk_ticks:      .quad 0         # the result of the batch: its ticks,
.Lk_count:      .quad 0         # the handlers' count,
.Lk_value:      .quad 0         # rax at its end;
.Lk_vector:     .quad 0         # or the fault that ended it
.Lk_error:      .quad 0
.Lk_rip:        .quad 0
.Lk_cs:         .quad 0
.Lk_ticks_one:  .quad 0         # of the first batch of a round
.Lk_count_one:  .quad 0
    .subsection 0

    .balign 16, 0x90
.Lk_main:
    call .Lk_look_for_features
    lea .Lu_begin(%rip), %rsi       # the program of ring 3 is loaded
    mov $.LUSER, %edi
    mov $.Lu_end - .Lu_begin, %ecx
    rep movsb
    call .Lk_set_up
    call .Lk_serial
    cmpl $1, .Lk_command(%rip)
    je .Lk_dump
    cmpl $2, .Lk_command(%rip)
    je .Ls_main

    mov .Lk_operations(%rip), %eax
    cmp $1, %eax                    # a loop of no iterations would run 2^32 times
    adc $0, %eax
    mov %eax, .Lk_operations(%rip)
    call .Lk_say_begin

# Firmware may have used the local APIC, which no mask of the 8259A reaches, and programs in ring 3 have interrupts on. With
# the highest task priority it delivers none (SDM 3A, "Task priority in IA-32e mode").
    cmpl $3, .Lk_command(%rip)
    jne 1f
    mov $15, %eax
    mov %rax, %cr8
1:

    lea .Lk_experiments(%rip), %rbp
.Lk_next:
    lea .Lk_experiments_end(%rip), %rax
    cmp %rax, %rbp
    je .Lk_end
    mov (%rbp), %eax
    bt %rax, .Lk_chosen(%rip)
    jnc 1f
    mov %rbp, .Lk_entry_now(%rip)
    call .Lk_experiment
    mov .Lk_entry_now(%rip), %rbp
1:  add $.LENTRY, %rbp
    jmp .Lk_next

.Lk_end:
    call .Lk_say_end
    xor %eax, %eax
    out %al, $0xf4
1:  cli
    hlt
    jmp 1b

# A fault outside any batch is a defect of this guest, or of its engine.
.Lk_broken:
    mov $.LSTACK, %esp
    call .Lk_say_broken
    mov $1, %eax
    out %al, $0xf4
1:  cli
    hlt
    jmp 1b

# Runs the experiment at rbp: all rounds, or until one has no result.
    .balign 16, 0x90
.Lk_experiment:
    call .Lk_say_try
    mov .Lk_features(%rip), %eax
    not %eax
    and .LENTRY_NEEDS(%rbp), %eax
    jnz 3f
    movq $0, .Lk_round_now(%rip)
1:  call .Lk_round
    test %eax, %eax
    jnz 4f
    mov .Lk_entry_now(%rip), %rbp
    call .Lk_say_done
    cmpl $0, .LENTRY_TWO(%rbp)      # a wrong setup is attempted once
    je 2f
    incq .Lk_round_now(%rip)
    mov .Lk_round_now(%rip), %rax
    cmp .Lk_rounds(%rip), %eax
    jb 1b
2:  ret
3:  jmp .Lk_say_lacks
4:  jmp .Lk_say_fault

# Runs one round: the loop with one operation per iteration, then the one with two. eax is 0 if both ended.
    .balign 16, 0x90
.Lk_round:
    mov .Lk_operations(%rip), %eax
    mov .LENTRY_TWO(%rbp), %ecx
    test %ecx, %ecx
    jnz 1f
    mov $1, %eax
1:  mov %rax, .Lk_n(%rip)
    movq $0, .Lk_ticks_one(%rip)
    movq $0, .Lk_count_one(%rip)
    mov .LENTRY_ONE(%rbp), %ebx
    call .Lk_run
    test %eax, %eax
    jnz 2f
    mov .Lk_entry_now(%rip), %rbp
    mov .LENTRY_TWO(%rbp), %ebx
    test %ebx, %ebx
    jz 2f
    mov .Lk_ticks(%rip), %rax
    mov %rax, .Lk_ticks_one(%rip)
    mov .Lk_count(%rip), %rax
    mov %rax, .Lk_count_one(%rip)
    call .Lk_run
2:  ret

# Runs one batch of the loop at ebx, on a machine that is set up anew. It returns from any ring and mode, with eax 0, or 1
# after a fault. Of the registers only rsp is preserved.
    .balign 16, 0x90
.Lk_run:
    mov %rsp, .Lk_resume(%rip)
    call .Lk_set_up
    mov .LENTRY_PREPARE(%rbp), %eax
    call *%rax
    mov .Lk_n(%rip), %esi
    xor %r15d, %r15d
    xor %edi, %edi
    mov .LENTRY_CS(%rbp), %ecx
    test %ecx, %ecx
    jz 2f
    mov $.Lu_block - .Lu_begin + .LUSER, %eax
    cmp $.LUSER_CODE32, %ecx
    jne 1f
    mov $.Lu_block32 - .Lu_begin + .LUSER, %eax
1:  mov .LENTRY_SS(%rbp), %edx      # to ring 3, as if it had been interrupted there
    mov %edx, %ds
    mov %edx, %es
    push %rdx
    push $.LUSER_STACK
    mov .LENTRY_FLAGS(%rbp), %edx
    push %rdx
    push %rcx
    push %rax
    iretq                           # it returns through .Lk_exception
2:  call .Lk_block
    movq $0, .Lk_resume(%rip)
    ret

# Features, from CPUID. SDM 2A, CPUID; APM 3, "Obtaining processor information via the CPUID instruction".
    .balign 16, 0x90
.Lk_look_for_features:
    xor %esi, %esi
    mov $1, %eax
    cpuid
    bt $11, %edx                    # SEP
    jnc 1f
    or $.LHAS_SYSENTER, %esi
1:  bt $17, %ecx                    # PCID
    jnc 2f
    or $.LHAS_PCID, %esi
2:  mov $0x80000001, %eax
    cpuid
    bt $11, %edx                    # SYSCALL
    jnc 3f
    or $.LHAS_SYSCALL, %esi
3:  xor %eax, %eax
    cpuid
    cmp $7, %eax
    jb 4f
    mov $7, %eax
    xor %ecx, %ecx
    cpuid
    test $0x8c000000, %edx          # IBRS and IBPB, STIBP, SSBD: each in SPEC_CTRL
    jnz 5f
4:  mov $0x80000000, %eax
    cpuid
    cmp $0x80000008, %eax
    jb 6f
    mov $0x80000008, %eax
    cpuid
    test $0x0100c000, %ebx          # AMD's IBRS, STIBP, SSBD
    jz 6f
5:  or $.LHAS_SPEC_CTRL, %esi
6:  mov %esi, .Lk_features(%rip)
    ret
