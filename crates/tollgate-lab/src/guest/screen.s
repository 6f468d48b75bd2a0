# The screen of an image that is started by itself: the same experiments, and a table of their figures while they are done. The host has
# laid the table out (screen.rs): what every cell shows at first, and where the figure of each experiment goes. It is shown on the
# text screen of a VGA, or drawn where the loader set a screen of pixels, and in the end it follows the records on the serial port.
# Nothing of this is between the two stamps of a batch.

    .set .LSHOWN, 3                 # of .Lk_command

# Memory that only this command uses.
    .set .LSCREEN, 0x224000         # what the cells show, each a character and its attribute
    .set .LSAMPLES, 0x226000        # ticks of the rounds of one experiment, the smallest first
    .set .LMOST_SAMPLES, 256
    .set .LPIXELS_PD, 0x228000      # page tables for a screen of pixels above the first GiB: two pages

    .set .LVGA, 0xb8000             # the memory of the text screen
    .set .LLINE, 80
    .set .LLINES, 25
    .set .LCELLS, .LLINE * .LLINES

# What the host has laid out, behind the kernel in the file: bytes from its beginning. docs/lab.md, "The screen".
    .set .LPAGE_ROWS, 4000          # behind the cells: of each experiment, by number,
    .set .LROW_FLAGS, 2             # behind the cell at which its figure ends, which is 0 where it is not shown:
    .set .LROW_COUNTED, 1           #   a handler counts each operation
    .set .LROW_HAS_VALUE, 2         #   rax is known at the end
    .set .LROW_HAS_MINIMUM, 4       #   a second column of figures
    .set .LROW_VALUE, 4
    .set .LPAGE_NAMES, 5024         # of exceptions, 4 bytes each
    .set .LPAGE_PROCESSOR, 5152     # the cell at which the processor's name begins,
    .set .LPAGE_STATE, 5154         # and the one at which the state of the run ends
    .set .LPAGE_GLYPHS, 5160        # from the space on, 5 bytes each: columns from the left, the lowest bit at the top
    .set .LLAST_GLYPH, 95

    .set .LHALF, 0xdf               # a character: the upper half in its colour, the lower one in its ground's
    .set .LFIELD, 10                # cells from the end of a median to the end of a minimum
    .set .LFIGURE, 0x0f             # attributes: white, grey, dark grey, light red, light cyan, white on blue
    .set .LMINIMUM, 0x07
    .set .LFAINT, 0x08
    .set .LFLAGGED, 0x0c
    .set .LREFUSED, 0x0b
    .set .LBAR, 0x1f

# The loader's information (Multiboot 1, "Boot information format"), as far as entry.s keeps it.
    .set .LINFO_PIXELS, 12          # of its flags: a screen is described
    .set .LINFO_ADDRESS, 88
    .set .LINFO_PITCH, 96
    .set .LINFO_WIDTH, 100
    .set .LINFO_HEIGHT, 104
    .set .LINFO_BITS, 108
    .set .LINFO_TYPE, 109           # 1: red, green and blue
    .set .LINFO_COLOURS, 110        # of the three the lowest bit and how many: by the text; by GRUB's header, which aligns them, at 112
    .set .LRED, 0
    .set .LGREEN, 2
    .set .LBLUE, 4
    .set .LINFO_BYTES, 120

# A glyph's columns with one that is empty, and its rows with one above and one below.
    .set .LGLYPH, 5
    .set .LCELL_WIDTH, 6
    .set .LCELL_HEIGHT, 10

# Four characters of a name, to r8.
.macro tg_keep_name register
    mov \register, (%r8)
    add $4, %r8
.endm

    .subsection 1
    .balign 8
.Lk_page:       .quad 0             # what the host has laid out; 0: nothing is shown
.Lk_pixels:     .quad 0             # the first pixel of the first cell; 0: it is a text screen
.Lk_pitch:      .quad 0             # bytes of a line of pixels
.Lk_pixel:      .quad 0             # and of a pixel
.Lk_scale:      .quad 0             # a glyph's dot is so many pixels wide and high
.Lk_samples:    .quad 0             # how many there are
.Lk_is_wrong:   .quad 0             # a round of this experiment did not do its operations
    .globl tollgate_guest_loader_info
    .hidden tollgate_guest_loader_info
