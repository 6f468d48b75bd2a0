# Programs for the system: flat ones, each between two labels. They are entered at their first byte with the argument in rdi.

.macro program name
    .balign 16, 0x90
    .globl tgr_\name, tgr_\name\()_end
tgr_\name:
.endm
.macro end name
tgr_\name\()_end:
.endm

program hello
    lea 1f(%rip), %rdi
    mov $6, %esi
    mov $1, %eax
    syscall
    mov $42, %edi
    xor %eax, %eax
    syscall
1:  .ascii "hello\n"
end hello
