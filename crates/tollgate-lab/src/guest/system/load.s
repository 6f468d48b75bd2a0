# Makes programs in their own address spaces from an archive. The host writes the archive, but every field is checked that
# could lead out of it, or out of a program's GiB.

    .balign 16, 0x90
.Ls_main:
    movq $.LABSENT + 0x83, .LPD + .LABSENT / 0x200000 * 8  # the archive uses the page that the experiments lack
    mov %cr3, %rax
    mov %rax, %cr3
    call .Ls_set_up
    call .Lk_say_begin
    rdtsc                           # the clock begins here
    shl $32, %rdx
    or %rdx, %rax
    mov %rax, .Ls_silence(%rip)
    movq $.LTHREADS, .Ls_limit(%rip)
    mov $.LTHREADS, %edi
    mov $.LPROGRAMS + .LPROGRAM * .LMOST_PROGRAMS - .LTHREADS, %ecx
    shr $3, %ecx
    xor %eax, %eax
    rep stosq
    call .Ls_archive
    test %eax, %eax
    jnz 1f
    call .Ls_shared
    call .Ls_programs
    jmp .Ls_schedule_first
1:  mov $.LARCHIVE_FAULT, %ecx
    call .Ls_say_unloaded
    jmp .Ls_stop

# No thread has run yet: the first in the table is next.
.Ls_schedule_first:
    cmpq $0, .Ls_ready(%rip)
    je .Ls_stop
    mov $.LTHREADS, %ebx
    jmp .Ls_leave

# Checks the archive's head: eax is 0 if it is valid.
.Ls_archive:
    mov $.LENOEXEC, %eax
    cmpl $0, .Lk_archive(%rip)
    je 3f
    mov $.LARCHIVE, %esi
    movabs $0x0100676f72706774, %rdx  # "tgprog", 0, 1
    cmp %rdx, (%rsi)
    jne 3f
    mov .LARCHIVE_TOTAL(%rsi), %ecx
    cmp $.LARCHIVE_MOST, %ecx
    ja 3f
    mov .LARCHIVE_COUNT(%rsi), %edx
    lea -1(%rdx), %edi
    cmp $.LMOST_PROGRAMS, %edi
    jae 3f
    shl $6, %edx
    add $.LARCHIVE_HEADER, %edx
    cmp %ecx, %edx
    ja 3f
    mov .LARCHIVE_OPTIONS(%rsi), %edx
    mov %rdx, .Ls_options(%rip)
    mov .LARCHIVE_PERIOD(%rsi), %ecx
    mov $.LPERIOD, %eax
    test %ecx, %ecx
    cmovz %eax, %ecx
    mov $0xffff, %eax
    cmp %eax, %ecx
    cmova %eax, %ecx
    mov $2, %eax                    # mode 2 has no period of 1
    cmp %eax, %ecx
    cmovb %eax, %ecx
    test $.LOPTION_NO_TIMER, %dl
    jz 2f
    xor %ecx, %ecx
2:  mov %rcx, .Ls_period(%rip)
    xor %eax, %eax
3:  ret

# Makes the part that all address spaces share: the kernel's memory, which ring 3 cannot use, and the page of the
# test-and-set.
.Ls_shared:
    mov $0x80000001, %eax
    cpuid
    bt $20, %edx                    # NX
    jnc 1f
    mov $.LEFER, %ecx
    rdmsr
    or $0x800, %eax                 # NXE
    wrmsr
    mov $1, %eax
    shl $63, %rax
    mov %rax, .Ls_no_execute(%rip)
1:  mov $.LSHARED_PD, %edi
    mov $0x83, %eax
    mov $.LFRAMES_END / 0x200000, %ecx
2:  mov %rax, (%rdi)
    add $0x200000, %eax
    add $8, %edi
    dec %ecx
    jnz 2b
    xor %eax, %eax
    mov $(.LSHARED_PT + 0x1000 - .LSHARED_PD) / 8 - .LFRAMES_END / 0x200000, %ecx
    rep stosq
    movq $.LSHARED_PT + 7, .LSHARED_PD + 511 * 8
    movq $.LPRIMITIVE + 5, .LSHARED_PT + 511 * 8
    call .Ls_share_words
    mov $.LPRIMITIVE, %edi          # the rest of the page is INT3
    mov $0xcc, %al
    mov $4096, %ecx
    rep stosb
    lea .Ls_primitive(%rip), %rsi
    mov $.LPRIMITIVE, %edi
    mov $.Ls_primitive_end - .Ls_primitive, %ecx
    rep movsb
    ret

# Loads all programs of the archive; one that cannot be loaded is left out.
.Ls_programs:
    xor %r15d, %r15d
1:  mov %r15d, %ebp
    shl $6, %ebp
    lea .LARCHIVE + .LARCHIVE_HEADER(%rbp), %r14d
    add $.LPROGRAMS, %ebp
    push .Ls_frames(%rip)
    call .Ls_program
    pop %rdx
    test %eax, %eax
    jz 2f
    mov %rdx, .Ls_frames(%rip)      # frees what it took
    mov %r15d, %ecx
    call .Ls_say_unloaded
2:  inc %r15d
    cmp .LARCHIVE + .LARCHIVE_COUNT, %r15d
    jb 1b
    ret

# Loads the program at rbp, with the head at r14 and the number r15: eax is 0, or the reason.
.Ls_program:
    mov %r15d, .LPROGRAM_NUMBER(%rbp)
    mov .LHEAD_FLAGS(%r14), %eax
    mov %eax, .LPROGRAM_FLAGS(%rbp)
    mov $.LROOM, %eax               # each may write an equal share
    xor %edx, %edx
    divl .LARCHIVE + .LARCHIVE_COUNT
    mov %rax, .LPROGRAM_ROOM(%rbp)
    call .Ls_address_space
    jz .Ls_no_memory
    mov .LHEAD_FIRST(%r14), %r12d
    mov .LHEAD_SEGMENTS(%r14), %r13d
    mov $.LENOEXEC, %eax
    mov $.LMOST_SEGMENTS, %ecx
    cmp %ecx, %r12d
    ja 9f
    cmp %ecx, %r13d
    ja 9f
    lea (%r12,%r13), %edx           # the end of the table must lie within the archive
    imul $.LSEGMENT, %edx, %edx
    mov .LARCHIVE + .LARCHIVE_COUNT, %ecx
    shl $6, %ecx
    lea .LARCHIVE_HEADER(%rcx), %ecx
    add %ecx, %edx
    cmp .LARCHIVE + .LARCHIVE_TOTAL, %edx
    ja 9f
    imul $.LSEGMENT, %r12d, %r12d
    lea .LARCHIVE(%r12,%rcx), %r12d
1:  test %r13d, %r13d
    jz 2f
    call .Ls_segment
    test %eax, %eax
    jnz 9f
    add $.LSEGMENT, %r12d
    dec %r13d
    jmp 1b

2:  mov .LHEAD_STACK(%r14), %rcx    # the stack, below LUSER_TOP
    test %rcx, %rcx
    jnz 3f
    mov $0x4000, %ecx
3:  mov $.LENOMEM, %eax
    cmp $.LUSER_TOP - .LUSER_BEGIN, %rcx
    ja 9f
    mov $.LUSER_TOP, %edi
    sub %rcx, %rdi
    and $-4096, %rdi
4:  cmp $.LUSER_TOP, %rdi
    jae 5f
    mov $6, %esi
    call .Ls_page
    jz .Ls_no_memory
    add $4096, %rdi
    jmp 4b
5:  mov .LHEAD_ENTRY(%r14), %rsi
    mov .LHEAD_ARGUMENT(%r14), %edi
    mov $.LUSER_TOP, %edx
    call .Ls_new_thread
    xor %eax, %eax
9:  ret

# Loads the segment at r12: eax is 0, or the reason.
.Ls_segment:
    mov (%r12), %rdi
    mov .LSEGMENT_BYTES(%r12), %rsi
    mov .LSEGMENT_OFFSET(%r12), %rdx
    mov .LSEGMENT_STORED(%r12), %rcx
    mov $.LEFAULT, %eax
    cmp $.LUSER_BEGIN, %rdi         # it lies within the program's GiB,
    jb 9f
    mov $.LUSER_END, %r8d
    cmp %r8, %rdi
    ja 9f
    sub %rdi, %r8
    cmp %r8, %rsi
    ja 9f
    mov $.LENOEXEC, %eax
    cmp %rsi, %rcx                  # has no more bytes than its size,
    ja 9f
    mov .LARCHIVE + .LARCHIVE_TOTAL, %r8d
    cmp %r8, %rdx
    ja 9f
    sub %rdx, %r8
    cmp %r8, %rcx                   # and they lie within the archive
    ja 9f
    lea .LARCHIVE(%rdx), %r9        # the next byte to copy
    lea (%rdi,%rsi), %r10           # the end of the segment,
    lea (%rdi,%rcx), %r11           # and of the copied bytes
