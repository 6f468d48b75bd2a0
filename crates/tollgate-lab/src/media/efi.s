# The loader for UEFI: an application that has the kernel behind it in its own file. It asks for the kernel's memory and for a screen of
# pixels, ends the boot services, leaves long mode and enters the kernel as a loader of multiboot does. Firmware calls it in 64-bit mode
# by Microsoft's convention: RCX, RDX, R8, R9, then the stack, with 32 bytes above the return address for the callee.
#
# It is loaded anywhere: its addresses are relative to RIP. Offsets of tables are those of the UEFI Specification 2.10: 4.3 (the system
# table), 4.4 (boot services), 12.4 (text output), 12.9 (graphics output).

.pushsection .rodata.tollgate_efi, "a", @progbits
.balign 4096
    .set .LE_TO, 0x100000           # the kernel; what it uses ends at 600000h, and all of it must be free
    .set .LE_PAGES, 0x500
    .set .LE_ENTRY, 28              # in its header, where it is entered
    .set .LE_MAP, 0x300000          # while it is not there: the map of memory,
    .set .LE_MAP_BYTES, 0x100000
    .set .LE_LAST, 0x5f0000         # the last steps, which must be below 4 GiB,
    .set .LE_INFO, 0x5f1000         # and what multiboot tells

    .set .LE_CONSOLE, 64            # of the system table
    .set .LE_SERVICES, 96
    .set .LE_OUTPUT_STRING, 8
    .set .LE_ALLOCATE_PAGES, 40     # of the boot services
    .set .LE_GET_MEMORY_MAP, 56
    .set .LE_EXIT, 232
    .set .LE_STALL, 248
    .set .LE_LOCATE_PROTOCOL, 320

    .globl tollgate_efi_begin
    .hidden tollgate_efi_begin
tollgate_efi_begin:
.Le_begin:
    .code64
    jmp .Le_start
    .balign 8
.Le_kernel:     .long 0             # where it is from here on, and its bytes: efi.rs writes both
.Le_bytes:      .long 0
.Le_graphics:                       # EFI_GRAPHICS_OUTPUT_PROTOCOL_GUID
    .long 0x9042a9de
    .short 0x23dc, 0x4a38
    .byte 0x96, 0xfb, 0x7a, 0xde, 0xd0, 0x80, 0x51, 0x6a
.Le_serial:                         # 115200 bits a second, 8 data bits, no parity, 1 stop bit
    .byte 0xfb, 0x83, 0xf8, 1, 0xf9, 0, 0xfb, 3
    .set .Le_serial_pairs, 4
.Le_text_memory:
    .irpc letter, "tollgate: memory from 1 to 6 MiB is in use"
    .byte '\letter', 0
    .endr
    .short 13, 10, 0
.Le_text_exit:
    .irpc letter, "tollgate: the firmware keeps the machine"
    .byte '\letter', 0
    .endr
    .short 13, 10, 0

    .balign 16, 0x90
.Le_start:
    push %rbx
    push %rbp
    push %rsi
    push %rdi
    push %r12
    push %r13
    push %r14
    sub $0x60, %rsp                 # 8 words are on the stack now: it is aligned to 16
    mov %rcx, %r12
    mov %rdx, %r13
    mov .LE_SERVICES(%rdx), %r14
    cld

    movq $.LE_TO, 0x40(%rsp)
    mov $2, %ecx                    # at this address
    mov $1, %edx                    # of a loader, to be executed
    mov $.LE_PAGES, %r8d
    lea 0x40(%rsp), %r9
    call *.LE_ALLOCATE_PAGES(%r14)
    lea .Le_text_memory(%rip), %rdx
    test %rax, %rax
    jnz .Le_fail

    lea .Le_begin(%rip), %rsi
    mov .Le_kernel(%rip), %eax
    add %rax, %rsi
    mov $.LE_TO, %edi
    mov .Le_bytes(%rip), %ecx
    rep movsb
    lea .Le_last(%rip), %rsi
    mov $.LE_LAST, %edi
    mov $.Le_last_end - .Le_last, %ecx
    rep movsb
    call .Le_inform

# The map's key must be of the state that the services are left in: the first attempt may change it (7.4, ExitBootServices).
    mov $3, %ebp
1:  movq $.LE_MAP_BYTES, 0x40(%rsp)
    lea 0x40(%rsp), %rcx
    mov $.LE_MAP, %edx
    lea 0x48(%rsp), %r8             # the key
    lea 0x50(%rsp), %r9
    lea 0x58(%rsp), %rax
    mov %rax, 0x20(%rsp)
    call *.LE_GET_MEMORY_MAP(%r14)
    test %rax, %rax
    jnz 2f
    mov %r12, %rcx
    mov 0x48(%rsp), %rdx
    call *.LE_EXIT(%r14)
    test %rax, %rax
    jz 3f
    dec %ebp
    jnz 1b