tollgate_guest_loader_info:
.Lk_info:       .fill .LINFO_BYTES, 1, 0
    .balign 8
.Lk_colours:                        # of the 4 bits of an attribute, as a VGA has them
    .long 0x000000, 0x0000aa, 0x00aa00, 0x00aaaa, 0xaa0000, 0xaa00aa, 0xaa5500, 0xaaaaaa
    .long 0x555555, 0x5555ff, 0x55ff55, 0x55ffff, 0xff5555, 0xff55ff, 0xffff55, 0xffffff
.Lk_text_guest: .asciz ", in a guest of "
.Lk_text_done_once: .asciz "done"
.Lk_text_lacking: .asciz "lacking"
.Lk_text_wrong: .asciz "wrong"
.Lk_text_disturbed: .asciz "disturbed"
.Lk_text_complete: .asciz "   done"
.Lk_text_broke: .asciz " broken"
.Lk_text_no_long_mode: .asciz "tollgate: this processor has no long mode"
    .subsection 0

# Lays the screen out, where one is asked for.
    .balign 16, 0x90
.Lk_show_begin:
    cmpl $.LSHOWN, .Lk_command(%rip)
    jne 9f
    mov .Lk_archive(%rip), %esi
    test %esi, %esi
    jz 9f
    add $.LBASE, %esi
    mov %rsi, .Lk_page(%rip)
# Firmware may have used the local APIC, which no mask of the 8259A reaches, and programs in ring 3 have interrupts on: with the highest
# priority of the task it delivers none (SDM 3A, "Task priority in IA-32e mode").
    mov $15, %eax
    mov %rax, %cr8
    mov $.LSCREEN, %edi
    mov $.LCELLS / 2, %ecx
    rep movsl
    call .Lk_look_for_pixels
    mov $0x3d4, %edx                # no cursor: bit 5 of the controller's register 0Ah
    mov $0x0a, %al
    out %al, %dx
    inc %edx
    mov $0x20, %al
    out %al, %dx
    xor %edi, %edi
1:  movzwl .LSCREEN(,%rdi,2), %edx
    mov .LSCREEN + 1(,%rdi,2), %bl
    call .Lk_put
    inc %edi
    cmp $.LCELLS, %edi
    jne 1b
    jmp .Lk_show_processor
9:  ret

# A round came to its end: its ticks are kept, in order. As elsewhere the first of several does not count: its caches were cold.
    .balign 16, 0x90
.Lk_show_round:
    mov .Lk_page(%rip), %rbx
    test %rbx, %rbx
    jz 9f
    cmpl $0, .LENTRY_TWO(%rbp)
    je 9f
    cmpq $0, .Lk_round_now(%rip)
    jne 1f
    movq $0, .Lk_samples(%rip)
    movq $0, .Lk_is_wrong(%rip)
1:  mov (%rbp), %eax
    lea .LPAGE_ROWS(%rbx,%rax,8), %rbx
    testb $.LROW_COUNTED, .LROW_FLAGS(%rbx)
    jz 1f
    mov .Lk_n(%rip), %rax
    cmp .Lk_count_one(%rip), %rax
    jne 8f
    add %rax, %rax
    cmp .Lk_count(%rip), %rax
    jne 8f
1:  testb $.LROW_HAS_VALUE, .LROW_FLAGS(%rbx)
    jz 2f
    mov .LROW_VALUE(%rbx), %eax
    cmp .Lk_value(%rip), %rax
    jne 8f
2:  cmpq $0, .Lk_round_now(%rip)
    jne 3f
    cmpl $1, .Lk_rounds(%rip)
    ja 9f
3:  mov .Lk_ticks(%rip), %rax
    sub .Lk_ticks_one(%rip), %rax
    jb 9f                           # disturbed
    mov .Lk_samples(%rip), %rcx
    cmp $.LMOST_SAMPLES, %rcx
    jae 9f
    incq .Lk_samples(%rip)
4:  test %ecx, %ecx
    jz 5f
    mov .LSAMPLES - 8(,%rcx,8), %rdx
    cmp %rax, %rdx
    jbe 5f
    mov %rdx, .LSAMPLES(,%rcx,8)
    dec %ecx
    jmp 4b
