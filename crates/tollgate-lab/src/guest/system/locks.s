# Programs that take and release a lock, as an archive's flat binary: one program for each lock, in one position-independent
# piece, which is loaded to .LUSER_BEGIN.
#
# edi is the argument: bits 0 to 7 are the number of the program, from 1; the bits from 8 on say how often it takes the lock.

# The words that programs share, at rdi.
    .set .LWORD_LOCK, 0
    .set .LWORD_INSIDE, 4           # programs that are in the critical section
    .set .LWORD_COUNT, 8            # number of passages, by an addition that only a lock makes atomic
    .set .LWORD_X, 12               # Lamport's
    .set .LWORD_Y, 16
    .set .LWORD_B, 20               # b[1] is at 24, b[3] the last
    .set .LMOST_CONTENDERS, 3

.macro tl_call number
    mov $\number, %eax
    syscall
.endm

# A program. ebx is its number, rdi the shared words; r12d counts down. The kernel owns r15. It yields in the critical
# section, so that others run there without the timer too. At \name\()_alone there is no critical section, and only the lock
# is measured.
.macro tl_program name, acquire, release, before=""
    .balign 16, 0x90
.Lp_\name:
    tl_begin "\before"
.Lp_\name\()_again:
    \acquire
    incl .LWORD_INSIDE(%rdi)
    mov .LWORD_COUNT(%rdi), %esi
    tl_call 3
    inc %esi
    mov %esi, .LWORD_COUNT(%rdi)
    decl .LWORD_INSIDE(%rdi)
    \release
    dec %r12d
    jnz .Lp_\name\()_again
    jmp .Lp_end
.Lp_\name\()_alone:
    tl_begin "\before"
.Lp_\name\()_alone_again:
    \acquire
    \release
    dec %r12d
    jnz .Lp_\name\()_alone_again
    jmp .Lp_end
.endm

.macro tl_begin before
    movzbl %dil, %ebx
    mov %edi, %r12d
    shr $8, %r12d
    \before
    mov $.LWORDS_AT, %edi
.endm

# Takes the lock by a test-and-set that returns the old value in eax. A program that finds it taken yields and tries again.
.macro tl_acquire test_and_set
.Lp_try\@:
    \test_and_set
    test %eax, %eax
    jz .Lp_taken\@
    tl_call 3
    jmp .Lp_try\@
.Lp_taken\@:
.endm

.macro tl_release
    movl $0, .LWORD_LOCK(%rdi)
.endm

# Calls the primitive at a place of the page, or at an instruction after its first one, with r15 as after a preemption.
.macro tl_primitive place, behind=0
    .if \behind
    mov $.LSPOILED, %r15d
    .endif
    mov $.LPRIMITIVE_AT + \place * .LPLACE + \behind, %eax
    call *%rax
.endm

.macro tl_cli
    cli
    mov (%rdi), %eax
    movl $1, (%rdi)
    sti
.endm

.macro tl_xchg
    mov $1, %eax
    xchg %eax, (%rdi)
.endm

# Lamport, "A Fast Mutual Exclusion Algorithm", ACM TOCS 5(1), 1987, algorithm 2. On one processor it needs no fence. A
# program that waits yields.
.macro tl_lamport
.Lp_start\@:
    movl $1, .LWORD_B(%rdi,%rbx,4)
    mov %ebx, .LWORD_X(%rdi)
    cmpl $0, .LWORD_Y(%rdi)
    je .Lp_second\@
    movl $0, .LWORD_B(%rdi,%rbx,4)
.Lp_wait\@:
    tl_call 3
    cmpl $0, .LWORD_Y(%rdi)
    jne .Lp_wait\@
    jmp .Lp_start\@
.Lp_second\@:
    mov %ebx, .LWORD_Y(%rdi)
    cmp %ebx, .LWORD_X(%rdi)
    je .Lp_taken\@
    movl $0, .LWORD_B(%rdi,%rbx,4)
    mov $.LMOST_CONTENDERS, %edx
.Lp_each\@:
    cmpl $0, .LWORD_B(%rdi,%rdx,4)
    je .Lp_next\@
    tl_call 3
    jmp .Lp_each\@
.Lp_next\@:
    dec %edx
    jnz .Lp_each\@
    cmp %ebx, .LWORD_Y(%rdi)
    jne .Lp_wait\@
.Lp_taken\@:
.endm

.macro tl_lamport_release
    movl $0, .LWORD_Y(%rdi)
    movl $0, .LWORD_B(%rdi,%rbx,4)
.endm

    .balign 64, 0x90
    .globl tollgate_guest_locks
    .hidden tollgate_guest_locks
tollgate_guest_locks:
.Lp_begin:
tl_program none, "", ""

# Makes a lock from a test-and-set of this name.
.macro tl_lock name, test_and_set, before=""
.macro tl_acquire_\name
    tl_acquire "\test_and_set"
.endm
tl_program \name, tl_acquire_\name, tl_release, "\before"
.endm

tl_lock restart, "tl_primitive 0"
tl_lock restart_test, "tl_primitive 1"
tl_lock cli, tl_cli, "mov $3, %edi; tl_call 12"
tl_program lamport, tl_lamport, tl_lamport_release
tl_lock xchg, tl_xchg
tl_lock call, "tl_call 11"

# The first two as if preempted after the first instruction of the primitive: each contains a restart.
tl_lock restarted, "tl_primitive 0, 3"
tl_lock restarted_test, "tl_primitive 1, 3"

# The wrong primitives.
tl_lock late, "tl_primitive 2"
tl_lock around, "tl_primitive 3"

.Lp_end:
    xor %edi, %edi
    tl_call 0
    .globl tollgate_guest_locks_end
    .hidden tollgate_guest_locks_end
tollgate_guest_locks_end:

# The entry of each, with and without a critical section. The order gives the indexes in locks/list.rs.
    .subsection 1
    .balign 4
    .globl tollgate_guest_lock_entries
    .hidden tollgate_guest_lock_entries
tollgate_guest_lock_entries:
    .irp name, none, restart, restart_test, cli, lamport, xchg, call, restarted, restarted_test, late, around
    .long .Lp_\name - .Lp_begin, .Lp_\name\()_alone - .Lp_begin
    .endr
    .globl tollgate_guest_lock_entries_end
    .hidden tollgate_guest_lock_entries_end
tollgate_guest_lock_entries_end:
    .subsection 0
