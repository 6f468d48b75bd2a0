# Takes every way between the rings once, each from ring 3 in 64-bit mode. Each handler writes a letter, and the program
# writes the number of instructions of the way there and back, as one hexadecimal digit.

tgx_main:
    gate tgx, 0x80, 0xee, tgx_int
    gate tgx, 0x81, 0xee, tgx_digit
    gate tgx, 0x82, 0xee, tgx_exit
    gate tgx, 3, 0xee, tgx_breakpoint
    gate tgx, 6, 0x8e, tgx_invalid
    gate tgx, 13, 0x8e, tgx_protection
    gate tgx, 14, 0x8e, tgx_page
    mov $(tgx_call - tgx_start + BASE), %eax
    mov %ax, tgx_gdt + 0x50(%rip)
    shr $16, %eax
    mov %ax, tgx_gdt + 0x56(%rip)
    msr 0xc0000082, tgx_syscall - tgx_start + BASE, 0
    msr 0xc0000083, tgx_syscall_32 - tgx_start + BASE, 0
    msr 0x176, tgx_sysenter - tgx_start + BASE, 0
    msr 0xc0000102, 0x700000, 0
    # "cAMD" of AuthenticAMD.
    xor %eax, %eax
    cpuid
    xor %ebp, %ebp
    cmp $0x444d4163, %ecx
    sete %bpl
    pushq $0x33
    pushq $USER_STACK
    pushq $0x202
    pushq $0x2b
    pushq $(tgx_user - tgx_start + BASE)
    iretq

    # r15 holds the time from before; it is read again after, and the cost of the two readings is subtracted.
    .macro begin
    rdtsc
    mov %rax, %r15
    .endm
    .macro end
    rdtsc
    sub %r15, %rax
    sub $2, %rax
    int $0x81
    .endm

tgx_user:
    begin
    end
    begin
    int $0x80
    end
    begin
    lcall *tgx_gate(%rip)
    end
    begin
    syscall
    end
    begin
    int3
    end
    begin
    ud2
    end
    begin
    .byte 0x0f, 0xb9, 0xc8
    end
    begin
    .byte 0xf0, 0x89, 0xc8
    end
    begin
    mov %cr0, %rbx
    end
    begin
    mov 0xe00000, %ebx
    end
    # AMD processors have no SYSENTER in long mode.
    test %ebp, %ebp
    jnz 2f
    # SYSEXIT takes RIP from RDX and RSP from RCX.
    mov $(1f - tgx_start + BASE), %r13d
    mov %rsp, %rcx
    begin
    sysenter
1:  end
    # To 32-bit code and back; there AMD processors have SYSCALL, Intel processors SYSENTER.
2:  pushq $0x1b
    pushq $(tgx_user_32 - tgx_start + BASE)
    lretq

    .code32
tgx_user_32:
    int $0x80
    test %ebp, %ebp
    jnz 3f
    mov %esp, %ecx
    # sysenter, and syscall, which the assembler does not know in 32-bit code.
    .byte 0x0f, 0x34
3:  .byte 0x0f, 0x05
4:  ljmp $0x2b, $(tgx_last - tgx_start + BASE)
    .code64
tgx_last:
    int $0x82

    .balign 8, 0x90
tgx_gate:
    .long 0
    .word 0x50

tgx_int:
    say 'i'
    iretq
tgx_call:
    say 'c'
    lretq
tgx_syscall:
    swapgs
    mov %rsp, %gs:8
    mov $FAST_STACK, %esp
    mov %gs:8, %rsp
    swapgs
    sysretq
tgx_syscall_32:
    say 's'
    sysretl
tgx_sysenter:
    say 'e'
    mov %r13d, %edx
    test %r13d, %r13d
    jz 5f
    xor %r13d, %r13d
    sysexitq
5:  mov $(4b - tgx_start + BASE), %edx
    sysexitl
tgx_breakpoint:
    say 'b'
    iretq
# Skips the two bytes of ud2, or the three of the others.
tgx_invalid:
    mov (%rsp), %rbx
    cmpb $0x0b, 1(%rbx)
    je 6f
    incq (%rsp)
6:  addq $2, (%rsp)
    say 'u'
    iretq
tgx_protection:
    add $8, %rsp
    addq $3, (%rsp)
    say 'g'
    iretq
tgx_page:
    add $8, %rsp
    addq $7, (%rsp)
    say 'p'
    iretq
tgx_digit:
    lea tgx_digits(%rip), %rbx
    and $31, %eax
    mov (%rbx, %rax), %al
    mov $0x3f8, %dx
    out %al, %dx
    iretq
tgx_digits:
    .ascii "0123456789abcdefghijklmnopqrstuv"
tgx_exit:
    say '.'
    xor %eax, %eax
    out %al, $0xf4
    hlt
tgx_end:
