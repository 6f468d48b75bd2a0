# The frame of the 32-bit program: an ELF header, and a loop that takes orders. The benchmark's timed loop
# is appended directly after it. It is assembled into read-only data of the 64-bit program (Intel syntax) and
# never executed there.
#
# An order on descriptor 0: iterations, and more of them for the benchmark's loop alone.
# An answer on descriptor 1: three spans (the empty loop, the benchmark's, the empty one again), each ticks
# low, high, and 0 if the processor stayed the same; voluntary and involuntary switches, minor and
# major faults before, the same after; what the benchmark's loop returned.

.pushsection .rodata.tollgate_compat, "a", @progbits
.balign 64
.code32
tollgate_compat_begin:
    .set .Ltg_base, 0x08048000

# ELF header (System V ABI): 32-bit, little endian, executable, Intel 80386.
    .byte 0x7f, 0x45, 0x4c, 0x46, 1, 1, 1, 0
    .quad 0
    .short 2, 3
    .long 1
    .long .Ltg_entry - tollgate_compat_begin + .Ltg_base
    .long 52, 0, 0
    .short 52, 32, 1, 0, 0, 0
# Program header: one segment, readable, writable and executable; the starter fills in its two sizes.
    .long 1, 0, .Ltg_base, .Ltg_base, 0, 0, 7, 4096

    .balign 64, 0x90
.Ltg_empty:
    xor eax, eax
    .balign 64, 0x90
2:  dec edi
    jnz 2b
    ret

# Where the two loops are once the segment is mapped.
    .set .Ltg_empty_at, .Ltg_empty - tollgate_compat_begin + .Ltg_base
    .set .Ltg_loop_at, tollgate_compat_end - tollgate_compat_begin + .Ltg_base

# The scratch page, to which ebp points.
    .set .Ltg_sysinfo, 0
    .set .Ltg_hello_code, 4
    .set .Ltg_order, 64
    .set .Ltg_extra, 68
    .set .Ltg_answer, 128
    .set .Ltg_switches_before, 128 + 36
    .set .Ltg_switches_after, 128 + 52
    .set .Ltg_result, 128 + 68
    .set .Ltg_start, 256
    .set .Ltg_returned, 268
    .set .Ltg_usage, 320

.Ltg_entry:
# The scratch page begins at the segment's file size, which the program header holds.
    mov ebp, [.Ltg_base + 68]
    add ebp, .Ltg_base + 15
    and ebp, -16
# The auxiliary vector follows argc, argv and envp (System V ABI): find AT_SYSINFO, 32.
    mov esi, esp
    mov ecx, [esi]
    lea esi, [esi + 4*ecx + 8]
3:  lodsd
    test eax, eax
    jnz 3b
4:  lodsd
    mov edx, eax
    lodsd
    test edx, edx
    jz 5f
    cmp edx, 32
    jne 4b
    mov [ebp + .Ltg_sysinfo], eax
    mov esi, eax
    lea edi, [ebp + .Ltg_hello_code]
    mov ecx, 8
    rep movsd
5:  mov ecx, ebp
    mov edx, 36
    call .Ltg_write

.Ltg_serve:
# read(0, order, 8)
    mov eax, 3
    xor ebx, ebx
    lea ecx, [ebp + .Ltg_order]
    mov edx, 8
    int 0x80
    cmp eax, 8
    jne .Ltg_exit

# A sixteenth of the iterations to warm up; its time is overwritten.
    mov edi, [ebp + .Ltg_order]
    shr edi, 4
    or edi, 1
    mov ebx, offset .Ltg_loop_at
    lea edx, [ebp + .Ltg_answer]
    call .Ltg_time

    lea edx, [ebp + .Ltg_switches_before]
    call .Ltg_switches
    mov edi, [ebp + .Ltg_order]
    mov ebx, offset .Ltg_empty_at
    lea edx, [ebp + .Ltg_answer]
    call .Ltg_time
    mov edi, [ebp + .Ltg_order]
    add edi, [ebp + .Ltg_extra]
    mov ebx, offset .Ltg_loop_at
    lea edx, [ebp + .Ltg_answer + 12]
    call .Ltg_time
    mov eax, [ebp + .Ltg_returned]
    mov [ebp + .Ltg_result], eax
    mov edi, [ebp + .Ltg_order]
    mov ebx, offset .Ltg_empty_at
    lea edx, [ebp + .Ltg_answer + 24]
    call .Ltg_time
    lea edx, [ebp + .Ltg_switches_after]
    call .Ltg_switches

    lea ecx, [ebp + .Ltg_answer]
    mov edx, 72
    call .Ltg_write
    jmp .Ltg_serve

.Ltg_exit:
    mov eax, 1
    xor ebx, ebx
    int 0x80
    ud2

# write(1, ecx, edx)
.Ltg_write:
    mov eax, 4
    mov ebx, 1
    int 0x80
    ret

# Times the loop at ebx with edi iterations; its span goes to edx. The fences are those of the 64-bit clock.
.Ltg_time:
    push edx
    mov esi, [ebp + .Ltg_sysinfo]
    lfence
    rdtscp
    lfence
    mov [ebp + .Ltg_start], eax
    mov [ebp + .Ltg_start + 4], edx
    mov [ebp + .Ltg_start + 8], ecx
    call ebx
    mov [ebp + .Ltg_returned], eax
    rdtscp
    lfence
    sub eax, [ebp + .Ltg_start]
    sbb edx, [ebp + .Ltg_start + 4]
    xor ecx, [ebp + .Ltg_start + 8]
    pop ebx
    mov [ebx], eax
    mov [ebx + 4], edx
    mov [ebx + 8], ecx
    ret

# getrusage(RUSAGE_SELF): ru_nvcsw and ru_nivcsw, its 17th and 18th words, and ru_minflt and ru_majflt, its 9th and 10th,
# go to edx.
.Ltg_switches:
    push edx
    mov eax, 77
    xor ebx, ebx
    lea ecx, [ebp + .Ltg_usage]
    int 0x80
    pop edx
    mov eax, [ebp + .Ltg_usage + 64]
    mov [edx], eax
    mov eax, [ebp + .Ltg_usage + 68]
    mov [edx + 4], eax
    mov eax, [ebp + .Ltg_usage + 32]
    mov [edx + 8], eax
    mov eax, [ebp + .Ltg_usage + 36]
    mov [edx + 12], eax
    ret

    .balign 64, 0x90
tollgate_compat_end:
.code64
.popsection
