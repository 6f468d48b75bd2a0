# The figures as a picture code, for a PC without a serial port: a QR code (ISO/IEC 18004) of version 7 in half lines of the text screen. The
# host has laid out all that does not depend on the figures (picture.rs): the text but for them, the table of the Reed-Solomon code, and
# which bit each module is. Here figures become characters of 6 bits, characters code words, and those modules.

    .set .LPAGE_CODE, 5156          # where this begins behind the kernel's page, in bytes; 0: there is none
    .set .LCODE_TEXT, 256           # behind a word for each experiment by its number: where its characters are in the text, or ffffh
    .set .LCODE_FACTORS, 416        # of each byte the check words that it adds
    .set .LCODE_MODULES, 5536       # words of 50 lines of 54: from 1 on a bit, and in bit 15 what it is added to. Its light margin is there too
    .set .LCODE_BYTES, 154
    .set .LCODE_DATA, 78            # data words of a block, and its check words; there are two blocks
    .set .LCODE_CHECKS, 20
    .set .LCODE_WIDTH, 54
    .set .LCODE_LEFT, 13            # cells before it
    .set .LWORDS, 0x22a000          # the code words
    .set .LSAVED, 0x22b000          # the table, while the code is shown
    .set .LTURN, 34                 # table and code are shown for 2^34 ticks each: some seconds
    .set .LCODE_VENDOR, 21          # where in the text the vendor is: 6 bits of its first letter

    .set .LCODE_ONCE, 0x3f100       # in the place of a figure: exponent 63, what it is, and a vector
    .set .LCODE_WRONG, 0x3f200
    .set .LCODE_DISTURBED, 0x3f300
    .set .LCODE_LACKS, 0x3f400
    .set .LCODE_FAULT, 0x3f500

# rbx = what the host has laid out, or 0.
.Lk_code_find:
    mov .Lk_page(%rip), %rbx
    test %rbx, %rbx
    jz 1f
    movzwl .LPAGE_CODE(%rbx), %ecx
    add %rcx, %rbx
    test %ecx, %ecx
    jnz 1f
    xor %ebx, %ebx
1:  ret

# The median of the experiment at rbp: 12 bits of its tenths, and how far they were shifted.
    .balign 16, 0x90
.Lk_code_done:
    mov $.LCODE_ONCE, %eax
    cmpl $0, .LENTRY_TWO(%rbp)
    je .Lk_code_put
    mov $.LCODE_WRONG, %eax
    cmpq $0, .Lk_is_wrong(%rip)
    jne .Lk_code_put
    mov $.LCODE_DISTURBED, %eax
    mov .Lk_samples(%rip), %rcx
    test %rcx, %rcx
    jz .Lk_code_put
    call .Lk_show_median
    mov .Lk_n(%rip), %rcx
    mov %rcx, %rdx
    shr $1, %rdx
    add %rdx, %rax
    xor %edx, %edx
    div %rcx
    xor %ecx, %ecx
1:  cmp $4096, %rax
    jb 2f
    shr $1, %rax
    inc %ecx
    jmp 1b
2:  shl $12, %ecx
    or %ecx, %eax
    jmp .Lk_code_put

.Lk_code_lacks:
    mov $.LCODE_LACKS, %eax
    jmp .Lk_code_put

.Lk_code_fault:
    movzbl .Lk_vector(%rip), %eax
    or $.LCODE_FAULT, %eax
    mov .Lk_cs(%rip), %ecx          # the next number in ring 3
    and $2, %ecx
    shl $7, %ecx
    add %ecx, %eax

# Three characters, from 0 on, for the 18 bits of eax: of the experiment at rbp.
.Lk_code_put:
    call .Lk_code_find
    test %rbx, %rbx
    jz 2f
    mov (%rbp), %edx
    movzwl (%rbx,%rdx,2), %edx
    cmp $0xffff, %edx
    je 2f
    add %rdx, %rbx
    mov $12, %ecx
1:  mov %eax, %edx
    shr %cl, %edx
    and $63, %edx
    add $'0', %edx
    mov %dl, .LCODE_TEXT + 2(%rbx)
    inc %rbx
    sub $6, %ecx
    jns 1b
2:  ret

# The code words: four bits that say "bytes", eight for their number, the text, and four of zeroes, as the host has laid out; then the check
# words of both blocks, each the rest of a division.
    .balign 16, 0x90
