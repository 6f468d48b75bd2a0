# Two threads of control add to one counter, 2000 times each, with a lock around it: the test-and-set of the kernel's page. Run it with
# --test-and-set and a short turn. Without that option the kernel does not restart a thread that loses the processor in the page, and
# additions are lost.

        .set EXIT, 0
        .set WRITE, 1
        .set YIELD, 3
        .set SPAWN, 4
        .set WAIT, 5
        .set TEST_AND_SET, 0x3ffff000   # rdi: the address of four bytes; eax: what they were. It loses r15 and the flags
        .set TIMES, 2000

        .text
        .globl _start
_start: lea add(%rip), %rdi
        lea first(%rip), %r8
        call spawn
        lea second(%rip), %r8
        call spawn
        mov $1, %edi                    # threads are numbered from the program's first, 0
        call wait
        mov $2, %edi
        call wait
        lea kept(%rip), %rsi
        cmpl $2 * TIMES, counter(%rip)
        je 1f
        lea lost(%rip), %rsi
1:      mov %rsi, %rdi
        mov $kept_end - kept, %esi
        mov $WRITE, %eax
        syscall
        xor %edi, %edi
        jmp exit

# A thread at rdi, with the end of its stack in r8.
spawn:  mov $SPAWN, %eax
        xor %esi, %esi
        syscall
        ret

wait:   mov $WAIT, %eax
        syscall
        ret

# A thread. r15 is the kernel's: nothing here uses it.
add:    mov $TIMES, %ebx
1:      lea lock(%rip), %rdi
        mov $TEST_AND_SET, %eax
        call *%rax
        test %eax, %eax
        jz 2f
        mov $YIELD, %eax
        syscall
        jmp 1b
2:      mov counter(%rip), %r12d        # an addition of many steps, with another one's turn in it
        mov $YIELD, %eax
        syscall
        inc %r12d
        mov %r12d, counter(%rip)
        movl $0, lock(%rip)
        dec %ebx
        jnz 1b
        xor %edi, %edi
exit:   mov $EXIT, %eax
        syscall

        .section .rodata
kept:   .ascii "no addition is lost\n"
kept_end:
lost:   .ascii "additions are lost \n"

        .bss
        .balign 16
lock:   .long 0
counter: .long 0
        .skip 1024
first:  .skip 1024
second:
