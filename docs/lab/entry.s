# An entry of SYSCALL: the kernel's GS, a stack of its own, a frame that an interrupt may come on, and the way back.
# tollgate lab entries --prove entry.s

    .intel_syntax noprefix

    .set FMASK, 0x47700             # AC, NT, IOPL, DF, IF and TF are cleared
    .set STAR, 0x001b000800000000   # SYSCALL: 8 and 10h; SYSRET: 1bh + 8 and + 16

    .text
syscall_entry:
    swapgs
    mov gs:[8], rsp
    mov rsp, gs:[0]
    push 0x23                       # the frame that an interrupt would have pushed
    push qword ptr gs:[8]
    push r11
    push 0x2b
    push rcx
    .irp register, rax, rdi, rsi, rdx, r10, r8, r9, rbx, rbp, r12, r13, r14, r15
    push \register
    .endr
    sti
    call handler
    cli
    .irp register, r15, r14, r13, r12, rbp, rbx, r9, r8, r10, rdx, rsi, rdi
    pop \register
    .endr
    add rsp, 8                      # rax is the result
    pop rcx
    add rsp, 8
    pop r11
    pop rsp
    swapgs
    sysretq

# What the compiler would make of the call itself: it may change what the ABI lets it change.
handler:
    xor edi, edi
    xor esi, esi
    mov eax, 38
    ret

    .data
    .balign 16
gdt:
    .quad 0
    .quad 0x00af9b000000ffff        # 08: code of ring 0
    .quad 0x00cf93000000ffff        # 10: data of ring 0
    .quad 0x00cffb000000ffff        # 18: 32-bit code of ring 3
    .quad 0x00cff3000000ffff        # 20: data of ring 3
    .quad 0x00affb000000ffff        # 28: 64-bit code of ring 3
gdt_end:

percpu:
    .quad 0                         # gs:0, the running thread's stack in the kernel
    .quad 0                         # gs:8, the caller's stack while there is no frame