5:  mov %rax, .LSAMPLES(,%rcx,8)
    ret
8:  movq $1, .Lk_is_wrong(%rip)
9:  ret

# All rounds did: their median and their minimum.
    .balign 16, 0x90
.Lk_show_done:
    call .Lk_code_done
    call .Lk_show_place
    test %edi, %edi
    jz 9f
    mov $.LFIGURE, %ebx
    lea .Lk_text_done_once(%rip), %rsi
    cmpl $0, .LENTRY_TWO(%rbp)
    je .Lk_show_right
    mov $.LFLAGGED, %ebx
    lea .Lk_text_wrong(%rip), %rsi
    cmpq $0, .Lk_is_wrong(%rip)
    jne .Lk_show_right
    lea .Lk_text_disturbed(%rip), %rsi
    mov .Lk_samples(%rip), %rax
    test %rax, %rax
    jz .Lk_show_right

    mov $.LFIGURE, %ebx
    mov %rax, %rcx
    call .Lk_show_median
    push %rdi
    call .Lk_show_tenths
    pop %rdi
    testb $.LROW_HAS_MINIMUM, .LROW_FLAGS(%r8)
    jz 9f
    mov $.LMINIMUM, %ebx
    add $.LFIELD, %edi
    mov .LSAMPLES, %rax
    lea (%rax,%rax,4), %rax
    add %rax, %rax
    jmp .Lk_show_tenths
9:  ret

# rax = the median of rcx samples, in tenths of n operations: half the sum of the two in the middle, which are one of an odd number.
.Lk_show_median:
    lea -1(%rcx), %rdx
    shr $1, %rdx
    shr $1, %rcx
    mov .LSAMPLES(,%rcx,8), %rax
    add .LSAMPLES(,%rdx,8), %rax
    lea (%rax,%rax,4), %rax
    ret

.Lk_show_lacks:
    call .Lk_code_lacks
    call .Lk_show_place
    test %edi, %edi
    jz 9b
    mov $.LFAINT, %ebx
    lea .Lk_text_lacking(%rip), %rsi
    jmp .Lk_show_right

# A fault: #GP(412), or its vector where it has no name.
    .balign 16, 0x90
.Lk_show_fault:
    call .Lk_code_fault
    call .Lk_show_place
    test %edi, %edi
    jz 9b
    push %rdi
    mov $.LSAMPLES, %edi            # what was measured before it is of no use
    mov $'#', %al
    stosb
    mov .Lk_page(%rip), %rsi
    mov .Lk_vector(%rip), %rax
    lea .LPAGE_NAMES(%rsi,%rax,4), %rsi
    cmpb $0, (%rsi)
    je 2f
1:  lodsb
    test %al, %al
    jz 3f
    stosb
    jmp 1b
2:  call .Lk_spell
3:  mov .Lk_error(%rip), %eax
    test %eax, %eax
    jz 4f
    push %rax
    mov $'(', %al
    stosb
    pop %rax
    call .Lk_spell
    mov $')', %al
    stosb
4:  xor %eax, %eax
    stosb
    pop %rdi
    mov $.LREFUSED, %ebx
    mov $.LSAMPLES, %esi
    jmp .Lk_show_right

# The state of the run, and then the table on the serial port. Its lines are no records: nothing of it is counted.
.Lk_show_broken:
    lea .Lk_text_broke(%rip), %rsi
    jmp 1f
.Lk_show_end:
    lea .Lk_text_complete(%rip), %rsi
1:  mov .Lk_page(%rip), %rdx
    test %rdx, %rdx
    jz 9f
    movzwl .LPAGE_STATE(%rdx), %edi
    mov $.LBAR, %ebx
    call .Lk_show_right
    call .Lk_code_make
    call .Lk_say_newline
    mov $.LSCREEN, %ebx
    mov $.LLINES, %ebp
2:  mov $.LLINE, %ecx               # without the spaces at its end
3:  cmpb $' ', -2(%rbx,%rcx,2)
    jne 4f
    dec %ecx
    jnz 3b
4:  xor %esi, %esi
5:  cmp %ecx, %esi
    jae 7f
    movzbl (%rbx,%rsi,2), %eax
    cmp $0x7f, %al                  # the line between columns
    jb 6f
    mov $'|', %al
