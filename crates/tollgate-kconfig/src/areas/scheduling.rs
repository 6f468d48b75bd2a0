//! Preemption, timers, accounting of time, and RCU.

use tollgate_model::Boundary::{
    BlockRead, BlockWrite, ClockSource, ContextSwitch, Exec, IdleExit, InterProcessorInterrupt,
    KernelAllocation, KernelCode, KernelEntry, LockContention, PageFault, ProcessCreation, ProcessExit,
    Sleep, Timer, VdsoClock, VmExit, WakeUp,
};

use super::{Entry, about, affects, affects_everything, covers};

const PREEMPT: &str = "kernel/Kconfig.preempt";
const TIME: &str = "kernel/time/Kconfig";

pub(crate) static ENTRIES: &[Entry] = &[
    affects(
        "PREEMPT_NONE",
        &[KernelCode, ContextSwitch],
        "the kernel yields the processor only where it waits",
        PREEMPT,
    ),
    affects(
        "PREEMPT_VOLUNTARY",
        &[KernelCode, ContextSwitch],
        "the kernel offers the processor at chosen places in long work",
        PREEMPT,
    ),
    affects(
        "PREEMPT",
        &[KernelCode, ContextSwitch],
        "the kernel can be preempted almost anywhere: acquiring locks counts, system calls are interrupted",
        PREEMPT,
    ),
    affects(
        "PREEMPT_LAZY",
        &[KernelCode, ContextSwitch],
        "as full preemption, but ordinary threads wait for the tick or the way out of the kernel",
        PREEMPT,
    ),
    affects(
        "PREEMPT_RT",
        &[KernelCode, InterProcessorInterrupt, ContextSwitch],
        "most spinning locks sleep, and interrupts are handled by threads",
        PREEMPT,
    )
    .formerly(&["PREEMPT_RT_FULL"]),
    affects(
        "PREEMPT_DYNAMIC",
        &[KernelCode, ContextSwitch],
        "the model that is set is only the default: preempt= and debugfs change it",
        PREEMPT,
    )
    .parameters(&["preempt"]),
    affects(
        "PREEMPT_COUNT",
        &[KernelCode],
        "acquiring a lock counts up, releasing it counts down",
        "include/linux/preempt.h",
    ),
    affects_everything("HZ", "so many ticks a second interrupt each busy processor", "kernel/Kconfig.hz"),
    affects(
        "HZ_PERIODIC",
        &[IdleExit, VmExit],
        "the tick goes on when there is nothing to do, and wakes idle virtual processors",
        TIME,
    ),
    affects(
        "NO_HZ_IDLE",
        &[IdleExit],
        "the tick stops on idle processors and is set up again when they wake",
        TIME,
    )
    .parameters(&["nohz"]),
    affects(
        "NO_HZ_FULL",
        &[KernelEntry, Timer],
        "on the processors of nohz_full= the tick stops, and each crossing is accounted",
        TIME,
    ),
    affects(
        "HIGH_RES_TIMERS",
        &[Timer, Sleep],
        "timers end when they are due instead of at the next tick",
        TIME,
    )
    .parameters(&["highres"]),
    affects(
        "CLOCKSOURCE_WATCHDOG",
        &[VdsoClock, ClockSource],
        "the time stamp counter is watched; once it is found unstable, the clock is read by system calls",
        "kernel/time/clocksource.c",
    )
    .parameters(&["tsc", "clocksource"]),
    affects(
        "SCHED_CORE",
        &[ContextSwitch],
        "where programs ask for it, SMT siblings run only threads that trust each other",
        PREEMPT,
    ),
    affects(
        "SCHED_MM_CID",
        &[ContextSwitch, ProcessCreation],
        "each thread that runs has a small number of its process, which switches hand on",
        "kernel/sched/sched.h",
    ),
    affects(
        "SCHED_SMT",
        &[WakeUp, ProcessCreation],
        "the scheduler knows SMT siblings; without it they are used as if they were cores of their own",
        "arch/x86/Kconfig",
    )
    .parameters(&["nosmt"]),
    affects(
        "SCHED_MC",
        &[WakeUp, ProcessCreation],
        "the scheduler knows which cores share a cache",
        "arch/x86/Kconfig",
    ),
    affects(
        "SCHED_MC_PRIO",
        &[WakeUp, ProcessCreation],
        "the scheduler prefers the cores that reach the highest frequency",
        "arch/x86/Kconfig",
    ),
    affects(
        "SCHED_CLUSTER",
        &[WakeUp, ProcessCreation],
        "the scheduler knows which cores share a mid-level cache",
        "arch/x86/Kconfig",
    ),
    affects(
        "SCHED_AUTOGROUP",
        &[ContextSwitch],
        "under load time is shared out among sessions, each a group of its own",
        "init/Kconfig",
    )
    .parameters(&["noautogroup"]),
    affects("SCHED_CLASS_EXT", &[ContextSwitch], "a BPF program may replace the scheduler", PREEMPT),
    affects(
        "SCHEDSTATS",
        &[ContextSwitch, WakeUp],
        "statistics are kept where schedstats= or kernel.sched_schedstats says so",
        "lib/Kconfig.debug",
    )
    .parameters(&["schedstats"]),
    affects(
        "PSI",
        &[ContextSwitch, WakeUp],
        "each change of a thread's state is added up along its control groups",
        "kernel/sched/psi.c",
    )
    .parameters(&["psi"]),
    affects(
        "PSI_DEFAULT_DISABLED",
        &[ContextSwitch, WakeUp],
        "PSI is off unless psi=1 is given",
        "init/Kconfig",
    ),
    affects(
        "UCLAMP_TASK",
        &[ContextSwitch, WakeUp],
        "once a bound is set, bounds of utilisation are kept at each enqueueing",
        "init/Kconfig",
    ),
    affects_everything(
        "RCU_NOCB_CPU",
        "on the processors of rcu_nocbs= callbacks run in threads elsewhere, which narrows the spread",
        "kernel/rcu/Kconfig",
    )
    .parameters(&["rcu_nocbs"]),
    affects(
        "RCU_LAZY",
        &[KernelAllocation, IdleExit],
        "callbacks that are in no hurry are gathered",
        "kernel/rcu/Kconfig",
    )
    .parameters(&["rcutree.enable_rcu_lazy"]),
    affects(
        "IRQ_TIME_ACCOUNTING",
        &[InterProcessorInterrupt, Timer],
        "the time stamp counter is read at the beginning and end of each interrupt",
        "init/Kconfig",
    ),
    affects(
        "TASK_DELAY_ACCT",
        &[BlockRead, BlockWrite, PageFault],
        "how long a thread waits is timed where delayacct is on",
        "init/Kconfig",
    )
    .parameters(&["delayacct"]),
    affects(
        "TASKSTATS",
        &[ProcessExit],
        "where a listener is registered, each thread that ends sends its statistics",
        "kernel/taskstats.c",
    ),
    affects(
        "BSD_PROCESS_ACCT",
        &[ProcessExit],
        "where accounting is on, each process that ends is written to a file",
        "kernel/acct.c",
    ),
    affects(
        "PROC_EVENTS",
        &[ProcessCreation, Exec, ProcessExit],
        "where a listener is registered, each fork, exec and exit sends a message",
        "drivers/connector/Kconfig",
    ),
    about(
        "SCHED_HRTICK",
        "slices that end by a timer of their own, only where the scheduler's feature HRTICK is on",
    ),
    affects(
        "QUEUED_SPINLOCKS",
        &[KernelCode],
        "waiters spin on lines of their own, first come first served",
        "kernel/locking/qspinlock.c",
    ),
    affects(
        "MUTEX_SPIN_ON_OWNER",
        &[KernelCode],
        "a waiter spins while the owner runs instead of going to sleep",
        "kernel/locking/mutex.c",
    ),
    affects(
        "RWSEM_SPIN_ON_OWNER",
        &[PageFault],
        "a writer spins while the owner of the semaphore runs instead of going to sleep",
        "kernel/locking/rwsem.c",
    ),
    affects(
        "SCHED_PROXY_EXEC",
        &[KernelCode],
        "a waiter lends the time that it has to the owner",
        "init/Kconfig",
    ),
    affects(
        "FUTEX",
        &[LockContention],
        "threads can wait in the kernel for a lock of theirs",
        "kernel/futex/core.c",
    ),
    affects(
        "FUTEX_PI",
        &[LockContention],
        "a thread that waits lends its priority to the owner of the lock",
        "kernel/futex/pi.c",
    ),
    affects(
        "FUTEX_PRIVATE_HASH",
        &[LockContention],
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
