# The system: the second job of this kernel. It runs up to 16 programs in ring 3, each in an address space of its own, which
# call it by any of the four mechanisms. Read it in this order: layout.s (constants and variables), entry.s (the ways in and
# out), load.s (address spaces from an archive), schedule.s (the scheduler), calls.s (the system calls), faults.s (the end of
# a program that faults), words.s (records), restart.s (a test-and-set by the page-fault handler).
#
# It runs on one processor with interrupts off, so nothing in it is ever interrupted, except in two places (entry.s). It
# checks the page tables before it reads memory of a program, so no pointer of a program can make the kernel fault. Labels
# begin with .Ls_.

# Physical memory. entry.s, not the host, moves the archive, before anything else is written.
    .set .LTHREADS, 0x230000        # threads of control
    .set .LPROGRAMS, 0x240000
    .set .LSHARED_PD, 0x250000      # the first GiB of every address space: the kernel, and one page for programs
    .set .LSHARED_PT, 0x251000
    .set .LPRIMITIVE, 0x252000      # that page
    .set .LWORDS, 0x253000          # another page, which programs share
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
    .set .LWORDS_AT, 0x3fffe000     # a page that all programs share, if an option of the archive asks for it
    .set .LSPOILED, 0x3fffd000      # never mapped (restart.s)

# The archive; ../../program/archive.rs.
    .set .LARCHIVE_TOTAL, 8
    .set .LARCHIVE_COUNT, 12
    .set .LARCHIVE_OPTIONS, 16
    .set .LARCHIVE_PERIOD, 20
    .set .LARCHIVE_HEADER, 64
    .set .LHEAD, 64                 # a program's head:
    .set .LHEAD_ENTRY, 24
    .set .LHEAD_STACK, 32
    .set .LHEAD_FIRST, 40           # index of its first segment,
    .set .LHEAD_SEGMENTS, 44        # and their number
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
    .set .LOPTION_WORDS, 0x400      # the page at .LWORDS_AT is mapped
    .set .LOPTION_TIMER_ONLY, 0x800 # wrong: .Ls_at_switch does nothing unless the timer ended the turn
    .set .LOPTION_RESUME, 0x1000    # wrong: the store that faulted is repeated, with the register corrected
    .set .LOPTION_REPEAT, 0x2000    # wrong: the store that faulted is repeated
    .set .LOPTION_BRIEF, 0x4000     # no records of registers
    .set .LALLOWS_IOPL, 1           # flags of a program
    .set .LIS_32_BIT, 2

    .set .LPROGRAM, 64
    .set .LPROGRAM_ROOT, 0          # CR3
    .set .LPROGRAM_PD, 8            # the table of its own GiB
    .set .LPROGRAM_NUMBER, 16
    .set .LPROGRAM_FLAGS, 20
    .set .LPROGRAM_NEXT, 24         # number of its next thread
    .set .LPROGRAM_ROOM, 32         # bytes that it may still write

# A thread of control. Its registers are at the end, where the processor and entry.s push them: RSP0 is that end.
    .set .LTHREAD, 1024
    .set .LTHREAD_LIMIT, 64
    .set .LTHREAD_STATE, 0
    .set .LTHREAD_PROGRAM, 8
    .set .LTHREAD_NUMBER, 16
    .set .LTHREAD_STATUS, 24        # argument of exit
    .set .LTHREAD_FOR, 32           # the number of the thread that it waits for, or the tick that it sleeps until
    .set .LTHREAD_CALLS, 40
    .set .LTHREAD_SWITCHES, 48
    .set .LTHREAD_BEGAN, 56         # the clock at its first entry; 0 before
    .set .LTHREAD_DS, 64            # selectors while another thread runs
    .set .LTHREAD_ES, 66
    .set .LTHREAD_FS, 68
    .set .LTHREAD_GS, 70
    .set .LTHREAD_SAVED, 1024 - 176 # from here: r15 to r8, rdi, rsi, rbp, rbx, rdx, rcx, rax,
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

    .set .LROOM, 0x40000            # bytes that programs may write in total; as hexadecimal digits they are twice as many
    .set .LPERIOD, 1193             # the default period of the timer, in periods of 1193182 Hz: a millisecond
    .set .LARCHIVE_FAULT, 0xff      # the program number of the archive itself
    .set .LLOCKED, 1 << 9           # a bit of a page's entry that processors leave to the kernel

# Ways in that are not vectors.
    .set .LWAY_SYSCALL, 0x100
    .set .LWAY_SYSENTER, 0x101
    .set .LWAY_GATE, 0x102

    .set .LTIMER, 0x20              # vectors
    .set .LUNKNOWN, 0x30

# Results of system calls, and reasons why a program was not loaded: numbers of Linux's errno.
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
.Ls_thread:         .quad 0         # the running thread
.Ls_frame:          .quad 0         # the end of its registers
.Ls_cs:             .quad 0         # CS for the return of SYSENTER, which does not save it
.Ls_rsp:            .quad 0         # of SYSCALL's caller, until there is another place for it
.Ls_limit:          .quad 0         # end of the last thread that existed
.Ls_ready:          .quad 0         # number of ready threads,
.Ls_sleeping:       .quad 0         # and of sleeping ones
.Ls_ticks:          .quad 0         # of the timer
.Ls_pending:        .quad 0         # ticks that came while the kernel ran
.Ls_period:         .quad 0         # of the timer; 0: none
.Ls_is_ticking:     .quad 0
.Ls_options:        .quad 0
.Ls_silence:        .quad 0         # ticks of the TSC that are not counted
.Ls_quiet_since:    .quad 0
.Ls_no_execute:     .quad 0         # the bit of a page's entry, if the processor has it
.Ls_frames:         .quad .LFRAMES  # the next frame that was never used
.Ls_frames_back:    .quad 0         # freed frames, each with the address of the next
.Ls_cr2:            .quad 0
    .subsection 0