6:  call .Lk_say_byte
    inc %esi
    jmp 5b
7:  call .Lk_say_newline
    add $.LLINE * 2, %ebx
    dec %ebp
    jnz 2b
9:  ret

# The processor by its own name, and the name of the hypervisor whose guest it is.
    .balign 16, 0x90
.Lk_show_processor:
    mov $.LSAMPLES, %r8d
    mov $0x80000000, %eax
    cpuid
    cmp $0x80000004, %eax
    jb 2f
    mov $0x80000002, %esi           # 48 characters (SDM 2A, CPUID; APM 3, the same leaves)
1:  mov %esi, %eax
    cpuid
    tg_keep_name %eax
    tg_keep_name %ebx
    tg_keep_name %ecx
    tg_keep_name %edx
    inc %esi
    cmp $0x80000005, %esi
    jne 1b
    jmp 3f
2:  xor %eax, %eax                  # or the 12 of its maker
    cpuid
    tg_keep_name %ebx
    tg_keep_name %edx
    tg_keep_name %ecx
3:  movb $0, (%r8)
    call .Lk_squeeze
    mov .Lk_page(%rip), %rdx
    movzwl .LPAGE_PROCESSOR(%rdx), %edi
    mov $.LFIGURE, %ebx
    mov $.LSAMPLES, %esi
    call .Lk_show_left

    mov $1, %eax
    cpuid
    bt $31, %ecx                    # no processor sets it
    jnc 4f
    mov $.LMINIMUM, %ebx
    lea .Lk_text_guest(%rip), %rsi
    call .Lk_show_left
    mov $.LSAMPLES, %r8d
    mov $0x40000000, %eax           # reserved to hypervisors: 12 characters
    cpuid
    tg_keep_name %ebx
    tg_keep_name %ecx
    tg_keep_name %edx
    movb $0, (%r8)
    mov $.LMINIMUM, %ebx
    mov $.LSAMPLES, %esi
    jmp .Lk_show_left
4:  ret

# Where the figure of the experiment at rbp goes: edi is the cell behind it, or 0 where it is not shown, and r8 its row.
    .balign 16, 0x90
.Lk_show_place:
    mov .Lk_page(%rip), %r8
    xor %edi, %edi
    test %r8, %r8
    jz 1f
    mov (%rbp), %eax
    lea .LPAGE_ROWS(%r8,%rax,8), %r8
    movzwl (%r8), %edi
1:  ret

# A number at the end of a field: rax in tenths, of n operations, and edi the cell behind it.
    .balign 16, 0x90
.Lk_show_tenths:
    mov .Lk_n(%rip), %rcx
    mov %rcx, %rdx
    shr $1, %rdx
    add %rdx, %rax                  # to the nearest
    xor %edx, %edx
    div %rcx
    mov $10, %ecx
    mov $.LFIELD - 3, %esi          # digits before the point, at most
    call .Lk_show_digit
    mov $'.', %edx
    dec %edi
    call .Lk_put
1:  call .Lk_show_digit
    dec %esi
    jz 2f
    test %rax, %rax
    jnz 1b
2:  ret

# The last digit of rax, before the cell edi. rcx is 10.
.Lk_show_digit:
    xor %edx, %edx
    div %rcx
    add $'0', %edx
    dec %edi
    jmp .Lk_put

# A text that ends with a zero, at rsi, before the cell edi, in the colours bl.
    .balign 16, 0x90
.Lk_show_right:
    mov %rsi, %rdx
1:  cmpb $0, (%rdx)
    je .Lk_show_left
    dec %edi
    inc %rdx
    jmp 1b

# The same from the cell edi on.
.Lk_show_left:
1:  lodsb
    test %al, %al
    jz 2f
    mov %eax, %edx
    call .Lk_put
    inc %edi
    jmp 1b
2:  ret

# The text at .LSAMPLES without the spaces that processors fill their names up with.
    .balign 16, 0x90
.Lk_squeeze:
    push %rdi
    mov $.LSAMPLES, %esi
    mov %esi, %edi
    mov $' ', %ecx
1:  lodsb
    cmp $' ', %al
    jne 2f
    cmp %cl, %al
    je 1b
2:  mov %eax, %ecx
    stosb
    test %al, %al
    jnz 1b
    pop %rdi
    ret

# eax in hexadecimal, to rdi.
.Lk_spell:
    mov %eax, %edx
    mov $28, %ecx
1:  test %ecx, %ecx
    jz 2f
    mov %edx, %eax
    shr %cl, %eax
    jnz 2f
    sub $4, %ecx
    jmp 1b
2:  mov %edx, %eax
    shr %cl, %eax
    and $15, %eax
    add $'0', %eax
    cmp $'9', %eax
    jbe 3f
    add $'a' - '0' - 10, %eax
3:  stosb
    sub $4, %ecx
    jns 2b
    ret

# The character dl in the colours bl at the cell edi. Keeps all registers but rdx.
    .balign 16, 0x90
.Lk_put:
    mov %bl, %dh
    mov %dx, .LSCREEN(,%rdi,2)
    cmpq $0, .Lk_pixels(%rip)
    jne .Lk_draw
    mov %dx, .LVGA(,%rdi,2)
    ret

# The same on a screen of pixels.
    .balign 16, 0x90
.Lk_draw:
    push %rax
    push %rbx
    push %rcx
    push %rsi
    push %rdi
    push %rbp
    push %r8
    push %r9
    push %r10
    push %r11
    push %r12
    mov %edi, %eax                  # where its first pixel is
    movzbl %dl, %esi
    movzbl %dh, %ebx
    xor %edx, %edx
    mov $.LLINE, %ecx
    div %ecx
    imul $.LCELL_WIDTH, %edx, %edi
    imul .Lk_pixel(%rip), %rdi
    imul .Lk_scale(%rip), %rdi
    imul $.LCELL_HEIGHT, %eax, %eax
    imul .Lk_scale(%rip), %rax
    imul .Lk_pitch(%rip), %rax
    add %rax, %rdi
    add .Lk_pixels(%rip), %rdi

    mov %ebx, %eax                  # its two colours
    and $15, %eax
    lea .Lk_colours(%rip), %r8
    mov (%r8,%rax,4), %r9d
    shr $4, %ebx
    mov (%r8,%rbx,4), %r8d

    sub $' ', %esi                  # its glyph
    cmp $.LHALF - ' ', %esi
    jne 8f
    xor %esi, %esi                  # none: half a cell
    jmp 7f
8:  cmp $.LLAST_GLYPH, %esi
    jbe 1f
    mov $.LLAST_GLYPH, %esi
1:  lea (%rsi,%rsi,4), %rsi
    add .Lk_page(%rip), %rsi
    add $.LPAGE_GLYPHS, %rsi
7:

    xor %r10d, %r10d                # each row of dots, in lines of pixels
2:  mov .Lk_scale(%rip), %r11
3:  mov %rdi, %r12
    xor %ebp, %ebp                  # each column
4:  mov %r8d, %eax
    test %rsi, %rsi
    jz 8f
    cmp $.LGLYPH, %ebp
    jae 5f
    movzbl (%rsi,%rbp), %edx
    add %edx, %edx                  # the row above is empty
    bt %r10d, %edx
    jnc 5f
    mov %r9d, %eax
5:  mov .Lk_scale(%rip), %rcx
    mov %eax, %edx
    shr $16, %edx
6:  mov %ax, (%rdi)                 # 3 bytes, also where a pixel has a fourth
    mov %dl, 2(%rdi)
    add .Lk_pixel(%rip), %rdi
    dec %ecx
    jnz 6b
    inc %ebp
    cmp $.LCELL_WIDTH, %ebp
    jne 4b
    mov %r12, %rdi
    add .Lk_pitch(%rip), %rdi
    dec %r11
    jnz 3b
    inc %r10d
    cmp $.LCELL_HEIGHT, %r10d
    jne 2b

    jmp 9f

8:  cmp $.LCELL_HEIGHT / 2, %r10d   # the upper half
    jae 5b
    mov %r9d, %eax
    jmp 5b

9:  pop %r12
    pop %r11
    pop %r10
    pop %r9
    pop %r8
    pop %rbp
    pop %rdi
    pop %rsi
    pop %rcx
    pop %rbx
    pop %rax
    ret

