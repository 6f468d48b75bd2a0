# Maps two pages, locks the first one, gives both back as far as the kernel lets it, and at last reads the one that is gone:
# the program ends by a page fault.

        .set EXIT, 0
        .set WRITE, 1
        .set MAP, 7
        .set UNMAP, 8
        .set LOCK, 9
        .set PAGES, 0x50000000
        .set EBUSY, 16

        .text
        .globl _start
_start: mov $MAP, %eax                  # two pages that may be read and written
        mov $PAGES, %edi
        mov $2, %esi
        mov $6, %r8d
        syscall
        lea mapped(%rip), %rdi
        call check

        mov $LOCK, %eax                 # the first one stays
        mov $PAGES, %edi
        mov $1, %esi
        int $0x80                       # any of the four entries will do
        lea locked(%rip), %rdi
        call check

        mov $UNMAP, %eax                # both cannot be given back,
        mov $PAGES, %edi
        mov $2, %esi
        lcall *gate(%rip)
        add $EBUSY, %rax
        lea busy(%rip), %rdi
        call check

        mov $UNMAP, %eax                # but the second one can
        mov $PAGES + 4096, %edi
        mov $1, %esi
        mov %rsp, %rcx
        lea 1f(%rip), %rdx
        sysenter
1:      lea gone(%rip), %rdi
        call check

        movb $1, PAGES                  # the first one is there
        movb PAGES + 4096, %al          # and here the program ends

# Writes the text at rdi where rax is 0; else the program ends with status 1.
check:  test %rax, %rax
        jnz 2f
        mov %rdi, %rsi
1:      cmpb $0, (%rsi)
        lea 1(%rsi), %rsi
        jne 1b
        sub %rdi, %rsi
        dec %rsi
        mov $WRITE, %eax
        syscall
        ret
2:      mov $EXIT, %eax
        mov $1, %edi
        syscall

        .section .rodata
gate:   .long 0
        .word 0x53
mapped: .asciz "two pages are mapped\n"
locked: .asciz "the first one is locked\n"
busy:   .asciz "both cannot be unmapped\n"
gone:   .asciz "the second one is unmapped\n"
