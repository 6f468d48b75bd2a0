# System calls: number in rax; arguments in rdi, rsi and r8 (in 32-bit code edi, esi and ebx); result in rax, negative for an
# error. The third argument is not in rdx because SYSENTER uses it.

    .balign 16, 0x90
.Ls_call:
    incq .LTHREAD_CALLS(%rbx)
    mov .LSAVED_RDI(%rbx), %rdi
    mov .LSAVED_RSI(%rbx), %rsi
    mov .LSAVED_R8(%rbx), %rdx
    cmpq $.LUSER_CODE32, .LSAVED_CS(%rbx)
    jne 1f
    mov %edi, %edi
    mov %esi, %esi
    mov .LSAVED_RBX(%rbx), %edx
1:  mov .LSAVED_RAX(%rbx), %rax
    cmp $(.Ls_calls_end - .Ls_calls) / 4, %rax
    jae .Ls_no_call
    lea .Ls_calls(%rip), %rcx
    mov (%rcx,%rax,4), %eax
    jmp *%rax

.macro ts_call name
    .long .Ls_call_\name - .Lk_begin + .LBASE
.endm
    .subsection 1
    .balign 4
.Ls_calls:
    .irp name, exit, write, time, yield, spawn, wait, self, map, unmap, lock, null, test_and_set, iopl, sleep
    ts_call \name
    .endr
.Ls_calls_end:
    .subsection 0

# Returns an error from a call.
.macro ts_error number
    mov $-\number, %rax
    jmp .Ls_return
.endm

.Ls_no_call:
    mov $-.LENOSYS, %rax
    jmp .Ls_return
.Ls_call_null:
    xor %eax, %eax
.Ls_return:
    mov %rax, .LSAVED_RAX(%rbx)
    jmp .Ls_leave

# exit(status): ends this thread.
.Ls_call_exit:
    mov %rdi, .LTHREAD_STATUS(%rbx)
    call .Ls_say_exit
    ts_ready_no_more .LENDED
    mov $.LTHREADS, %ecx            # the threads that wait for it continue
1:  cmpl $.LWAITING, .LTHREAD_STATE(%rcx)
    jne 2f
    cmp %rbp, .LTHREAD_PROGRAM(%rcx)
    jne 2f
    mov .LTHREAD_FOR(%rcx), %rax
    cmp %rax, .LTHREAD_NUMBER(%rbx)
    jne 2f
    mov .LTHREAD_STATUS(%rbx), %rax
    mov %rax, .LSAVED_RAX(%rcx)
    movl $.LREADY, .LTHREAD_STATE(%rcx)
    incq .Ls_ready(%rip)
    movl $.LFREE, .LTHREAD_STATE(%rbx)
2:  add $.LTHREAD, %ecx
    cmp .Ls_limit(%rip), %rcx
    jb 1b
    jmp .Ls_schedule

# wait(number): waits for another thread of the program, and returns its status, which is available once.
.Ls_call_wait:
    cmp %rdi, .LTHREAD_NUMBER(%rbx)
    jne 1f
    ts_error .LEDEADLK
1:  mov $.LTHREADS, %ecx
2:  cmpl $.LFREE, .LTHREAD_STATE(%rcx)
    je 3f
    cmp %rbp, .LTHREAD_PROGRAM(%rcx)
    jne 3f
    cmp %rdi, .LTHREAD_NUMBER(%rcx)
    je 4f
3:  add $.LTHREAD, %ecx
    cmp .Ls_limit(%rip), %rcx
    jb 2b
    ts_error .LESRCH
4:  cmpl $.LENDED, .LTHREAD_STATE(%rcx)
    jne 5f
    movl $.LFREE, .LTHREAD_STATE(%rcx)
    mov .LTHREAD_STATUS(%rcx), %rax
    jmp .Ls_return
5:  mov %rdi, .LTHREAD_FOR(%rbx)
    ts_ready_no_more .LWAITING
    jmp .Ls_schedule

# yield(): ends the turn.
.Ls_call_yield:
    movq $0, .LSAVED_RAX(%rbx)
    jmp .Ls_schedule

# sleep(ticks of the timer).
.Ls_call_sleep:
    cmpq $0, .Ls_period(%rip)
    jne 1f
    ts_error .LENODEV
1:  movq $0, .LSAVED_RAX(%rbx)
    test %rdi, %rdi
    jz .Ls_schedule
    add .Ls_ticks(%rip), %rdi
    jnc 2f
    mov $-1, %rdi
2:  mov %rdi, .LTHREAD_FOR(%rbx)
    ts_ready_no_more .LSLEEPING
    incq .Ls_sleeping(%rip)
    jmp .Ls_schedule

.Ls_call_time:
    call .Ls_clock
    jmp .Ls_return

.Ls_call_self:
    mov .LTHREAD_NUMBER(%rbx), %rax
    jmp .Ls_return

# spawn(entry, argument, end of the stack): makes a thread in the same address space.
.Ls_call_spawn:
    cmp $.LUSER_BEGIN, %rdi
    jb 1f
    mov $.LUSER_END, %eax
    cmp %rax, %rdi
    jb 2f
1:  ts_error .LEFAULT
2:  xchg %rdi, %rsi
    call .Ls_new_thread
    test %rax, %rax
    jnz 3f
    ts_error .LEAGAIN
3:  mov .LTHREAD_NUMBER(%rax), %rax
    jmp .Ls_return

# write(address, bytes): writes as many as there is room for.
.Ls_call_write:
    mov $5, %edx
    call .Ls_may
    jnz .Ls_return_fault
    xor %eax, %eax
    test %rsi, %rsi
    jz .Ls_return
    mov .LPROGRAM_ROOM(%rbp), %rax
    test %rax, %rax
    jnz 1f
    ts_error .LENOSPC
1:  cmp %rax, %rsi
    cmova %rax, %rsi
    sub %rsi, .LPROGRAM_ROOM(%rbp)
    mov %rsi, .LSAVED_RAX(%rbx)
    call .Ls_say_out
    jmp .Ls_leave

.Ls_return_fault:
    ts_error .LEFAULT

# test_and_set(address) of 4 bytes: nothing comes between the load and the store here.
.Ls_call_test_and_set:
    call .Ls_is_shared_word
    jz 1f
    mov $4, %esi
    mov $7, %edx
    call .Ls_may
    jnz .Ls_return_fault
1:  mov (%rdi), %eax
    movl $1, (%rdi)
    jmp .Ls_return

# iopl(level): more than 0 only for programs that are allowed it.
.Ls_call_iopl:
    cmp $3, %rdi
    jbe 1f
    ts_error .LEINVAL
1:  test %edi, %edi
    jz 2f
    testl $.LALLOWS_IOPL, .LPROGRAM_FLAGS(%rbp)
    jnz 2f
    ts_error .LEPERM
2:  shl $12, %edi
    mov .LSAVED_RFLAGS(%rbx), %rax
    and $-0x3001, %rax
    or %rdi, %rax
    mov %rax, .LSAVED_RFLAGS(%rbx)
    xor %eax, %eax
    jmp .Ls_return

# Checks the arguments of map, unmap and lock: whole pages in the program's GiB. rdi is the first address, and rsi becomes the
# end of the last page. ZF is set if they are valid.
.Ls_pages:
    test $0xfff, %edi
    jnz 9f
    cmp $.LUSER_BEGIN, %rdi
    jb 9f
    mov $.LUSER_END, %eax
    sub %rdi, %rax
    jbe 8f
    shr $12, %rax
    test %rsi, %rsi
    jz 8f
    cmp %rax, %rsi
    ja 9f
    shl $12, %rsi
    add %rdi, %rsi
    cmp %eax, %eax
    ret
8:  or $1, %eax
9:  ret

# map(address, pages, rights): maps pages of zeroes, all of them or none.
.Ls_call_map:
    cmp $.LMOST_FRAMES, %rsi
    ja .Ls_return_no_memory
    call .Ls_pages
    jnz .Ls_return_invalid
    mov %rdi, %r10
    mov %rsi, %r11
    mov %edx, %r12d
    and $7, %r12d
