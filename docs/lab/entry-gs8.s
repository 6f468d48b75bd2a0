# The entry that was published (supercyp, "syscall & sysret", 2021): it reads the caller's stack from gs:8 again, after STI.
# tollgate lab entries --prove entry-gs8.s

    .intel_syntax noprefix
    .set FMASK, 0x200
    .set NMI_IST, 0                 # an NMI has no stack of its own

syscall_entry:
    swapgs
    mov gs:[8], rsp
    mov rsp, gs:[0]
    sti
    push r11
    push rcx
    mov eax, 38                     # the call
    pop rcx
    pop r11
    cli
    mov rsp, gs:[8]
    swapgs
    sysretq
