# The system: the second job of this kernel. It runs up to 16 programs in ring 3, each in an address space of its own, that call it
# by any of the four mechanisms. To be read in this order: layout.s (what is where), entry.s (the ways in and out), load.s
# (address spaces from an archive), schedule.s (whose turn it is), calls.s (the system calls), faults.s (the end of a program that
# does what it may not), words.s (records), restart.s (a test-and-set by the page-fault handler).
#
# It runs on one processor with interrupts off: nothing in it is ever interrupted, but in two places (entry.s). It never reads
# memory of a program without having looked at the page tables first, so that no pointer of a program is a fault of the kernel's.
# Labels begin with .Ls_.

# Physical memory. The host moves no archive; entry.s does, before anything else is written.
    .set .LTHREADS, 0x230000        # threads of control
    .set .LPROGRAMS, 0x240000
    .set .LSHARED_PD, 0x250000      # the first GiB of every address space: the kernel, and one page for programs
    .set .LSHARED_PT, 0x251000
    .set .LPRIMITIVE, 0x252000      # that page
    .set .LWORDS, 0x253000          # and another one, which they share
    .set .LFRAMES, 0x300000         # frames for programs: from here to the archive, and from its end to that of memory
    .set .LARCHIVE, 0x800000
    .set .LARCHIVE_MOST, 0x400000
    .set .LFRAMES_END, 0x1000000
    .set .LMOST_FRAMES, (.LFRAMES_END - .LARCHIVE_MOST - .LFRAMES) / 4096

# Linear addresses of programs.
    .set .LUSER_BEGIN, 0x40000000
    .set .LUSER_END, 0x80000000
    .set .LUSER_TOP, 0x7ffff000     # a program's first stack ends here
    .set .LPRIMITIVE_AT, 0x3ffff000
    .set .LWORDS_AT, 0x3fffe000     # where an option of the archive asks for it: a page that all programs share
    .set .LSPOILED, 0x3fffd000      # no page is here, ever (restart.s)

# The archive; ../../program/archive.rs.
    .set .LARCHIVE_TOTAL, 8
    .set .LARCHIVE_COUNT, 12
    .set .LARCHIVE_OPTIONS, 16
    .set .LARCHIVE_PERIOD, 20
    .set .LARCHIVE_HEADER, 64
    .set .LHEAD, 64                 # of a program:
    .set .LHEAD_ENTRY, 24
    .set .LHEAD_STACK, 32
    .set .LHEAD_FIRST, 40           # its first segment,
    .set .LHEAD_SEGMENTS, 44        # and how many
    .set .LHEAD_ARGUMENT, 48
    .set .LHEAD_FLAGS, 52
    .set .LSEGMENT, 40              # a segment:
    .set .LSEGMENT_BYTES, 8
    .set .LSEGMENT_OFFSET, 16
    .set .LSEGMENT_STORED, 24
    .set .LSEGMENT_FLAGS, 32
    .set .LMOST_PROGRAMS, 16
    .set .LMOST_SEGMENTS, 0x10000

    .set .LOPTION_NO_TIMER, 1       # options
    .set .LOPTION_SWITCH, 0x100     # .Ls_at_switch is called
    .set .LOPTION_PAGE_FAULT, 0x200 # .Ls_at_page_fault is called
    .set .LOPTION_WORDS, 0x400      # the page at .LWORDS_AT is there
    .set .LOPTION_TIMER_ONLY, 0x800 # wrong: .Ls_at_switch does nothing unless the timer ended the turn
    .set .LOPTION_RESUME, 0x1000    # wrong: the store that faulted is repeated, with the register put right
    .set .LOPTION_REPEAT, 0x2000    # wrong: the store that faulted is repeated
    .set .LOPTION_BRIEF, 0x4000     # no records of registers
    .set .LALLOWS_IOPL, 1           # flags of a program
    .set .LIS_32_BIT, 2

# A program.
    .set .LPROGRAM, 64
    .set .LPROGRAM_ROOT, 0          # CR3
    .set .LPROGRAM_PD, 8            # the table of its own GiB
    .set .LPROGRAM_NUMBER, 16
    .set .LPROGRAM_FLAGS, 20
    .set .LPROGRAM_NEXT, 24         # the number of its next thread
    .set .LPROGRAM_ROOM, 32         # bytes that it may still write

