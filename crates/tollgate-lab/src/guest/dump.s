# Prints the live tables as text, in the form of the Windows debugger that `tollgate decode` reads: `r`, `db` and `rdmsr`.

    .subsection 1
.Lk_text_gdtr:  .asciz "gdtr="
.Lk_text_gdtl:  .asciz "gdtl="
.Lk_text_idtr:  .asciz "idtr="
.Lk_text_idtl:  .asciz "idtl="
.Lk_text_tr:    .asciz "tr="
.Lk_text_msr:   .asciz "msr["
.Lk_text_is:    .asciz "] = "
    .balign 4
.Lk_msrs:
    .long .LEFER, .LSTAR_MSR, .LLSTAR, .LCSTAR, .LFMASK, .LGS_BASE, .LKERNEL_GS_BASE
.Lk_msrs_sysenter:
    .long .LSYSENTER_CS, .LSYSENTER_ESP, .LSYSENTER_EIP
.Lk_msrs_end:
    .balign 16
.Lk_table_register:
    .quad 0, 0
    .subsection 0

# Prints a word, and rax in a number of digits.
.macro tg_dump_register text, digits
    push %rax
    lea \text(%rip), %rsi
    call .Lk_say_text
    pop %rax
    mov $(\digits - 1) * 4, %ecx
    call .Lk_say_digits
    call .Lk_say_newline
.endm

    .balign 16, 0x90
.Lk_dump:
    sgdt .Lk_table_register(%rip)
    mov .Lk_table_register + 2(%rip), %rax
    tg_dump_register .Lk_text_gdtr, 16
    movzwl .Lk_table_register(%rip), %eax
    tg_dump_register .Lk_text_gdtl, 4
    sidt .Lk_table_register(%rip)
    mov .Lk_table_register + 2(%rip), %rax
    tg_dump_register .Lk_text_idtr, 16
    movzwl .Lk_table_register(%rip), %eax
    tg_dump_register .Lk_text_idtl, 4
    str %eax
    tg_dump_register .Lk_text_tr, 4

    mov $.LGDT, %ebx
    mov $.LGDT + .LGDT_SIZE, %ebp
    call .Lk_dump_memory
    mov $.LTSS, %ebx
    mov $.LTSS + 0x68, %ebp
    call .Lk_dump_memory
    mov $.LIDT, %ebx
    mov $.LIDT + .LVECTORS * 16, %ebp
    call .Lk_dump_memory

    lea .Lk_msrs(%rip), %rbx
    testl $.LHAS_SYSCALL, .Lk_features(%rip)
    jz 1f
    lea .Lk_msrs_sysenter(%rip), %rbp
    call .Lk_dump_msrs
1:  lea .Lk_msrs_sysenter(%rip), %rbx
    testl $.LHAS_SYSENTER, .Lk_features(%rip)
    jz 2f
    lea .Lk_msrs_end(%rip), %rbp
    call .Lk_dump_msrs
2:  xor %eax, %eax
    out %al, $0xf4
3:  cli
    hlt
    jmp 3b

# Prints memory from rbx to rbp, in rows of 16 bytes.
.Lk_dump_memory:
    mov %rbx, %rax
    mov $60, %ecx
    call .Lk_say_digits
    mov $' ', %al
    call .Lk_say_byte
    xor %edi, %edi
1:  mov $' ', %al
    call .Lk_say_byte
    movzbl (%rbx,%rdi), %eax
    mov $4, %ecx
    call .Lk_say_digits
    inc %edi
    lea (%rbx,%rdi), %rax
    cmp %rbp, %rax
    je 2f
    cmp $16, %edi
    jne 1b
2:  call .Lk_say_newline
    add $16, %rbx
    cmp %rbp, %rbx
    jb .Lk_dump_memory
    ret

# Prints the MSRs whose numbers are from rbx to rbp.
.Lk_dump_msrs:
    lea .Lk_text_msr(%rip), %rsi
    call .Lk_say_text
    mov (%rbx), %eax
    mov $28, %ecx
    call .Lk_say_digits
    lea .Lk_text_is(%rip), %rsi
    call .Lk_say_text
    mov (%rbx), %ecx
    rdmsr
    mov %eax, %edi
    mov %edx, %eax
    mov $28, %ecx
    call .Lk_say_digits
    mov $'`', %al
    call .Lk_say_byte
    mov %edi, %eax
    mov $28, %ecx
    call .Lk_say_digits
    call .Lk_say_newline
    add $4, %rbx
    cmp %rbp, %rbx
    jne .Lk_dump_msrs
    ret

# The ranges of instructions, for disassembly: from, to, bits.
    .subsection 1
    .balign 4
    .globl tollgate_guest_code
    .hidden tollgate_guest_code
tollgate_guest_code:
    .long .Lk_entry - .Lk_begin, .Lk_entry_end - .Lk_begin, 32
    .long .Lk_entry_end - .Lk_begin, .Lu_block32 - .Lk_begin, 64
    .long .Lu_block32 - .Lk_begin, .Lu_data - .Lk_begin, 32
    .long .Lu_end - .Lk_begin, .Lk_code_end - .Lk_begin, 64
    .globl tollgate_guest_code_end
    .hidden tollgate_guest_code_end
tollgate_guest_code_end:
    .subsection 0
.Lk_code_end:

    .subsection 2
    .globl tollgate_guest_end
    .hidden tollgate_guest_end
tollgate_guest_end:
.popsection