.Lk_code_make:
    call .Lk_code_find
    test %rbx, %rbx
    jz 9f
    mov $.LSCREEN, %esi
    mov $.LSAVED, %edi
    mov $.LCELLS / 2, %ecx
    rep movsl
    mov %rbx, %r8
    xor %eax, %eax
    cpuid
    and $63, %ebx
    add $'0', %ebx
    mov %bl, .LCODE_TEXT + 2 + .LCODE_VENDOR(%r8)
    mov %r8, %rbx
    lea .LCODE_TEXT(%rbx), %rsi
    mov $.LWORDS, %edi
    mov $.LCODE_BYTES + 2, %ecx
1:  lodsb
    shl $4, %eax
    movzbl (%rsi), %edx
    shr $4, %edx
    or %edx, %eax
    stosb
    dec %ecx
    jnz 1b
    mov $.LWORDS, %esi
    mov $2, %r8d
2:  mov %rdi, %r9
    xor %eax, %eax
    mov $(.LCODE_CHECKS + 4) / 4, %ecx
    rep stosl
    lea .LCODE_CHECKS(%r9), %rdi
    mov $.LCODE_DATA, %r10d
3:  lodsb
    movzbl %al, %eax
    movzbl (%r9), %edx
    xor %edx, %eax
    imul $.LCODE_CHECKS, %eax, %eax
    lea .LCODE_FACTORS(%rbx,%rax), %r11
    xor %ecx, %ecx
4:  movzbl 1(%r9,%rcx), %eax
    movzbl (%r11,%rcx), %edx
    xor %edx, %eax
    mov %al, (%r9,%rcx)
    inc %ecx
    cmp $.LCODE_CHECKS, %ecx
    jne 4b
    dec %r10d
    jnz 3b
    dec %r8d
    jnz 2b
9:  ret

# The run is over: the table and the code in turns, for ever. Without a code this returns.
    .balign 16, 0x90
.Lk_code_turns:
    call .Lk_code_find
    test %rbx, %rbx
    jz 9f
    mov %rbx, %rbp
1:  call .Lk_code_wait
    call .Lk_code_show
    call .Lk_code_wait
    xor %edi, %edi
2:  movzwl .LSAVED(,%rdi,2), %edx
    mov .LSAVED + 1(,%rdi,2), %bl
    call .Lk_put
    inc %edi
    cmp $.LCELLS, %edi
    jne 2b
    jmp 1b
9:  ret

.Lk_code_wait:
    rdtsc
    shl $32, %rdx
    or %rdx, %rax
    mov $1, %ecx
    shl $.LTURN, %rcx
    add %rax, %rcx
1:  pause
    rdtsc
    shl $32, %rdx
    or %rdx, %rax
    cmp %rcx, %rax
    jb 1b
    ret

# The modules, of what is at rbp: two in a cell, one above the other.
.Lk_code_show:
    xor %edi, %edi
    mov $.LMINIMUM, %ebx
1:  mov $' ', %edx
    call .Lk_put
    inc %edi
    cmp $.LCELLS, %edi
    jne 1b
    lea .LCODE_MODULES(%rbp), %rsi
    mov $.LCODE_LEFT, %edi
    mov $.LLINES, %r8d
2:  mov $.LCODE_WIDTH, %ecx
3:  movzwl .LCODE_WIDTH * 2(%rsi), %eax
    call .Lk_code_colour
    mov %eax, %ebx
    shl $4, %ebx
    movzwl (%rsi), %eax
    call .Lk_code_colour
    or %eax, %ebx
    mov $.LHALF, %edx
    call .Lk_put
    add $2, %rsi
    inc %edi
    dec %ecx
    jnz 3b
    add $.LCODE_WIDTH * 2, %rsi
    add $.LLINE - .LCODE_WIDTH, %edi
    dec %r8d
    jnz 2b
    ret

# eax = the colour of a module: grey, or black where it is dark.
.Lk_code_colour:
    mov %eax, %edx
    and $0xfff, %edx
    jz 1f
    dec %edx
    mov %edx, %r9d
    shr $3, %r9d
    movzbl .LWORDS(%r9), %r9d
    and $7, %edx
    bt %edx, %r9d
    jnc 1f
    xor $0x8000, %eax
1:  shr $15, %eax
    dec %eax
    and $7, %eax
    ret