# A screen of pixels, where the loader tells of one that is large enough, of 3 or 4 bytes a pixel, below 512 GiB. GRUB sets one where there
# is no text screen. Its memory is made present, and the table stands in its middle.
    .balign 16, 0x90
.Lk_look_for_pixels:
    mov .Lk_info(%rip), %eax
    bt $.LINFO_PIXELS, %eax
    jnc 9f
    cmpb $1, .Lk_info + .LINFO_TYPE(%rip)
    jne 9f
    movzbl .Lk_info + .LINFO_BITS(%rip), %eax
    cmp $32, %eax
    je 1f
    cmp $24, %eax
    jne 9f
1:  shr $3, %eax
    mov %rax, .Lk_pixel(%rip)
    mov .Lk_info + .LINFO_ADDRESS(%rip), %rsi
    mov %rsi, %rdi
    shr $30, %rdi                   # which GiB
    cmp $511, %rdi
    jae 9f

    mov .Lk_info + .LINFO_WIDTH(%rip), %eax     # how large a dot may be
    xor %edx, %edx
    mov $.LLINE * .LCELL_WIDTH, %ecx
    div %ecx
    mov %eax, %ebx
    mov .Lk_info + .LINFO_HEIGHT(%rip), %eax
    xor %edx, %edx
    mov $.LLINES * .LCELL_HEIGHT, %ecx
    div %ecx
    cmp %eax, %ebx
    cmova %eax, %ebx
    test %ebx, %ebx
    jz 9f
    mov %rbx, .Lk_scale(%rip)
    mov .Lk_info + .LINFO_PITCH(%rip), %r8d
    mov %r8, .Lk_pitch(%rip)

    mov .Lk_info + .LINFO_HEIGHT(%rip), %eax    # half of what is left above and below, and beside
    imul $.LLINES * .LCELL_HEIGHT, %ebx, %ecx
    sub %ecx, %eax
    shr $1, %eax
    imul %r8, %rax
    add %rax, %rsi
    mov .Lk_info + .LINFO_WIDTH(%rip), %eax
    imul $.LLINE * .LCELL_WIDTH, %ebx, %ecx
    sub %ecx, %eax
    shr $1, %eax
    imul .Lk_pixel(%rip), %rax
    add %rax, %rsi
    mov %rsi, .Lk_pixels(%rip)

    test %rdi, %rdi                 # the first GiB is there
    jz 2f
    mov %rdi, %rax
    shl $30, %rax
    or $0x83, %rax                  # pages of 2 MiB; what memory it is the MTRRs say
    xor %ecx, %ecx
1:  mov %rax, .LPIXELS_PD(,%rcx,8)
    add $0x200000, %rax
    inc %ecx
    cmp $1024, %ecx
    jne 1b
    movq $.LPIXELS_PD + 3, .LPDPT(,%rdi,8)
    movq $.LPIXELS_PD + 4096 + 3, .LPDPT + 8(,%rdi,8)

2:  mov .Lk_info + .LINFO_ADDRESS(%rip), %rdi  # nothing else is on it
    mov .Lk_info + .LINFO_HEIGHT(%rip), %ecx
    imul %r8, %rcx
    shr $2, %rcx
    xor %eax, %eax
    rep stosl
    lea .Lk_info + .LINFO_COLOURS(%rip), %rbp   # red, green and blue to where they are here
    cmpb $0, 1(%rbp)
    jne 3f
    add $2, %rbp
3:  lea .Lk_colours(%rip), %rsi
    xor %edi, %edi
4:  mov (%rsi,%rdi,4), %edx
    xor %ebx, %ebx
    movzbl %dl, %eax
    mov .LBLUE(%rbp), %cl
    shl %cl, %eax
    or %eax, %ebx
    shr $8, %edx
    movzbl %dl, %eax
    mov .LGREEN(%rbp), %cl
    shl %cl, %eax
    or %eax, %ebx
    shr $8, %edx
    mov .LRED(%rbp), %cl
    shl %cl, %edx
    or %edx, %ebx
    mov %ebx, (%rsi,%rdi,4)
    inc %edi
    cmp $16, %edi
    jne 4b
9:  ret
