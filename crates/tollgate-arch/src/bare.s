# A program without a C library: an ELF header and a dozen instructions, which follow. It replaces itself by its first argument
# with one argument fewer while there is one, and then exits with status 0. Assembled into read-only data and never executed there.

.pushsection .rodata.tollgate_bare, "a", @progbits
.balign 64
tollgate_bare_begin:
    .set .Ltg_bare_base, 0x400000

# ELF header (System V ABI): 64-bit, little endian, executable, the machine, two program headers.
    .byte 0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0
    .quad 0
    .short 2, {machine}
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

