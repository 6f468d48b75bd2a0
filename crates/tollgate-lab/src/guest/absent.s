# The guest is code of x86-64. Elsewhere its symbols delimit nothing, and no engine runs it.
.pushsection .rodata.tollgate_guest, "a"
.globl tollgate_guest_begin
tollgate_guest_begin:
.globl tollgate_guest_parameters
tollgate_guest_parameters:
.globl tollgate_guest_entry
tollgate_guest_entry:
.globl tollgate_guest_experiments
tollgate_guest_experiments:
.globl tollgate_guest_experiments_end
tollgate_guest_experiments_end:
.globl tollgate_guest_code
tollgate_guest_code:
.globl tollgate_guest_code_end
tollgate_guest_code_end:
.globl tollgate_guest_end
tollgate_guest_end:
.globl tollgate_guest_locks
tollgate_guest_locks:
.globl tollgate_guest_locks_end
tollgate_guest_locks_end:
.globl tollgate_guest_lock_entries
tollgate_guest_lock_entries:
.globl tollgate_guest_lock_entries_end
tollgate_guest_lock_entries_end:
.globl tollgate_guest_system_state
tollgate_guest_system_state:
.globl tollgate_guest_system_state_end
tollgate_guest_system_state_end:
.globl tollgate_preempted_begin
tollgate_preempted_begin:
.globl tollgate_preempted_end
tollgate_preempted_end:
.globl tollgate_preempted_parts
tollgate_preempted_parts:
.globl tollgate_preempted_parts_end
tollgate_preempted_parts_end:
    .byte 0
.popsection
