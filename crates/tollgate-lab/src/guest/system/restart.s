# Places where a kernel can make a test-and-set out of a page fault. Each is called where a bit of the archive's options asks for it.
# Both may change the registers of the thread at rbx, .LSAVED_R15(%rbx) and so on, and every register of their own but rbx and rbp.

# Bit 8: another thread than before is about to be entered, in its address space. rbx is the thread, rbp its program.
.Ls_at_switch:
    ret

# Bit 9: a page fault of the thread at rbx; .Ls_cr2 is its address. With eax 0 the thread goes on, else the fault ends the program.
.Ls_at_page_fault:
    mov $1, %eax
    ret

# What is copied to the page at .LPRIMITIVE_AT of every program.
    .balign 16, 0x90
.Ls_primitive:
.Ls_primitive_end:
