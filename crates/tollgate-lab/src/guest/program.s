# The program of ring 3: loaded to a page of its own, as any program is. One operation is what one quoted line or one macro says.
#
# Each operation has two loops of n iterations: one does it once in an iteration, the other twice. The difference of their times is n operations,
# and the loop itself is no part of it. esi counts the iterations. What rax holds at the end is the value of the record.
.macro tg_loops label, operation, before=""
    .balign 64, 0x90
\label\()_1:
    \before
1:  \operation
    dec %esi
    jnz 1b
    ret
    .balign 64, 0x90
\label\()_2:
    \before
1:  \operation
    \operation
    dec %esi
    jnz 1b
    ret
.endm

# The time: nothing before it is still under way, nothing behind it has begun (SDM 2B, RDTSC).
.macro tg_stamp
    lfence
    rdtsc
    lfence
.endm

    .balign 64, 0x90
.Lu_begin:

# A batch: rbx is the loop, esi its iterations. It ends with edx:eax the ticks and rdi the value, at an instruction that comes to the
# kernel on every machine: UD2. (Where ring 0 is emulated, INT may not.)
.Lu_block:
    tg_stamp
    shl $32, %rdx
    or %rax, %rdx
    push %rdx
    xor %eax, %eax
    call *%rbx
    mov %rax, %rdi
    tg_stamp
    pop %rcx
    shl $32, %rdx
    or %rdx, %rax
    sub %rcx, %rax
    mov %rax, %rdx
    shr $32, %rdx
.Lu_done:
    ud2

tg_loops .Lu_int, "int $0x80"
tg_loops .Lu_int_swapgs, "int $0x81"
tg_loops .Lu_breakpoint, "int3"

# The pointer stands at the end of the program.
tg_loops .Lu_call_gate, "lcall *.Lu_far_pointer(%rip)"

# rax: the number of the call, which only the complete path looks at.
tg_loops .Lu_syscall, "syscall"
tg_loops .Lu_syscall_path, "xor %eax, %eax; syscall"

.macro tg_sysenter
    mov %rsp, %rcx
    lea .Lu_behind\@(%rip), %rdx
    sysenter
.Lu_behind\@:
.endm
tg_loops .Lu_sysenter, tg_sysenter

# 3 to the power of 3, by instructions that there are not.
tg_loops .Lu_lock_mov, "mov $3, %eax; mov $3, %ecx; .byte 0xf0, 0x89, 0xc8"
tg_loops .Lu_ud1, "mov $3, %eax; mov $3, %ecx; ud1l %eax, %ecx"

# The same number by one that there is, to hold them against.
tg_loops .Lu_imul, "mov $3, %eax; mov $9, %ecx; imul %ecx, %eax"

tg_loops .Lu_page_fault, "mov (%rdi), %eax", "mov $.LABSENT, %edi"
tg_loops .Lu_general_protection, "hlt"

# A test-and-set, atomic by disabled interrupts: on one processor nothing else comes between the load and the store. A program that
# finds it free counts that.
.macro tg_test_and_set
    cli
    mov .Lu_lock(%rip), %eax
    movl $1, .Lu_lock(%rip)
    sti
    xor $1, %eax
    add %rax, %r15
    movl $0, .Lu_lock(%rip)
.endm
tg_loops .Lu_test_and_set, tg_test_and_set

# And what that right is worth: with interrupts off a program keeps the processor for as long as it likes. This one for 64 pauses.
# It reads RFLAGS meanwhile, and counts if IF was really clear.
.macro tg_keep_the_processor
    cli
    mov $64, %ecx
.Lu_on\@:
    pause
    dec %ecx
    jnz .Lu_on\@
    pushfq
    sti
    pop %rax
    mov %eax, %ecx
    shr $9, %ecx
    not %ecx
    and $1, %ecx
    add %rcx, %r15
.endm
tg_loops .Lu_keep_the_processor, tg_keep_the_processor

# Wrong set-ups: one attempt each. Which gate, segment or MSR is wrong, wrong.s says.
    .balign 16, 0x90
.Lu_wrong_int:
    int $0x82
    ret
.Lu_wrong_call:
    lcall *.Lu_far_pointer(%rip)
    ret
.Lu_wrong_sysenter:
    mov %rsp, %rcx
    lea 1f(%rip), %rdx
    sysenter
1:  ret
# SYSRET has loaded what it says, not what the GDT says: the program runs on. Then an interrupt's IRETQ reads the GDT.
.Lu_wrong_order:
    syscall
    int $0x80
    ret
.Lu_wrong_syscall:
    syscall
    ret
.Lu_wrong_read:
    mov .LGDT, %eax
    ret
.Lu_wrong_port:
    out %al, $0x80
    ret
# The trap of a single step comes behind the next instruction, which is SYSCALL, if TF is still set then.
.Lu_wrong_step:
    pushfq
    orl $0x100, (%rsp)
    popfq
    syscall
    ret

# The same program of 32 bits: the loops above are of 64, but INT and SYSENTER are two bytes in either mode.
    .code32
    .balign 64, 0x90
.Lu_block32:
    tg_stamp
    push %edx
    push %eax
    xor %eax, %eax
    call *%ebx
    mov %eax, %edi
    tg_stamp
    pop %ecx
    sub %ecx, %eax
    pop %ecx
    sbb %ecx, %edx
.Lu_done32:
    ud2

tg_loops .Lu_compat_int, "int $0x80"
tg_loops .Lu_compat_syscall, "syscall"

# There is no address relative to EIP: the way back is an absolute one.
.macro tg_compat_sysenter
    mov %esp, %ecx
    mov $.Lu_behind\@ - .Lu_begin + .LUSER, %edx
    sysenter
.Lu_behind\@:
.endm
tg_loops .Lu_compat_sysenter, tg_compat_sysenter

# What it reads and writes, in a line of its own.
    .code64
    .balign 64, 0x90
.Lu_data:
.Lu_lock:
    .long 0, 0
.Lu_far_pointer:                    # to a call gate only the selector counts; the offset is read and not used
    .long 0
    .short .LCALL_GATE + 3
    .balign 64
.Lu_end:
