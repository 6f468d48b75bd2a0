use tollgate_model::Boundary::{ClockSource, ProcessCreation, ProcessExit, VdsoClock};

entries! {
    NAMESPACES "without it there are no containers";
    UTS_NS "a host name of its own";
    IPC_NS "queues, semaphores and shared memory of System V of its own";
    USER_NS "user numbers of its own: containers without root";
    PID_NS [ProcessCreation, ProcessExit] "a process in a namespace has a number in each above it"
        ("kernel/pid.c");
    NET_NS "network devices, addresses and routes of its own";
    TIME_NS [VdsoClock, ClockSource] "the vDSO adds the namespace's offset" ("lib/vdso/gettimeofday.c");
    CHECKPOINT_RESTORE "everything that is needed to stop a process and continue it elsewhere";
    _ => PROC_CHILDREN
}
