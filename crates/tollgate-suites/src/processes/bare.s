# A program without a C library: an ELF header and a dozen instructions. It replaces itself by its first argument
# with one argument fewer while there is one, and then exits with status 0, as image/image.rs does. Assembled
# into read-only data (Intel syntax) and never executed there.

.pushsection .rodata.tollgate_bare, "a", @progbits
.balign 64
tollgate_bare_begin:
    .set .Ltg_bare_base, 0x400000

# ELF header (System V ABI, AMD64 supplement): 64-bit, little endian, executable, x86-64, two program headers.
    .byte 0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0
    .quad 0
    .short 2, 62
    .long 1
    .quad .Ltg_bare_entry - tollgate_bare_begin + .Ltg_bare_base
    .quad 64, 0
    .long 0
    .short 64, 56, 2, 0, 0, 0
# One segment, readable and executable: this file.
    .long 1, 5
    .quad 0, .Ltg_bare_base, .Ltg_bare_base
    .quad tollgate_bare_end - tollgate_bare_begin, tollgate_bare_end - tollgate_bare_begin, 4096
# PT_GNU_STACK: a stack that is not executable.
    .long 0x6474e551, 6
    .quad 0, 0, 0, 0, 0, 16

.Ltg_bare_entry:
# The stack holds argc, argv and its null, envp (System V ABI).
    mov rax, [rsp]
    xor edi, edi
    cmp rax, 2
    jb 2f
    lea rsi, [rsp + 16]
    mov rdi, [rsi]
    lea rdx, [rsp + 8*rax + 16]
    mov eax, 59
    syscall
# execve(2) returns only on failure.
    mov edi, 126
2:  mov eax, 231
    syscall
tollgate_bare_end:
.popsection
