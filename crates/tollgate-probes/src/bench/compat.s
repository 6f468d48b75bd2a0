# The frame of the 32-bit program: an ELF header, and a loop that takes orders. The probe's timed loop
# is appended right behind it. Assembled into read-only data of the 64-bit program (Intel syntax) and
# never executed there.
#
# An order on descriptor 0: which (0 the empty loop, 1 the probe's), iterations.
# An answer on descriptor 1: start low, high, processor; end low, high, processor; voluntary and
# involuntary switches before; the same after; the loop's result.

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
    .set .Ltg_answer, 128
    .set .Ltg_usage, 256

.Ltg_entry:
# The scratch page begins at the segment's file size, which the program header tells.
    mov ebp, [.Ltg_base + 68]
    add ebp, .Ltg_base + 15
    and ebp, -16
# The auxiliary vector lies behind argc, argv and envp (System V ABI): find AT_SYSINFO, 32.
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

    lea ecx, [ebp + .Ltg_usage]
    call .Ltg_getrusage
    mov eax, [ebp + .Ltg_usage + 64]
    mov [ebp + .Ltg_answer + 24], eax
    mov eax, [ebp + .Ltg_usage + 68]
    mov [ebp + .Ltg_answer + 28], eax

    mov esi, [ebp + .Ltg_sysinfo]
    mov edi, [ebp + .Ltg_order + 4]
    mov ebx, offset .Ltg_empty_at
    cmp dword ptr [ebp + .Ltg_order], 0
    je 6f
    mov ebx, offset .Ltg_loop_at
# The same fences as in the 64-bit clock.
6:  lfence
    rdtscp
    lfence
    mov [ebp + .Ltg_answer + 0], eax
    mov [ebp + .Ltg_answer + 4], edx
    mov [ebp + .Ltg_answer + 8], ecx
    call ebx
    mov [ebp + .Ltg_answer + 40], eax
    rdtscp
    lfence
    mov [ebp + .Ltg_answer + 12], eax
    mov [ebp + .Ltg_answer + 16], edx
    mov [ebp + .Ltg_answer + 20], ecx

    lea ecx, [ebp + .Ltg_usage]
    call .Ltg_getrusage
    mov eax, [ebp + .Ltg_usage + 64]
    mov [ebp + .Ltg_answer + 32], eax
    mov eax, [ebp + .Ltg_usage + 68]
    mov [ebp + .Ltg_answer + 36], eax

    lea ecx, [ebp + .Ltg_answer]
    mov edx, 44
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

# getrusage(RUSAGE_SELF, ecx): ru_nvcsw and ru_nivcsw are its 17th and 18th words.
.Ltg_getrusage:
    mov eax, 77
    xor ebx, ebx
    int 0x80
    ret

    .balign 64, 0x90
tollgate_compat_end:
.code64
.popsection
