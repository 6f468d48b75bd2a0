# Records: one line each, `tg1 <kind> <fields> *<checksum>`, numbers in hexadecimal. record.rs describes the fields, and reads
# them.

    .subsection 1
.Lk_text_begin:   .asciz "tg1 begin"
.Lk_text_try:     .asciz "tg1 try"
.Lk_text_done:    .asciz "tg1 done"
.Lk_text_lacks:   .asciz "tg1 lacks"
.Lk_text_fault:   .asciz "tg1 fault"
.Lk_text_broken:  .asciz "tg1 broken"
.Lk_text_end:     .asciz "tg1 end"
.Lk_text_refused: .asciz "tg1 refused *d358ea83\n"
    .balign 4
.Lk_checksum:     .long 0       # of the line so far
.Lk_lines:        .long 0       # the number of lines so far
.Lk_patience:     .long 0x10000 # how often the line status is read until the last byte is gone
    .subsection 0

# Writes a field.
.macro tg_say_field where
    mov \where, %rax
    call .Lk_say_number
.endm

    .balign 16, 0x90
.Lk_say_begin:
    lea .Lk_text_begin(%rip), %rsi
    call .Lk_say_kind
    xor %eax, %eax
    cpuid                           # the vendor's name: ebx, edx, ecx
    shl $32, %rdx
    mov %ebx, %eax
    or %rdx, %rax
    push %rcx
    call .Lk_say_number
    pop %rax
    call .Lk_say_number
    mov $1, %eax
    cpuid                           # family, model, stepping
    call .Lk_say_number
    mov .Lk_features(%rip), %rax
    call .Lk_say_number
    mov .Lk_operations(%rip), %eax
    call .Lk_say_number
    mov .Lk_rounds(%rip), %eax
    call .Lk_say_number
    jmp .Lk_say_checksum

.Lk_say_try:
    lea .Lk_text_try(%rip), %rsi
    call .Lk_say_kind
    call .Lk_say_experiment
    jmp .Lk_say_checksum

.Lk_say_lacks:                      # eax: the features that are missing
    push %rax
    lea .Lk_text_lacks(%rip), %rsi
    call .Lk_say_kind
    call .Lk_say_experiment
    pop %rax
    call .Lk_say_number
    jmp .Lk_say_checksum

.Lk_say_done:
    lea .Lk_text_done(%rip), %rsi
    call .Lk_say_kind
    call .Lk_say_experiment
    tg_say_field .Lk_round_now(%rip)
    tg_say_field .Lk_n(%rip)
    tg_say_field .Lk_ticks_one(%rip)
    tg_say_field .Lk_ticks(%rip)
    tg_say_field .Lk_count_one(%rip)
    tg_say_field .Lk_count(%rip)
    tg_say_field .Lk_value(%rip)
    jmp .Lk_say_checksum

.Lk_say_fault:
    lea .Lk_text_fault(%rip), %rsi
    call .Lk_say_kind
    call .Lk_say_experiment
    tg_say_field .Lk_round_now(%rip)
    tg_say_field .Lk_vector(%rip)
    tg_say_field .Lk_error(%rip)
    tg_say_field .Lk_cs(%rip)
    tg_say_field .Lk_rip(%rip)
    tg_say_field .Lk_count(%rip)
    jmp .Lk_say_checksum

.Lk_say_broken:
    lea .Lk_text_broken(%rip), %rsi
    call .Lk_say_kind
    tg_say_field .Lk_vector(%rip)
    tg_say_field .Lk_error(%rip)
    tg_say_field .Lk_cs(%rip)
    tg_say_field .Lk_rip(%rip)
    jmp .Lk_say_checksum

.Lk_say_end:
    lea .Lk_text_end(%rip), %rsi
    call .Lk_say_kind
    mov .Lk_lines(%rip), %eax
    call .Lk_say_number
    jmp .Lk_say_checksum

.Lk_say_experiment:
    mov .Lk_entry_now(%rip), %rax
    mov (%rax), %eax
    jmp .Lk_say_number

# Begins a line. rsi: its first words.
.Lk_say_kind:
    movl $0x811c9dc5, .Lk_checksum(%rip)

.Lk_say_text:
    lodsb
    test %al, %al
    jz 1f
    call .Lk_say_byte
    jmp .Lk_say_text
1:  ret

# Writes a space, and rax without leading zeros.
.Lk_say_number:
    push %rax
    mov $' ', %al
    call .Lk_say_byte
    pop %rax
    mov $60, %ecx
1:  test %ecx, %ecx                 # leading zeros, but not the last
    jz .Lk_say_digits
    mov %rax, %rdx
    shr %cl, %rdx
    jnz .Lk_say_digits
    sub $4, %ecx
    jmp 1b

# Writes the digits of rax from the one at bit ecx down.
.Lk_say_digits:
    mov %rax, %rdx
    shr %cl, %rdx
    and $15, %edx
    push %rax
    lea '0'(%rdx), %eax
    cmp $10, %edx
    jb 1f
    add $'a' - '0' - 10, %eax
1:  call .Lk_say_byte
    pop %rax
    sub $4, %ecx
    jns .Lk_say_digits
    ret

# Ends a line with the checksum of everything before its space.
.Lk_say_checksum:
    mov .Lk_checksum(%rip), %ebx
    incl .Lk_lines(%rip)
    mov $' ', %al
    call .Lk_say_byte
    mov $'*', %al
    call .Lk_say_byte
    mov %rbx, %rax
    mov $28, %ecx
    call .Lk_say_digits

.Lk_say_newline:
    mov $'\n', %al

# Adds the byte in al to the checksum (FNV-1a of 32 bits), and writes it to the serial port. Keeps all registers but rax.
    .balign 16, 0x90
.Lk_say_byte:
    push %rcx
    push %rdx
    movzbl %al, %eax
    mov .Lk_checksum(%rip), %edx
    xor %eax, %edx
    imul $0x01000193, %edx, %edx
    mov %edx, .Lk_checksum(%rip)
    push %rax
    mov $0x3fd, %edx                # line status: bit 5, the last byte is gone
    mov .Lk_patience(%rip), %ecx
1:  in %dx, %al
    test $0x20, %al
    jnz 2f
    dec %ecx
    jnz 1b
    movl $1, .Lk_patience(%rip)     # if it never is, the guest waits only once: a run has 20,000 bytes
2:  pop %rax
    mov $0x3f8, %edx
    out %al, %dx
    pop %rdx
    pop %rcx
    ret

# Sets 8 data bits, no parity, no interrupts. The speed is the loader's.
.Lk_serial:
    mov $0x3fb, %edx
    mov $3, %al
    out %al, %dx
    mov $0x3f9, %edx
    xor %eax, %eax
    out %al, %dx
    mov $0x3fc, %edx
    mov $3, %al
    out %al, %dx
    ret
