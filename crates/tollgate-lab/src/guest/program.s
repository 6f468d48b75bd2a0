# The program of ring 3: loaded to a page of its own, as any program is. Each quoted line or macro is one operation.
#
# Each operation has two loops of n iterations: one executes it once per iteration, the other twice. The difference of their
# times is n operations, without the loop. esi counts the iterations. rax at the end is the value of the record.
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

# Reads the time when everything before has completed and nothing after has begun (SDM 2B, RDTSC).
.macro tg_stamp
    lfence
    rdtsc
    lfence
.endm

    .balign 64, 0x90
.Lu_begin:

# A batch: rbx is the loop, esi its iterations. It ends with the ticks in edx:eax and the value in rdi, at an instruction that
# enters the kernel on every machine: UD2. (If ring 0 is emulated, INT may not.)
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

# The pointer is at the end of the program.
tg_loops .Lu_call_gate, "lcall *.Lu_far_pointer(%rip)"

# rax is the number of the call, which only the complete path uses.
tg_loops .Lu_syscall, "syscall"
tg_loops .Lu_syscall_path, "xor %eax, %eax; syscall"

.macro tg_sysenter
    mov %rsp, %rcx
    lea .Lu_behind\@(%rip), %rdx
    sysenter
.Lu_behind\@:
.endm
tg_loops .Lu_sysenter, tg_sysenter

# 3 to the power of 3, by invalid instructions.
tg_loops .Lu_lock_mov, "mov $3, %eax; mov $3, %ecx; .byte 0xf0, 0x89, 0xc8"
tg_loops .Lu_ud1, "mov $3, %eax; mov $3, %ecx; ud1l %eax, %ecx"

# The same number by a valid instruction, for comparison.
tg_loops .Lu_imul, "mov $3, %eax; mov $9, %ecx; imul %ecx, %eax"

tg_loops .Lu_page_fault, "mov (%rdi), %eax", "mov $.LABSENT, %edi"
tg_loops .Lu_general_protection, "hlt"

# A test-and-set, made atomic by disabled interrupts: on one processor nothing comes between the load and the store. A program
# that finds the lock free counts it.
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

# Shows the effect of that right: with interrupts off a program keeps the processor as long as it likes, here for 64 pauses.
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

# Wrong setups: one attempt each. wrong.s says which gate, segment or MSR is wrong.
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
# SYSRET loads fixed descriptors, not the GDT's, so the program runs on. Then an interrupt's IRETQ reads the GDT.
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
# The trap of a single step comes after the next instruction, SYSCALL, if TF is still set then.
.Lu_wrong_step:
    pushfq
    orl $0x100, (%rsp)
    popfq
    syscall
    ret

# The same program in 32-bit code. The loops above are 64-bit, but INT and SYSENTER are two bytes in either mode.
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

# 32-bit code has no address relative to EIP: the return address is absolute.
.macro tg_compat_sysenter
    mov %esp, %ecx
    mov $.Lu_behind\@ - .Lu_begin + .LUSER, %edx
    sysenter
.Lu_behind\@:
.endm
tg_loops .Lu_compat_sysenter, tg_compat_sysenter

# The data of the program, in a separate cache line.
    .code64
    .balign 64, 0x90
.Lu_data:
.Lu_lock:
    .long 0, 0
.Lu_far_pointer:                    # for a call gate only the selector counts; the offset is read and ignored
    .long 0
    .short .LCALL_GATE + 3
    .balign 64
.Lu_end:
