use tollgate_model::Boundary::{
    BlockRead, BlockWrite, ClockSource, ContextSwitch, Exec, IdleExit, InterProcessorInterrupt,
    KernelAllocation, KernelCode, KernelEntry, LockContention, PageFault, ProcessCreation, ProcessExit,
    Sleep, Timer, VdsoClock, VmExit, WakeUp,
};

const PREEMPT: &str = "kernel/Kconfig.preempt";
const TIME: &str = "kernel/time/Kconfig";

entries! {
    PREEMPT_NONE [KernelCode, ContextSwitch] "the kernel yields the processor only where it waits" (PREEMPT);
    PREEMPT_VOLUNTARY [KernelCode, ContextSwitch]
        "the kernel offers the processor at chosen places in long work" (PREEMPT);
    PREEMPT [KernelCode, ContextSwitch]
        "the kernel can be preempted almost anywhere: acquiring locks counts, system calls are interrupted"
        (PREEMPT);
    PREEMPT_LAZY [KernelCode, ContextSwitch]
        "as full preemption, but ordinary threads wait for the tick or the way out of the kernel" (PREEMPT);
    PREEMPT_RT [KernelCode, InterProcessorInterrupt, ContextSwitch]
        "most spinning locks sleep, and interrupts are handled by threads" (PREEMPT)
        .formerly(&["PREEMPT_RT_FULL"]);
    PREEMPT_DYNAMIC [KernelCode, ContextSwitch]
        "the model that is set is only the default: preempt= and debugfs change it" (PREEMPT)
        .parameters(&["preempt"]);
    PREEMPT_COUNT [KernelCode] "acquiring a lock counts up, releasing it counts down"
        ("include/linux/preempt.h");
    HZ * "this many ticks per second interrupt each busy processor" ("kernel/Kconfig.hz");
    HZ_PERIODIC [IdleExit, VmExit]
        "the tick goes on when there is nothing to do, and wakes idle virtual processors" (TIME);
    NO_HZ_IDLE [IdleExit] "the tick stops on idle processors and is set up again when they wake" (TIME)
        .parameters(&["nohz"]);
    NO_HZ_FULL [KernelEntry, Timer]
        "on the processors of nohz_full= the tick stops, and each crossing is accounted" (TIME);
    HIGH_RES_TIMERS [Timer, Sleep] "timers end when they are due instead of at the next tick" (TIME)
        .parameters(&["highres"]);
    CLOCKSOURCE_WATCHDOG [VdsoClock, ClockSource]
        "the time stamp counter is watched; once it is found unstable, the clock is read by system calls"
        ("kernel/time/clocksource.c").parameters(&["tsc", "clocksource"]);
    SCHED_CORE [ContextSwitch]
        "where programs ask for it, SMT siblings run only threads that trust each other" (PREEMPT);
    SCHED_MM_CID [ContextSwitch, ProcessCreation]
        "each thread that runs has a small number of its process, which context switches pass on"
        ("kernel/sched/sched.h");
    SCHED_SMT [WakeUp, ProcessCreation]
        "the scheduler knows SMT siblings; without it they are used as if they were cores of their own"
        ("arch/x86/Kconfig").parameters(&["nosmt"]);
    SCHED_MC [WakeUp, ProcessCreation] "the scheduler knows which cores share a cache" ("arch/x86/Kconfig");
    SCHED_MC_PRIO [WakeUp, ProcessCreation]
        "the scheduler prefers the cores that reach the highest frequency" ("arch/x86/Kconfig");
    SCHED_CLUSTER [WakeUp, ProcessCreation] "the scheduler knows which cores share a mid-level cache"
        ("arch/x86/Kconfig");
    SCHED_AUTOGROUP [ContextSwitch] "under load time is shared out among sessions, each a group of its own"
        ("init/Kconfig").parameters(&["noautogroup"]);
    SCHED_CLASS_EXT [ContextSwitch] "a BPF program may replace the scheduler" (PREEMPT);
    SCHEDSTATS [ContextSwitch, WakeUp]
        "statistics are kept where schedstats= or kernel.sched_schedstats says so" ("lib/Kconfig.debug")
        .parameters(&["schedstats"]);
    PSI [ContextSwitch, WakeUp] "each change of a thread's state is added up along its control groups"
        ("kernel/sched/psi.c").parameters(&["psi"]);
    PSI_DEFAULT_DISABLED [ContextSwitch, WakeUp] "PSI is off unless psi=1 is given" ("init/Kconfig");
    UCLAMP_TASK [ContextSwitch, WakeUp]
        "once a bound is set, bounds of utilisation are kept at each enqueueing" ("init/Kconfig");
    RCU_NOCB_CPU *
        "on the processors of rcu_nocbs= callbacks run in threads elsewhere, which narrows the spread"
        ("kernel/rcu/Kconfig").parameters(&["rcu_nocbs"]);
    RCU_LAZY [KernelAllocation, IdleExit] "callbacks that are in no hurry are gathered"
        ("kernel/rcu/Kconfig").parameters(&["rcutree.enable_rcu_lazy"]);
    IRQ_TIME_ACCOUNTING [InterProcessorInterrupt, Timer]
        "the time stamp counter is read at the beginning and end of each interrupt" ("init/Kconfig");
    TASK_DELAY_ACCT [BlockRead, BlockWrite, PageFault]
        "how long a thread waits is timed where delayacct is on" ("init/Kconfig").parameters(&["delayacct"]);
    TASKSTATS [ProcessExit] "where a listener is registered, each thread that ends sends its statistics"
        ("kernel/taskstats.c");
    BSD_PROCESS_ACCT [ProcessExit] "where accounting is on, each process that ends is written to a file"
        ("kernel/acct.c");
    PROC_EVENTS [ProcessCreation, Exec, ProcessExit]
        "where a listener is registered, each fork, exec and exit sends a message"
        ("drivers/connector/Kconfig");
    SCHED_HRTICK "slices that end by a timer of their own, only where the scheduler's feature HRTICK is on";
    QUEUED_SPINLOCKS [KernelCode] "waiters spin on lines of their own, first come first served"
        ("kernel/locking/qspinlock.c");
    MUTEX_SPIN_ON_OWNER [KernelCode] "a waiter spins while the owner runs instead of going to sleep"
        ("kernel/locking/mutex.c");
    RWSEM_SPIN_ON_OWNER [PageFault]
        "a writer spins while the owner of the semaphore runs instead of going to sleep"
        ("kernel/locking/rwsem.c");
    SCHED_PROXY_EXEC [KernelCode] "a waiter lends the time that it has to the owner" ("init/Kconfig");
    FUTEX [LockContention] "threads can wait in the kernel for a lock of theirs" ("kernel/futex/core.c");
    FUTEX_PI [LockContention] "a thread that waits lends its priority to the owner of the lock"
        ("kernel/futex/pi.c");
    FUTEX_PRIVATE_HASH [LockContention] "each process has a hash table of its own for its futexes"
        ("kernel/futex/core.c");
    _ => ARCH_HAS_PREEMPT HAVE_PREEMPT PREEMPTION TICK NO_HZ SCHED HAVE_SCHED RCU TREE_RCU TINY_RCU SRCU
        TREE_SRCU TASKS_RCU TASKS_TRACE_RCU TASKS_RUDE_RCU NEED_TASKS_RCU VIRT_CPU_ACCOUNTING TASK
        CPU_ISOLATION GENERIC_CLOCKEVENTS GENERIC_TIME CLOCKSOURCE POSIX_TIMERS POSIX_CPU_TIMERS HRTIMER
        RT_MUTEXES RWSEM QUEUED LOCK_SPIN_ON_OWNER ARCH_USE_QUEUED MEMBARRIER WQ IRQ_FORCED_THREADING
}
