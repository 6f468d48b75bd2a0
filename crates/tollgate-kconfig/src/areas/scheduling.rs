//! Preemption, timers, accounting of time, and RCU.

use super::{Entry, about, covers, moves};

const PREEMPT: &str = "kernel/Kconfig.preempt";
const TIME: &str = "kernel/time/Kconfig";

pub(crate) static ENTRIES: &[Entry] = &[
    moves(
        "PREEMPT_NONE",
        "locks, context switches",
        "the kernel gives the processor away only where it waits",
        PREEMPT,
    ),
    moves(
        "PREEMPT_VOLUNTARY",
        "locks, context switches",
        "the kernel offers the processor at chosen places in long work",
        PREEMPT,
    ),
    moves(
        "PREEMPT",
        "locks, context switches",
        "the kernel can be switched out almost anywhere: taking locks counts, system calls are interrupted",
        PREEMPT,
    ),
    moves(
        "PREEMPT_LAZY",
        "locks, context switches",
        "as full preemption, but ordinary threads wait for the tick or the way out of the kernel",
        PREEMPT,
    ),
    moves(
        "PREEMPT_RT",
        "locks, interrupts, context switches",
        "most spinning locks sleep, and interrupts are handled by threads",
        PREEMPT,
    )
    .formerly(&["PREEMPT_RT_FULL"]),
    moves(
        "PREEMPT_DYNAMIC",
        "locks, context switches",
        "the model that is set is only the default: preempt= and debugfs change it",
        PREEMPT,
    )
    .parameters(&["preempt"]),
    moves(
        "PREEMPT_COUNT",
        "every lock in the kernel",
        "taking a lock counts up, giving it back counts down",
        "include/linux/preempt.h",
    ),
    moves(
        "HZ",
        "everything that takes long",
        "so many ticks a second interrupt each busy processor",
        "kernel/Kconfig.hz",
    ),
    moves(
        "HZ_PERIODIC",
        "idle processors, virtual machines",
        "the tick goes on when there is nothing to do",
        TIME,
    ),
    moves(
        "NO_HZ_IDLE",
        "waking up",
        "the tick stops on idle processors and is set up again when they wake",
        TIME,
    )
    .parameters(&["nohz"]),
    moves(
        "NO_HZ_FULL",
        "every kernel entry, ticks",
        "on the processors of nohz_full= the tick stops, and each crossing is accounted",
        TIME,
    ),
    moves(
        "HIGH_RES_TIMERS",
        "sleeping, timers",
        "timers end when they are due instead of at the next tick",
        TIME,
    )
    .parameters(&["highres"]),
    moves(
        "CLOCKSOURCE_WATCHDOG",
        "reading the clock",
        "the time stamp counter is watched; once it is found unstable, the clock is read by system calls",
        "kernel/time/clocksource.c",
    )
    .parameters(&["tsc", "clocksource"]),
    moves(
        "SCHED_CORE",
        "context switches",
        "where programs ask for it, SMT siblings run only threads that trust each other",
        PREEMPT,
    ),
    moves(
        "SCHED_MM_CID",
        "context switches, making a thread",
        "each thread that runs has a small number of its process, which switches hand on",
        "kernel/sched/sched.h",
    ),
    moves(
        "SCHED_SMT",
        "waking up, placing threads",
        "the scheduler knows SMT siblings; without it they are used as if they were cores of their own",
        "arch/x86/Kconfig",
    )
    .parameters(&["nosmt"]),
    moves(
        "SCHED_MC",
        "waking up, placing threads",
        "the scheduler knows which cores share a cache",
        "arch/x86/Kconfig",
    ),
    moves(
        "SCHED_MC_PRIO",
        "placing threads",
        "the scheduler prefers the cores that reach the highest frequency",
        "arch/x86/Kconfig",
    ),
    moves(
        "SCHED_CLUSTER",
        "waking up, placing threads",
        "the scheduler knows which cores share a mid-level cache",
        "arch/x86/Kconfig",
    ),
    moves(
        "SCHED_AUTOGROUP",
        "context switches under load",
        "each session is a group of its own when time is shared out",
        "init/Kconfig",
    )
    .parameters(&["noautogroup"]),
    moves("SCHED_CLASS_EXT", "context switches", "a BPF program may take the scheduler's place", PREEMPT),
    moves(
        "SCHEDSTATS",
        "context switches, waking up",
        "statistics are kept where schedstats= or kernel.sched_schedstats says so",
        "lib/Kconfig.debug",
    )
    .parameters(&["schedstats"]),
    moves(
        "PSI",
        "context switches, waking up",
        "each change of a thread's state is added up along its control groups",
        "kernel/sched/psi.c",
    )
    .parameters(&["psi"]),
    moves(
        "PSI_DEFAULT_DISABLED",
        "context switches, waking up",
        "PSI is off unless psi=1 is given",
        "init/Kconfig",
    ),
    moves(
        "UCLAMP_TASK",
        "context switches, waking up",
        "once a bound is set, bounds of utilisation are kept at each enqueueing",
        "init/Kconfig",
    ),
    moves(
        "RCU_NOCB_CPU",
        "threads beside RCU's work",
        "on the processors of rcu_nocbs= callbacks are left to threads elsewhere",
        "kernel/rcu/Kconfig",
    )
    .parameters(&["rcu_nocbs"]),
    moves("RCU_LAZY", "freeing, idling", "callbacks that are in no hurry are gathered", "kernel/rcu/Kconfig")
        .parameters(&["rcutree.enable_rcu_lazy"]),
    moves(
        "IRQ_TIME_ACCOUNTING",
        "interrupts",
        "the time stamp counter is read at the beginning and end of each interrupt",
        "init/Kconfig",
    ),
    moves(
        "TASK_DELAY_ACCT",
        "waiting for storage and memory",
        "how long a thread waits is timed where delayacct is on",
        "init/Kconfig",
    )
    .parameters(&["delayacct"]),
    moves(
        "TASKSTATS",
        "ending a process",
        "where somebody listens, each thread that ends sends its statistics",
        "kernel/taskstats.c",
    ),
    moves(
        "BSD_PROCESS_ACCT",
        "ending a process",
        "where accounting is on, each process that ends is written to a file",
        "kernel/acct.c",
    ),
    moves(
        "PROC_EVENTS",
        "making, running and ending a process",
        "where somebody listens, each fork, exec and exit sends a message",
        "drivers/connector/Kconfig",
    ),
    about(
        "SCHED_HRTICK",
        "slices that end by a timer of their own, only where the scheduler's feature HRTICK is on",
    ),
    moves(
        "QUEUED_SPINLOCKS",
        "contended locks in the kernel",
        "waiters spin on lines of their own, first come first served",
        "kernel/locking/qspinlock.c",
    ),
    moves(
        "MUTEX_SPIN_ON_OWNER",
        "contended mutexes in the kernel",
        "a waiter spins while the owner runs instead of going to sleep",
        "kernel/locking/mutex.c",
    ),
    moves(
        "RWSEM_SPIN_ON_OWNER",
        "page faults and mappings at once",
        "who wants the semaphore to write spins while its owner runs instead of going to sleep",
        "kernel/locking/rwsem.c",
    ),
    moves(
        "SCHED_PROXY_EXEC",
        "contended mutexes in the kernel",
        "a waiter lends the time that it has to the owner",
        "init/Kconfig",
    ),
    moves(
        "FUTEX",
        "locks of programs",
        "threads can wait in the kernel for a lock of theirs",
        "kernel/futex/core.c",
    ),
    moves(
        "FUTEX_PI",
        "locks of programs with inheritance",
        "a thread that waits lends its priority to the owner of the lock",
        "kernel/futex/pi.c",
    ),
    moves(
        "FUTEX_PRIVATE_HASH",
        "contended locks of programs",
        "each process has a hash table of its own for its futexes",
        "kernel/futex/core.c",
    ),
    covers("ARCH_HAS_PREEMPT"),
    covers("HAVE_PREEMPT"),
    covers("PREEMPTION"),
    covers("TICK"),
    covers("NO_HZ"),
    covers("SCHED"),
    covers("HAVE_SCHED"),
    covers("RCU"),
    covers("TREE_RCU"),
    covers("TINY_RCU"),
    covers("SRCU"),
    covers("TREE_SRCU"),
    covers("TASKS_RCU"),
    covers("TASKS_TRACE_RCU"),
    covers("TASKS_RUDE_RCU"),
    covers("NEED_TASKS_RCU"),
    covers("VIRT_CPU_ACCOUNTING"),
    covers("TASK"),
    covers("CPU_ISOLATION"),
    covers("GENERIC_CLOCKEVENTS"),
    covers("GENERIC_TIME"),
    covers("CLOCKSOURCE"),
    covers("POSIX_TIMERS"),
    covers("POSIX_CPU_TIMERS"),
    covers("HRTIMER"),
    covers("RT_MUTEXES"),
    covers("RWSEM"),
    covers("QUEUED"),
    covers("LOCK_SPIN_ON_OWNER"),
    covers("ARCH_USE_QUEUED"),
    covers("MEMBARRIER"),
    covers("WQ"),
    covers("IRQ_FORCED_THREADING"),
];