2:  lea .Le_text_exit(%rip), %rdx
    cmp $3, %ebp
    je .Le_fail
# Behind an attempt the firmware may have no other service left than these two (7.4): neither its text output nor a return is safe.
    cli
    call .Le_port
    lea .Le_text_exit(%rip), %rsi
4:  lodsw
    test %ax, %ax
    jz 6f
    mov %eax, %ecx
    mov $0x3fd, %edx                # until it can take a byte
5:  in %dx, %al
    test $0x20, %al
    jz 5b
    mov %ecx, %eax
    mov $0x3f8, %edx
    out %al, %dx
    jmp 4b
6:  hlt
    jmp 6b

3:  cli
    call .Le_port
    mov $.LE_LAST, %eax
    jmp *%rax

# Sets the speed and the form of the first serial port.
.Le_port:
    lea .Le_serial(%rip), %rsi
    mov $.Le_serial_pairs, %ecx
    mov $0x3f8, %edx
1:  lodsw
    mov %al, %dl
    mov %ah, %al
    out %al, %dx
    dec %ecx
    jnz 1b
    ret

# Says what is in rdx, for five seconds, and goes back: the firmware tries what it finds next.
.Le_fail:
    mov .LE_CONSOLE(%r13), %rcx
    call *.LE_OUTPUT_STRING(%rcx)
    mov $5000000, %ecx
    call *.LE_STALL(%r14)
    mov $1, %eax
    bts $63, %rax                   # EFI_LOAD_ERROR
    add $0x60, %rsp
    pop %r14
    pop %r13
    pop %r12
    pop %rdi
    pop %rsi
    pop %rbp
    pop %rbx
    ret

# What multiboot tells ("Boot information format"): the loader's name (bit 9), and a screen of pixels (bit 12) where there is one of
# 4 bytes a pixel that is memory.
    .balign 16, 0x90
.Le_inform:
    sub $0x48, %rsp
    mov $.LE_INFO, %edi
    xor %eax, %eax
    mov $32, %ecx
    rep stosl
    movl $0x200, .LE_INFO
    movl $.Le_name - .Le_last + .LE_LAST, .LE_INFO + 64
    lea .Le_graphics(%rip), %rcx
    xor %edx, %edx
    lea 0x40(%rsp), %r8
    call *.LE_LOCATE_PROTOCOL(%r14)
    test %rax, %rax
    jnz 2f
    mov 0x40(%rsp), %rax
    mov 24(%rax), %rax              # its mode,
    mov 8(%rax), %rdi               # and that one's description
    mov 12(%rdi), %ecx              # 0: red in the lowest byte; 1: blue
    cmp $1, %ecx
    ja 2f
    mov 24(%rax), %rdx
    mov %rdx, .LE_INFO + 88
    mov 32(%rdi), %edx              # pixels of a line
    shl $2, %edx
    mov %edx, .LE_INFO + 96
    mov 4(%rdi), %edx
    mov %edx, .LE_INFO + 100
    mov 8(%rdi), %edx
    mov %edx, .LE_INFO + 104
    movw $0x0120, .LE_INFO + 108    # 32 bits; by red, green and blue, each of 8
    movl $0x08080800, .LE_INFO + 110
    movw $0x0810, .LE_INFO + 114
    test %ecx, %ecx
    jz 1f
    movb $16, .LE_INFO + 110
    movb $0, .LE_INFO + 114
1:  orl $0x1000, .LE_INFO
2:  add $0x48, %rsp
    ret

# The last steps: from 64-bit mode to 32-bit mode with paging off (SDM 3A, "Switching out of IA-32e mode operation").
    .balign 16, 0x90
.Le_last:
    lgdt .Le_gdt_pointer(%rip)
    push $8
    push $.Le_compatible - .Le_last + .LE_LAST
    lretq
    .code32
.Le_compatible:
    mov $16, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    mov %eax, %fs
    mov %eax, %gs
    mov %cr0, %eax
    and $0x7fffffff, %eax
    mov %eax, %cr0
    mov $0xc0000080, %ecx           # EFER
    rdmsr
    and $0xfffffeff, %eax           # LME
    wrmsr
    xor %eax, %eax
    mov %eax, %cr4
    mov $0x2badb002, %eax
    mov $.LE_INFO, %ebx
    jmp *.LE_TO + .LE_ENTRY
    .balign 8
.Le_gdt:
    .quad 0
    .quad 0x00cf9b000000ffff        # code, 32 bits, ring 0
    .quad 0x00cf93000000ffff        # data
.Le_gdt_pointer:
    .short . - .Le_gdt - 1
    .quad .Le_gdt - .Le_last + .LE_LAST
.Le_name:
    .asciz "tollgate"
.Le_last_end:
    .code64

    .balign 4096
    .globl tollgate_efi_end
    .hidden tollgate_efi_end
tollgate_efi_end:
.popsection
