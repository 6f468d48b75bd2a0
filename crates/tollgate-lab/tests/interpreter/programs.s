# Programs for the system: flat ones, each between two labels. They are entered at their first byte with the argument in rdi.

.macro program name
    .balign 16, 0x90
    .globl tgr_\name, tgr_\name\()_end
tgr_\name:
.endm
.macro end name
tgr_\name\()_end:
.endm
.macro call_system number, first=0, second=0, third=0
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
    mov $42, %edi
    xor %eax, %eax
    syscall
1:  .ascii "hello\n"
end hello

# The four ways in; r12 to r15, rbx, rbp and the flags must be kept. Each adds its result, -38 of a call that there is not.
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

# Two threads on one number, and who waits.
program threads
    lea 2f(%rip), %rdi
    mov $5, %esi
    mov $0x7fffd000, %r8d
    mov $4, %eax
    syscall
    mov %rax, %rdi                  # wait for it
    mov $5, %eax
    syscall
    lea (%rax,%rax), %rdi
    xor %eax, %eax
    syscall
2:  push %rdi
    mov $3, %eax
    syscall
    pop %rdi
    add $100, %rdi
    xor %eax, %eax
    syscall
end threads

program sleeper
    mov $2, %eax
    syscall
    mov %rax, %rbx
    call_system 13, 3
    mov $2, %eax
    syscall
    sub %rbx, %rax
    mov %rax, %rdi
    xor %eax, %eax
    syscall
end sleeper

# Copies 100 bytes by REP, compares them, and fills.
program strings
    cld
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