# A thread of control. Its registers lie at the end, where the processor and entry.s push them: RSP0 is that end.
    .set .LTHREAD, 1024
    .set .LTHREAD_LIMIT, 64
    .set .LTHREAD_STATE, 0
    .set .LTHREAD_PROGRAM, 8
    .set .LTHREAD_NUMBER, 16
    .set .LTHREAD_STATUS, 24        # of EXIT
    .set .LTHREAD_FOR, 32           # the number of the thread that it waits for; the tick that it sleeps to
    .set .LTHREAD_CALLS, 40
    .set .LTHREAD_SWITCHES, 48
    .set .LTHREAD_BEGAN, 56         # the clock when it was first entered; 0 before
    .set .LTHREAD_DS, 64            # selectors while another thread has the processor
    .set .LTHREAD_ES, 66
    .set .LTHREAD_FS, 68
    .set .LTHREAD_GS, 70
    .set .LTHREAD_SAVED, 1024 - 176 # from here on: r15 to r8, rdi, rsi, rbp, rbx, rdx, rcx, rax,
    .set .LSAVED_R15, 1024 - 176
    .set .LSAVED_R8, 1024 - 120
    .set .LSAVED_RDI, 1024 - 112
    .set .LSAVED_RSI, 1024 - 104
    .set .LSAVED_RBP, 1024 - 96
    .set .LSAVED_RBX, 1024 - 88
    .set .LSAVED_RDX, 1024 - 80
    .set .LSAVED_RCX, 1024 - 72
    .set .LSAVED_RAX, 1024 - 64
    .set .LSAVED_WAY, 1024 - 56     # the vector, or another way in,
    .set .LSAVED_ERROR, 1024 - 48
    .set .LSAVED_RIP, 1024 - 40
    .set .LSAVED_CS, 1024 - 32
    .set .LSAVED_RFLAGS, 1024 - 24
    .set .LSAVED_RSP, 1024 - 16
    .set .LSAVED_SS, 1024 - 8

    .set .LFREE, 0                  # states
    .set .LREADY, 1
    .set .LWAITING, 2
    .set .LSLEEPING, 3
    .set .LENDED, 4                 # its status was not asked for yet

    .set .LROOM, 0x40000            # bytes that programs may write together; as hexadecimal digits they are twice as many
    .set .LPERIOD, 1193             # of the timer, where none is asked for, in periods of 1193182 Hz: a millisecond
    .set .LARCHIVE_FAULT, 0xff      # what stands for a program's number where the archive itself is wrong
    .set .LLOCKED, 1 << 9           # of a page's entry: a bit that processors leave to the kernel

# Ways in that are no vectors.
    .set .LWAY_SYSCALL, 0x100
    .set .LWAY_SYSENTER, 0x101
    .set .LWAY_GATE, 0x102

    .set .LTIMER, 0x20              # vectors
    .set .LUNKNOWN, 0x30

# Results of system calls, and why a program was not loaded: numbers of Linux's errno.
    .set .LEPERM, 1
    .set .LESRCH, 3
    .set .LENOEXEC, 8
    .set .LEAGAIN, 11
    .set .LENOMEM, 12
    .set .LEFAULT, 14
    .set .LEBUSY, 16
    .set .LEEXIST, 17
    .set .LENODEV, 19
    .set .LEINVAL, 22
    .set .LENOSPC, 28
    .set .LEDEADLK, 35
    .set .LENOSYS, 38

    .subsection 1
    .balign 8
.Ls_thread:         .quad 0         # the thread that has the processor
.Ls_frame:          .quad 0         # the end of its registers
.Ls_cs:             .quad 0         # where SYSENTER goes back to: it does not say where it came from
.Ls_rsp:            .quad 0         # of SYSCALL's caller, while there is no other place for it
.Ls_limit:          .quad 0         # behind the last thread that there was
.Ls_ready:          .quad 0         # how many threads are ready,
.Ls_sleeping:       .quad 0         # and how many sleep
.Ls_ticks:          .quad 0         # of the timer
.Ls_pending:        .quad 0         # ticks that came while the kernel had the processor
.Ls_period:         .quad 0         # of the timer; 0: there shall be none
.Ls_is_ticking:     .quad 0
.Ls_options:        .quad 0
.Ls_silence:        .quad 0         # ticks of the TSC that do not count
.Ls_quiet_since:    .quad 0
.Ls_no_execute:     .quad 0         # the bit of a page's entry, where the processor has it
.Ls_frames:         .quad .LFRAMES  # the next frame that was never used
.Ls_frames_back:    .quad 0         # those that came back, each with the address of the next
.Ls_cr2:            .quad 0
    .subsection 0
