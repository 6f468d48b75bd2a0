# The first sector of a disk, and what a BIOS loads from a CD: it reads the kernel, leaves real mode and enters the kernel as a loader of
# multiboot does. The BIOS loads it to 7C00h and enters it there in real mode, with the drive's number in DL.
#
# A BIOS may write over bytes 3 to 3Eh, where a file system has its parameters, and the partition table begins at 1BEh. The numbers that
# differ between a disk and a CD are at fixed places in front of it: sector.rs writes them.

.pushsection .rodata.tollgate_boot, "a", @progbits
.balign 512
    .set .LB_AT, 0x7c00             # this sector
    .set .LB_INFO, 0x500            # what multiboot tells: the first memory that is not the BIOS's
    .set .LB_KERNEL, 0x10000        # the kernel, as it is read; real mode reaches no further than 1 MiB
    .set .LB_TO, 0x100000           # and where it belongs
    .set .LB_ENTRY, 28              # in its header, where it is entered

    .globl tollgate_boot_begin
    .hidden tollgate_boot_begin
tollgate_boot_begin:
.Lb_begin:
    .code16
    jmp .Lb_start
    .org .Lb_begin + 0x40
.Lb_start:
    cli
    xor %ax, %ax
    mov %ax, %ss
    mov $.LB_AT, %sp
    mov %ax, %ds
    mov %ax, %es
    cld
    sti
    ljmp $0, $.Lb_here - .Lb_begin + .LB_AT     # some enter at 07C0h:0
.Lb_here:
    mov %dl, .Lb_drive - .Lb_begin + .LB_AT
    mov $0x0003, %ax                # 80 times 25 characters
    int $0x10

# The serial port: 115200 bits a second, 8 data bits, no parity, 1 stop bit.
    mov $.Lb_serial - .Lb_begin + .LB_AT, %si
    mov $.Lb_serial_pairs, %cx
    mov $0x03, %dh
1:  lodsw
    mov %al, %dl
    mov %ah, %al
    out %al, %dx
    loop 1b

# Address line 20, without which 1 MiB is 0 again: by the BIOS, or by the port of the PS/2.
    mov $0x2401, %ax
    int $0x15
    call .Lb_is_above
    je 2f
    in $0x92, %al
    or $2, %al
    and $0xfe, %al                  # bit 0 would reset the processor
    out %al, $0x92
    call .Lb_is_above
    mov $.Lb_text_memory - .Lb_begin + .LB_AT, %si
    jne .Lb_say
2:

# The kernel, one sector after the other, by the extensions of INT 13h (function 42h).
.Lb_read:
    mov $3, %cx                     # attempts
3:  push %cx
    mov $.Lb_packet - .Lb_begin + .LB_AT, %si
    mov .Lb_drive - .Lb_begin + .LB_AT, %dl
    mov $0x42, %ah
    int $0x13
    pop %cx
    jnc 4f
    xor %ax, %ax                    # function 0: begin anew
    int $0x13
    loop 3b
    mov $.Lb_text_disk - .Lb_begin + .LB_AT, %si
    jmp .Lb_say
4:  mov .Lb_paragraphs - .Lb_begin + .LB_AT, %ax
    add %ax, .Lb_packet + 6 - .Lb_begin + .LB_AT
    incl .Lb_packet + 8 - .Lb_begin + .LB_AT
    decw .Lb_sectors - .Lb_begin + .LB_AT
    jnz .Lb_read

# What multiboot tells ("Boot information format"): nothing but the loader's name, flag bit 9.
    mov $.LB_INFO, %di
    mov $64, %cx
    xor %ax, %ax
    rep stosw
    movw $0x200, .LB_INFO
    movw $.Lb_text_name - .Lb_begin + .LB_AT, .LB_INFO + 64

    cli
    lgdtl .Lb_gdt_pointer - .Lb_begin + .LB_AT
    mov %cr0, %eax
    or $1, %al
    mov %eax, %cr0
    ljmpl $8, $.Lb_protected - .Lb_begin + .LB_AT

    .code32
.Lb_protected:
    mov $16, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    mov $.LB_KERNEL, %esi
    mov $.LB_TO, %edi
    mov .Lb_words - .Lb_begin + .LB_AT, %ecx
    rep movsl
    mov $0x2badb002, %eax
    mov $.LB_INFO, %ebx
    jmp *.LB_TO + .LB_ENTRY

    .code16
# Whether memory above 1 MiB is another than that at 0: ZF.
.Lb_is_above:
    mov $0xffff, %ax
    mov %ax, %fs
    movw $0, .LB_INFO
    mov %ax, %fs:.LB_INFO + 16
    cmpw $0, .LB_INFO
    ret

# A text that ends with a zero, at si, and the end.
.Lb_say:
    lodsb
    test %al, %al
    jz 1f
    mov $0x0e, %ah
    mov $7, %bx
    int $0x10
    jmp .Lb_say
1:  hlt
    jmp 1b

    .balign 4
.Lb_gdt:
    .quad 0
    .quad 0x00cf9b000000ffff        # code, 32 bits, ring 0
    .quad 0x00cf93000000ffff        # data
.Lb_gdt_pointer:
    .short . - .Lb_gdt - 1
    .long .Lb_gdt - .Lb_begin + .LB_AT
.Lb_serial:
    .byte 0xfb, 0x83, 0xf8, 1, 0xf9, 0, 0xfb, 3
    .set .Lb_serial_pairs, 4
.Lb_text_name:   .asciz "tollgate"
.Lb_text_memory: .asciz "no memory above 1 MiB"
.Lb_text_disk:   .asciz "the disk cannot be read"
.Lb_drive:       .byte 0

# What sector.rs writes. The packet of function 42h: its size, how many sectors, where to (offset and segment), from which one.
    .org .Lb_begin + 0x1a0
.Lb_packet:
    .short 16, 1, 0, .LB_KERNEL >> 4
    .quad 0
.Lb_sectors:     .short 0           # of the kernel
.Lb_paragraphs:  .short 0           # 16 bytes each, of a sector
.Lb_words:       .long 0            # of 4 bytes, of the kernel
    .org .Lb_begin + 0x1fe
    .short 0xaa55                   # without it a BIOS takes the sector for none
    .globl tollgate_boot_end
    .hidden tollgate_boot_end
tollgate_boot_end:
    .code64
.popsection
