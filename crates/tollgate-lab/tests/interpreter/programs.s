# Flat programs for the system, each between two labels. They are entered at their first byte with the argument in rdi.

.macro program name
    .code64
    .balign 16, 0x90
    .globl tgr_\name, tgr_\name\()_end
tgr_\name:
.endm
.macro end name
tgr_\name\()_end:
.endm
.macro ask number, first=0, second=0, third=0
    mov $\number, %eax
    mov $\first, %edi
    mov $\second, %esi
    mov $\third, %r8d
    syscall
.endm

program hello
    lea 1f(%rip), %rdi
    mov $6, %esi
    mov $1, %eax
    syscall
    ask 0, 42
1:  .ascii "hello\n"
end hello

# Uses the four ways in, which must keep the other registers, the stack and the flags. The status is the sum of the results of
# a call that does not exist.
program ways
    mov %rsp, %rbp
    mov $0x1234, %ebx
    mov $99, %eax
    syscall
    mov %rax, %r12
    mov $99, %eax
    int $0x80
    add %rax, %r12
    mov $99, %eax
    std
    stc
    lcall *1f(%rip)
    jnc 9f
    cld
    add %rax, %r12
    mov %rsp, %rcx
    lea 2f(%rip), %rdx
    mov $99, %eax
    sysenter
2:  add %rax, %r12
    cmp %rsp, %rbp
    jne 9f
    cmp $0x1234, %ebx
    jne 9f
    mov %r12, %rdi
    xor %eax, %eax
    int $0x80
9:  ud2
    .balign 8
1:  .long 0
    .short 0x53
end ways

# 32-bit code: INT 80h, the gate and SYSENTER. The status is the sum of their results.
program narrow
    .code32
    mov $99, %eax
    int $0x80
    mov %eax, %ebp
    mov $99, %eax
    lcall $0x53, $0
    add %eax, %ebp
    mov %esp, %ecx
    mov $0x40000000 + 1f - tgr_narrow, %edx
    mov $99, %eax
    sysenter
1:  add %ebp, %eax
    mov %eax, %edi
    xor %eax, %eax
    int $0x80
    ud2
end narrow

# Performs the system calls that follow it, four words each, up to one with the number -1, and writes the results.
program caller
    lea tgr_caller_end(%rip), %rbx
1:  mov (%rbx), %rax
    cmp $-1, %rax
    je 2f
    mov 8(%rbx), %rdi
    mov 16(%rbx), %rsi
    mov 24(%rbx), %r8
    syscall
    mov %rax, (%rbx)
    mov %rbx, %rdi
    mov $8, %esi
    mov $1, %eax
    syscall
    add $32, %rbx
    jmp 1b
2:  ask 0
end caller

# Counts for a while and ends with the count of its loop.
program count
    mov $40000, %ecx
1:  inc %rbx
    dec %ecx
    jnz 1b
    mov %rbx, %rdi
    xor %eax, %eax
    syscall
end count

# Passes a number to a second thread, and waits for its result.
program threads
    lea 2f(%rip), %rdi
    mov $5, %esi
    mov $0x7fffd000, %r8d
    mov $4, %eax
    syscall
    mov %rax, %rdi
    mov $5, %eax
    syscall
    lea (%rax,%rax), %rdi
    xor %eax, %eax
    syscall
2:  push %rdi
    ask 3
    pop %rdi
    add $100, %rdi
    xor %eax, %eax
    syscall
end threads

# Two threads that wait for each other.
program stuck
    lea 1f(%rip), %rdi
    xor %esi, %esi
    mov $0x7fffd000, %r8d
    mov $4, %eax
    syscall
    ask 5, 1
1:  ask 5, 0
end stuck

# Measures three ticks.
program sleeper
    ask 2
    mov %rax, %rbx
    ask 13, 3
    ask 2
    sub %rbx, %rax
    mov %rax, %rdi
    xor %eax, %eax
    syscall
end sleeper

# Instructions with REP: filling, copying, comparing up to the first difference, and no repetition.
program strings
    sub $256, %rsp
    mov %rsp, %rdi
    mov $256, %ecx
    mov $7, %al
    rep stosb
    lea 1f(%rip), %rsi
    mov %rsp, %rdi
    mov $5, %ecx
    rep movsb
    lea 1f(%rip), %rsi
    mov %rsp, %rdi
    mov $100, %ecx
    repe cmpsb
    mov %ecx, %edi
    xor %ecx, %ecx
    rep lodsb
    xor %eax, %eax
    syscall
1:  .ascii "abcdefgh"
end strings

# Disables interrupts for a while, if it may; the status is IF before and after STI.
program keeps
    ask 12, 3
    test %rax, %rax
    jnz 2f
    cli
    mov $20000, %ecx
1:  dec %ecx
    jnz 1b
    pushfq
    sti
    pushfq
    pop %rax
    pop %rdi
    and $0x200, %eax
    and $0x200, %edi
    shl $16, %rax
    or %rax, %rdi
    xor %eax, %eax
    syscall
2:  mov %rax, %rdi
    xor %eax, %eax
    syscall
end keeps

# One fault each.
program reads_nothing
    mov 0x10, %eax
end reads_nothing
program reads_the_kernel
    mov 0x100000, %eax
end reads_the_kernel
program writes_the_primitive
    movb $1, 0x3ffff000
end writes_the_primitive
program runs_its_stack
    jmp *%rsp
end runs_its_stack
program divides
    xor %ecx, %ecx
    div %ecx
end divides
program halts
    hlt
end halts
program steps
    push $0x302
    popfq
    nop
    nop
end steps
program steps_into_sysenter
    push $0x302
    popfq
    sysenter
end steps_into_sysenter
program steps_into_the_gate
    push $0x302
    popfq
    lcall *1f(%rip)
1:  .long 0
    .short 0x53
end steps_into_the_gate
program goes_nowhere
    movabs $0x800000000000, %rdx
    mov %rsp, %rcx
    mov $10, %eax
    sysenter
end goes_nowhere
program uses_x87
    fninit
end uses_x87
program uses_sse
    xorps %xmm0, %xmm0
end uses_sse
program calls_the_timer
    int $0x20
end calls_the_timer
program pushes_nowhere
    movabs $0x900000000000, %rsp
    push %rax
end pushes_nowhere
program loads_a_local_segment
    mov $0xf, %eax
    mov %eax, %ds
end loads_a_local_segment
program enters
    enter $8, $0
end enters
