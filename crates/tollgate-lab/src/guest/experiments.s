# The list of experiments, by number. experiments/list.rs describes them and what they need, by the same numbers; a test
# compares the two.

# Features that a processor may lack, from CPUID.
    .set .LHAS_SYSCALL, 1
    .set .LHAS_SYSENTER, 2
    .set .LHAS_PCID, 4
    .set .LHAS_SPEC_CTRL, 8

    .set .LENTRY, 32
    .set .LENTRY_ONE, 4         # the loop with one operation per iteration
    .set .LENTRY_TWO, 8         # the loop with two; 0 for a single attempt
    .set .LENTRY_PREPARE, 12    # the code that changes the setup
    .set .LENTRY_NEEDS, 16
    .set .LENTRY_CS, 20         # the ring and mode of the loop: 0 is ring 0
    .set .LENTRY_SS, 24
    .set .LENTRY_FLAGS, 28

# From ring 3 in 64-bit mode, from there in compatibility mode, and in ring 0.
.macro tg_ring3 number, name, prepare=.Lk_want_nothing, needs=0, flags=0x202
    .long \number, .Lu_\name\()_1 - .Lu_begin + .LUSER, .Lu_\name\()_2 - .Lu_begin + .LUSER
    .long \prepare - .Lk_begin + .LBASE, \needs, .LUSER_CODE, .LUSER_DATA, \flags
.endm

.macro tg_compat number, name, prepare=.Lk_want_nothing, needs=0
    .long \number, .Lu_\name\()_1 - .Lu_begin + .LUSER, .Lu_\name\()_2 - .Lu_begin + .LUSER
    .long \prepare - .Lk_begin + .LBASE, \needs, .LUSER_CODE32, .LUSER_DATA, 0x202
.endm

.macro tg_ring0 number, name, prepare=.Lk_want_nothing, needs=0
    .long \number, .Lk_\name\()_1 - .Lk_begin + .LBASE, .Lk_\name\()_2 - .Lk_begin + .LBASE
    .long \prepare - .Lk_begin + .LBASE, \needs, 0, 0, 0
.endm

# A wrong setup: one attempt.
.macro tg_wrong number, loop, prepare, needs=0, cs=.LUSER_CODE, ss=.LUSER_DATA
    .long \number, .Lu_wrong_\loop - .Lu_begin + .LUSER, 0
    .long .Lk_wrong_\prepare - .Lk_begin + .LBASE, \needs, \cs, \ss, 0x202
.endm

    .subsection 1
    .balign 16
    .globl tollgate_guest_experiments
    .hidden tollgate_guest_experiments
tollgate_guest_experiments:
.Lk_experiments:
    tg_ring3 0x00, int
    tg_ring3 0x01, int_swapgs
    tg_ring3 0x02, call_gate
    tg_ring3 0x03, syscall, needs=.LHAS_SYSCALL
    tg_ring3 0x04, syscall, .Lk_want_swapgs, .LHAS_SYSCALL
    tg_ring3 0x05, syscall_path, .Lk_want_path, .LHAS_SYSCALL
    tg_ring3 0x06, sysenter, needs=.LHAS_SYSENTER
    tg_compat 0x07, compat_int
    tg_compat 0x08, compat_syscall, needs=.LHAS_SYSCALL
    tg_compat 0x09, compat_sysenter, .Lk_want_sysenter_compat, .LHAS_SYSENTER
    tg_ring3 0x0a, lock_mov, .Lk_want_emulation
    tg_ring3 0x0b, ud1, .Lk_want_emulation
    tg_ring0 0x0c, lock_mov, .Lk_want_emulation
    tg_ring0 0x0d, ud1, .Lk_want_emulation
    tg_ring3 0x0e, imul
    tg_ring3 0x0f, page_fault, .Lk_want_page_fault
    tg_ring3 0x10, general_protection, .Lk_want_general_protection
    tg_ring3 0x11, breakpoint, .Lk_want_breakpoint
    tg_ring0 0x12, swapgs
    tg_ring0 0x13, cr3
    tg_ring0 0x14, cr3_pcid, .Lk_want_pcid, .LHAS_PCID
    tg_ring0 0x15, spec_ctrl, needs=.LHAS_SPEC_CTRL
    tg_ring0 0x16, verw
    tg_ring0 0x17, lfence
    tg_ring0 0x18, iretq
    tg_ring0 0x19, cli_sti
    tg_ring0 0x1a, frame
    tg_ring0 0x1b, tlb_flush
    tg_ring0 0x1c, invlpg
    tg_ring3 0x1d, test_and_set, flags=0x3202
    tg_ring3 0x1e, keep_the_processor, flags=0x3202

    tg_wrong 0x40, order, order, .LHAS_SYSCALL, .LUSER_DATA, .LUSER_CODE
    tg_wrong 0x41, int, gate_dpl
    tg_wrong 0x42, int, gate_data
    tg_wrong 0x43, int, gate_null
    tg_wrong 0x44, int, gate_absent
    tg_wrong 0x45, int, segment_absent
    tg_wrong 0x46, syscall, return, .LHAS_SYSCALL
    tg_wrong 0x47, sysenter, sysenter_cs, .LHAS_SYSENTER
    tg_wrong 0x48, int, tss_limit
    tg_wrong 0x49, call, call_dpl
    tg_wrong 0x4a, int, iret
    tg_wrong 0x4b, read, nothing
    tg_wrong 0x4c, port, nothing
    tg_wrong 0x4d, int, user_page
    tg_wrong 0x4e, int, gdt_limit
    tg_wrong 0x4f, int, idt_limit
    tg_wrong 0x50, int, ltr
    tg_wrong 0x51, int, rsp0
    tg_wrong 0x52, int, ist
    tg_wrong 0x53, syscall, kernel_gs, .LHAS_SYSCALL
    tg_wrong 0x54, syscall, sce, .LHAS_SYSCALL
    tg_wrong 0x55, syscall, lstar, .LHAS_SYSCALL
    tg_wrong 0x56, step, fmask, .LHAS_SYSCALL
    tg_wrong 0x57, sysenter, sysenter_eip, .LHAS_SYSENTER
    tg_wrong 0x58, sysenter, sysenter_esp, .LHAS_SYSENTER
.Lk_experiments_end:
    .globl tollgate_guest_experiments_end
    .hidden tollgate_guest_experiments_end
tollgate_guest_experiments_end:
    .subsection 0

# Changes that some of them make after set_up.
    .balign 16, 0x90
.Lk_want_nothing:
    ret
.Lk_want_swapgs:
    tg_wrmsr_address .LLSTAR, .Lk_syscall_swapgs
    ret
.Lk_want_path:
    tg_wrmsr_address .LLSTAR, .Lk_syscall_path
    ret
.Lk_want_sysenter_compat:
    tg_wrmsr_address .LSYSENTER_EIP, .Lk_sysenter_compat
    ret
.Lk_want_emulation:
    tg_gate 6, .Lk_emulate, .LINTERRUPT
    ret
.Lk_want_page_fault:
    tg_gate 14, .Lk_page_fault, .LINTERRUPT
    ret
.Lk_want_general_protection:
    tg_gate 13, .Lk_general_protection, .LINTERRUPT
    ret
.Lk_want_breakpoint:
    tg_gate 3, .Lk_interrupt, .LPUBLIC
    ret
.Lk_want_pcid:
    mov $0x200a0, %eax              # CR4.PCIDE, while CR3 names identifier 0
    mov %rax, %cr4
    ret
