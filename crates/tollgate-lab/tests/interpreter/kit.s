# The beginning of the test programs: from flat protected mode to long mode, with tables for every crossing. A label
# `\name\()_main` in 64-bit ring 0, and the end of the program, must follow.
#
# GDT: 08 kernel code, 10 kernel data, 18 user code of 32 bits, 20 user data, 28 user code, 30 user data, 38 kernel code of 32
# bits, 40 TSS, 50 call gate.
# Memory: the program at 1 MiB, page tables at 2 MiB, IDT at 3 MiB, stacks below 4 MiB (kernel), 5 MiB (sysenter and syscall)
# and 6 MiB (user). Every page is open to ring 3; those from 14 MiB on are absent.

# If several files' programs are assembled together, the first defines the kit.
.ifndef BASE
.set BASE, 0x100000
.set IDT, 0x300000
.set KERNEL_STACK, 0x400000
.set FAST_STACK, 0x500000
.set USER_STACK, 0x600000

.macro at name, symbol
    .long \symbol - \name\()_start + BASE
.endm

# Writes a gate: entry, type and level, and handler.
.macro gate name, vector, rights, handler
    mov $(\handler - \name\()_start + BASE), %eax
    mov %ax, IDT + \vector * 16
    movw $8, IDT + \vector * 16 + 2
    movw $(\rights << 8), IDT + \vector * 16 + 4
    shr $16, %eax
    mov %ax, IDT + \vector * 16 + 6
.endm

.macro msr number, low, high
    mov $\number, %ecx
    mov $(\low), %eax
    mov $(\high), %edx
    wrmsr
.endm

# Writes one byte to the serial port. AL and DX are lost.
.macro say byte
    mov $\byte, %al
    mov $0x3f8, %dx
    out %al, %dx
.endm

.macro kit name
    .code32
\name\()_start:
    # Multiboot 1, for machines that use it: magic, flags (the addresses are given), checksum; header, load, load end, bss
    # end, entry.
    .long 0x1badb002, 0x10000, -(0x1badb002 + 0x10000)
    .long BASE, BASE, BASE + \name\()_end - \name\()_start, 0, BASE + \name\()_entry - \name\()_start
\name\()_entry:
    cld
    mov $KERNEL_STACK, %esp
    # Seven pages of 2 MiB, and the tables above them.
    movl $0x201007, 0x200000
    movl $0x202007, 0x201000
    xor %ecx, %ecx
1:  mov %ecx, %eax
    shl $21, %eax
    or $0x87, %eax
    mov %eax, 0x202000(,%ecx,8)
    inc %ecx
    cmp $7, %ecx
    jne 1b
    mov $0x200000, %eax
    mov %eax, %cr3
    mov $0x20, %eax
    mov %eax, %cr4
    msr 0xc0000080, 0x901, 0
    lgdt \name\()_gdtr - \name\()_start + BASE
    mov %cr0, %eax
    or $0x80010000, %eax
    mov %eax, %cr0
    ljmp $8, $(\name\()_long - \name\()_start + BASE)

    .balign 16, 0x90
\name\()_gdtr:
    .word \name\()_gdt_end - \name\()_gdt - 1
    at \name, \name\()_gdt
    .balign 16, 0x90
\name\()_gdt:
    .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff, 0x00cffb000000ffff, 0x00cff3000000ffff
    .quad 0x00affb000000ffff, 0x00cff3000000ffff, 0x00cf9b000000ffff
    # The TSS at 2 MiB + C000h.
    .quad 0x0000892000000000 | 0xc000 << 16 | 0x67, 0
    # The call gate at level 3; its offset is filled in below.
    .quad 0x0000ec0000080000, 0
\name\()_gdt_end:
\name\()_idtr:
    .word 0xfff
    .quad IDT

    .code64
\name\()_long:
    mov $0x10, %eax
    mov %eax, %ss
    mov %eax, %ds
    mov %eax, %es
    lidt \name\()_idtr(%rip)
    movq $KERNEL_STACK - 0x1000, 0x20c004
    mov $0x40, %eax
    ltr %ax
    msr 0xc0000081, 0, 0x001b0008
    msr 0xc0000084, 0x700, 0
    msr 0x174, 8, 0
    msr 0x175, FAST_STACK, 0
    jmp \name\()_main
.endm
.endif