1:  cmp %r10, %rdi
    jae 8f
    mov .LSEGMENT_FLAGS(%r12), %esi
    push %rdi
    and $-4096, %rdi
    call .Ls_page
    pop %rdi
    jz .Ls_no_memory
    mov (%rax), %rdx                # the address in the frame
    shl $1, %rdx                    # without bit 63
    shr $1, %rdx
    and $-4096, %rdx
    mov %edi, %eax
    and $0xfff, %eax
    add %rax, %rdx
    mov $4096, %ecx                 # to the end of the page, or of the bytes
    sub %eax, %ecx
    lea (%rdi,%rcx), %r8
    mov %r11, %rax
    sub %rdi, %rax
    jbe 2f
    cmp %rcx, %rax
    cmovb %eax, %ecx
    mov %r9, %rsi
    mov %rdx, %rdi
    add %rcx, %r9
    rep movsb
2:  mov %r8, %rdi
    jmp 1b
8:  xor %eax, %eax
9:  ret

.Ls_no_memory:
    mov $.LENOMEM, %eax
    ret

# Makes the tables of the program at rbp: a root, one for its first 512 GiB, one for its own GiB. ZF is set if memory is
# exhausted.
.Ls_address_space:
    call .Ls_new_frame
    jz 9f
    mov %rax, .LPROGRAM_ROOT(%rbp)
    call .Ls_new_frame
    jz 9f
    mov .LPROGRAM_ROOT(%rbp), %rcx
    lea 7(%rax), %rdx
    mov %rdx, (%rcx)
    movq $.LSHARED_PD + 7, (%rax)
    mov %rax, %rcx
    call .Ls_new_frame
    jz 9f
    mov %rax, .LPROGRAM_PD(%rbp)
    lea 7(%rax), %rdx
    mov %rdx, 8(%rcx)
9:  ret

# Maps a page of the program at rbp: rdi is its address, esi the rights (1 execute, 2 write, 4 read). rax is the address of
# its entry; ZF is set if memory is exhausted. A page that is already mapped gets both sets of rights. Keeps rdi, and r8 on.
    .balign 16, 0x90
.Ls_page:
    push %r8
    mov %esi, %r8d
    call .Ls_entry_made
    jz 9f
    push %rcx
    mov %rax, %rcx
    testb $1, (%rcx)
    jnz 1f
    call .Ls_new_frame
    jz 8f
    or .Ls_no_execute(%rip), %rax
    or $5, %rax
    mov %rax, (%rcx)
1:  mov %r8d, %eax
    and $2, %eax
    or %rax, (%rcx)
    test $1, %r8b
    jz 2f
    mov (%rcx), %rax
    shl $1, %rax
    shr $1, %rax
    mov %rax, (%rcx)
2:  mov %rcx, %rax
    test %rax, %rax
8:  pop %rcx
9:  pop %r8
    ret

# Returns in rax the address of the entry for the address in rdi, and makes its table if there is none. ZF is set if memory is
# exhausted.
.Ls_entry_made:
    call .Ls_entry
    jnz 9f
    push %rcx
    mov %rdi, %rcx
    shr $21, %rcx
    and $511, %ecx
    shl $3, %ecx
    add .LPROGRAM_PD(%rbp), %rcx
    call .Ls_new_frame
    jz 8f
    or $7, %rax
    mov %rax, (%rcx)
    call .Ls_entry
8:  pop %rcx
9:  ret

# Returns in rax the address of the entry for the address in rdi, in the GiB of the program at rbp; ZF is set if it has no
# table.
    .balign 16, 0x90
.Ls_entry:
    push %rcx
    mov %rdi, %rcx
    shr $21, %rcx
    and $511, %ecx
    mov .LPROGRAM_PD(%rbp), %rax
    mov (%rax,%rcx,8), %rax
    and $-4096, %rax
    jz 9f
    mov %rdi, %rcx
    shr $12, %rcx
    and $511, %ecx
    lea (%rax,%rcx,8), %rax
    test %rax, %rax
9:  pop %rcx
    ret

# Returns in rax a frame of zeroes; ZF is set if there is none. Keeps all other registers.
    .balign 16, 0x90
.Ls_new_frame:
    push %rcx
    push %rdi
    mov .Ls_frames_back(%rip), %rdi
    test %rdi, %rdi
    jz 1f
    mov (%rdi), %rax
    mov %rax, .Ls_frames_back(%rip)
    jmp 3f
1:  mov .Ls_frames(%rip), %rdi
    cmp $.LARCHIVE, %rdi
    jne 2f
    mov $.LARCHIVE + .LARCHIVE_MOST, %edi
2:  xor %eax, %eax
    cmp $.LFRAMES_END, %rdi
    je 4f
    lea 4096(%rdi), %rax
    mov %rax, .Ls_frames(%rip)
3:  push %rdi
    xor %eax, %eax
    mov $512, %ecx
    rep stosq
    pop %rax
    test %rax, %rax
4:  pop %rdi
    pop %rcx
    ret
