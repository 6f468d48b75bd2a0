# The beginning of the image: the header for a loader, the parameters that the host writes, and the way from flat 32-bit
# protected mode, as multiboot enters it, to 64-bit mode. AT&T syntax, as in the kernels' own entry code.
#
# The image is never executed in the program's read-only data: it is copied to .LBASE of a machine's memory. 64-bit code
# addresses its data relative to RIP; an absolute address is `label - .Lk_begin + .LBASE`. Data stands next to the code that
# uses it, in subsection 1, which the assembler puts after all code. Labels of the kernel begin with .Lk_, those of the
# program in ring 3 with .Lu_, constants with .L and capitals. They are assembled together with the rest of tollgate, so they
# must be unique.

.pushsection .rodata.tollgate_guest, "a", @progbits
.balign 4096

# The memory map. The host gives 16 MiB; whoever uses memory after the image clears it first.
    .set .LBASE, 0x100000           # this image
    .set .LPML4, 0x200000           # page tables
    .set .LPML4_OTHER, 0x201000     # a second root, for the experiments that change CR3
    .set .LPDPT, 0x202000
    .set .LPD, 0x203000
    .set .LGDT, 0x204000
    .set .LTSS, 0x205000
    .set .LIDT, 0x206000
    .set .LPER_CPU, 0x207000        # gs points here in the kernel
    .set .LSTACK, 0x210000          # ends of stacks: of the dispatcher,
    .set .LSTACK_RSP0, 0x214000     # of entries from ring 3 through a gate,
    .set .LSTACK_IST, 0x218000      # of unexpected faults,
    .set .LSTACK_SYSCALL, 0x21c000  # of system calls,
    .set .LSTACK_SYSENTER, 0x220000 # and of SYSENTER
    .set .LUSER, 0x400000           # the program of ring 3, in a page of its own
    .set .LUSER_STACK, 0x500000
    .set .LABSENT, 0x800000         # a page that is absent
    .set .LMEMORY_END, 0x600000     # nothing is used from here on

    .globl tollgate_guest_begin
    .hidden tollgate_guest_begin
tollgate_guest_begin:
.Lk_begin:

# Multiboot 1, "The layout of Multiboot header": within the first 8192 bytes, aligned to 4. Bit 16 of the flags says that the
# five addresses are given here, so the file needs no ELF headers.
    .set .LMAGIC, 0x1badb002
    .set .LFLAGS, 0x00010000
.Lk_multiboot:
    .long .LMAGIC
    .long .LFLAGS
    .long -(.LMAGIC + .LFLAGS)
    .long .Lk_multiboot - .Lk_begin + .LBASE    # header_addr
    .long .LBASE                                # load_addr
    .long 0                                     # load_end_addr: the whole file
    .long .LMEMORY_END                          # bss_end_addr: keep this much free
    .long .Lk_entry - .Lk_begin + .LBASE        # entry_addr

# The host may write these before it loads the image: see Parameters in parameters.rs. An image that is booted unchanged uses
# the values below.
    .balign 16
    .globl tollgate_guest_parameters
    .hidden tollgate_guest_parameters
tollgate_guest_parameters:
.Lk_operations: .long 1000      # n
.Lk_rounds:     .long 1
.Lk_command:    .long 0         # 0: experiments; 1: print the tables; 2: run the programs of the archive; 3: experiments after firmware
.Lk_archive:    .long 0         # offset of the archive in the loaded file; 0 if there is none
.Lk_chosen:     .quad -1, 0     # a bit for each experiment, by its number

    .code32
    .balign 16, 0x90
    .globl tollgate_guest_entry
    .hidden tollgate_guest_entry
tollgate_guest_entry:
.Lk_entry:
    cli
    cld
    mov $.LSTACK, %esp

# Only expected interrupts may come: both interrupt controllers are masked.
    mov $0xff, %al
    out %al, $0x21
    out %al, $0xa1

# An archive of programs lies where tables will be, so it moves to its own place first.
    mov .Lk_archive - .Lk_begin + .LBASE, %esi
    test %esi, %esi
    jz 2f
    cmpl $2, .Lk_command - .Lk_begin + .LBASE
    jne 2f
    add $.LBASE, %esi
    mov .LARCHIVE_TOTAL(%esi), %ecx
    cmp $.LARCHIVE_MOST, %ecx       # a larger one is refused later
    jbe 1f
    mov $.LARCHIVE_MOST, %ecx
1:  add $3, %ecx
    shr $2, %ecx
    mov $.LARCHIVE, %edi
    rep movsl
2:
# Long mode is required. CPUID 80000001h, EDX bit 29.
    mov $0x80000000, %eax
    cpuid
    cmp $0x80000001, %eax
    jb .Lk_no_long_mode
    mov $0x80000001, %eax
    cpuid
    bt $29, %edx
    jnc .Lk_no_long_mode

# Maps the first GiB to itself, in pages of 2 MiB. Only the kernel may use them, except the one of the program in ring 3. One
# is absent. An entry: 80h a large page, 4 for ring 3 as well, 2 writable, 1 present (SDM 3A, "4-Level paging").
    mov $.LPML4, %edi
    xor %eax, %eax
    mov $4096, %ecx                 # 4 pages, in words of 4 bytes
    rep stosl
    movl $.LPDPT + 7, .LPML4
    movl $.LPDPT + 7, .LPML4_OTHER
    movl $.LPD + 7, .LPDPT
    mov $.LPD, %edi
    mov $0x83, %eax
1:  mov %eax, (%edi)
    add $8, %edi
    add $0x200000, %eax
    cmp $0x40000083, %eax
    jne 1b
    orl $4, .LPD + .LUSER / 0x200000 * 8
    movl $0, .LPD + .LABSENT / 0x200000 * 8

# Long mode (SDM 3A, "Initializing IA-32e mode"): PAE, the root, EFER.LME, then paging.
    mov $0xa0, %eax                 # CR4: PAE, PGE
    mov %eax, %cr4
    mov $.LPML4, %eax
    mov %eax, %cr3
    mov $0xc0000080, %ecx           # EFER
    rdmsr
    or $0x100, %eax                 # LME
    wrmsr
    mov $0x80010031, %eax           # CR0: PG, WP, NE, ET, PE
    mov %eax, %cr0

# This is compatibility mode, with the loader's segments. A far jump to a segment with L set ends it.
    lgdt .Lk_gdt_pointer - .Lk_begin + .LBASE
    ljmp $.LKERNEL_CODE, $.Lk_long - .Lk_begin + .LBASE

.Lk_no_long_mode:
    mov $.Lk_text_refused - .Lk_begin + .LBASE, %esi
1:  lodsb
    test %al, %al
    jz 2f
    mov $0x3f8, %edx
    out %al, %dx
    jmp 1b
2:  out %al, $0xf4
3:  hlt
    jmp 3b

    .code64
    .balign 16, 0x90
.Lk_entry_end:
.Lk_long:
    mov $.LKERNEL_DATA, %eax
    mov %eax, %ss
    mov %eax, %ds
    mov %eax, %es
    xor %eax, %eax
    mov %eax, %fs
    mov %eax, %gs
    mov $.LSTACK, %esp
    jmp .Lk_main