1:  call .Ls_entry                  # none may be mapped yet
    jz 2f
    cmpq $0, (%rax)
    je 2f
    ts_error .LEEXIST
2:  add $4096, %rdi
    cmp %r11, %rdi
    jb 1b
    mov %r10, %rdi
3:  mov %r12d, %esi
    call .Ls_page
    jz 4f
    add $4096, %rdi
    cmp %r11, %rdi
    jb 3b
    xor %eax, %eax
    jmp .Ls_return
4:  cmp %r10, %rdi                  # out of memory: gives back the pages that were mapped
    je 5f
    sub $4096, %rdi
    call .Ls_entry
    call .Ls_give_back
    jmp 4b
5:
.Ls_return_no_memory:
    ts_error .LENOMEM

.Ls_return_invalid:
    ts_error .LEINVAL

# unmap(address, pages), unless one of them is locked. Unmapped pages are skipped.
.Ls_call_unmap:
    call .Ls_pages
    jnz .Ls_return_invalid
    mov %rdi, %r10
1:  call .Ls_entry
    jz 7f
    testl $.LLOCKED, (%rax)
    jz 2f
    ts_error .LEBUSY
2:  add $4096, %rdi
3:  cmp %rsi, %rdi
    jb 1b
    mov %r10, %rdi
4:  call .Ls_entry
    jz 8f
    testb $1, (%rax)
    jz 5f
    call .Ls_give_back
5:  add $4096, %rdi
6:  cmp %rsi, %rdi
    jb 4b
    xor %eax, %eax
    jmp .Ls_return
7:  call .Ls_next_table
    jmp 3b
8:  call .Ls_next_table
    jmp 6b

# A missing table has no pages: goes on to the address of the next table.
.Ls_next_table:
    add $0x200000, %rdi
    and $-0x200000, %rdi
    ret

# Frees the page at rdi, whose entry is at rax.
.Ls_give_back:
    mov (%rax), %rcx
    movq $0, (%rax)
    invlpg (%rdi)
    shl $1, %rcx
    shr $1, %rcx
    and $-4096, %rcx
    mov .Ls_frames_back(%rip), %rdx
    mov %rdx, (%rcx)
    mov %rcx, .Ls_frames_back(%rip)
    ret

# lock(address, pages): they stay mapped for ever. A bit of the entry that processors leave to the kernel marks them.
.Ls_call_lock:
    call .Ls_pages
    jnz .Ls_return_invalid
    mov %rdi, %r10
1:  call .Ls_entry
    jz 5f
    testb $1, (%rax)
    jz 5f
    add $4096, %rdi
    cmp %rsi, %rdi
    jb 1b
    mov %r10, %rdi
2:  call .Ls_entry
    orl $.LLOCKED, (%rax)
    add $4096, %rdi
    cmp %rsi, %rdi
    jb 2b
    xor %eax, %eax
    jmp .Ls_return
5:  ts_error .LENOMEM

# Checks that the program may use rsi bytes at rdi with the rights in edx (1 present, 2 writable, 4 user, as in a page's
# entry). ZF is set if it may. The page of the test-and-set is excluded: nothing in it is data.
    .balign 16, 0x90
.Ls_may:
    test %rsi, %rsi
    jz 9f
    cmp $.LUSER_BEGIN, %rdi
    jb 8f
    mov $.LUSER_END, %eax
    sub %rdi, %rax
    jbe 8f
    cmp %rax, %rsi
    ja 8f
    push %rdi
    lea (%rdi,%rsi), %rcx
    and $-4096, %rdi
1:  call .Ls_entry
    jz 7f
    mov (%rax), %eax
    and %edx, %eax
    cmp %edx, %eax
    jne 6f
    add $4096, %rdi
    cmp %rcx, %rdi
    jb 1b
    pop %rdi
    xor %eax, %eax
    ret
7:  inc %eax                        # ZF was set
6:  pop %rdi
    ret
8:  or $1, %eax
9:  ret
