//! Invented executions, for tests.

use tollgate_model::Traced;
use tollgate_model::traced::{
    Backend, Call, Ended, FileOperation, FileTime, Idle, Missed, Parts, Process, TimesFrom, bucket,
};

const MS: u64 = 1_000_000;

fn parts(on_cpu: u64, sleep: u64, disk: u64, runqueue: u64) -> Parts {
    Parts {
        on_cpu_ns: on_cpu * MS,
        sleep_ns: sleep * MS,
        disk_ns: disk * MS,
        runqueue_ns: runqueue * MS,
        unknown_ns: 0,
    }
}

fn call(name: &str, count: u64, parts: Parts) -> Call {
    let mean = parts.total_ns() / count.max(1);
    Call {
        name: name.to_owned(),
        count,
        errors: 0,
        unfinished: 0,
        stopped: 0,
        total_ns: parts.total_ns(),
        max_ns: mean * 40,
        parts,
        histogram: vec![
            (bucket(mean / 4), count / 4),
            (bucket(mean), (count - count / 4).saturating_sub(1)),
            (bucket(mean * 40), 1),
        ],
    }
}

/// One process with one thread that reads, writes and removes files.
pub(crate) fn checkout() -> Traced {
    let mut failing = call("newfstatat", 52_004, parts(61, 0, 0, 1));
    failing.errors = 1_204;
    let mut never = call("exit_group", 0, Parts::default());
    (never.unfinished, never.histogram) = (1, Vec::new());
    Traced {
        command: ["git", "checkout", "-q", "v2.0"].map(str::to_owned).to_vec(),
        ended: Some(Ended::Exit(0)),
        processors: 2,
        user_ns: 3_590 * MS,
        sys_ns: 1_550 * MS,
        times_from: TimesFrom::Rusage,
        idle: Some(Idle { runqueue_ns: 40 * MS, disk_ns: 150 * MS, sleep_ns: 20 * MS }),
        processes: 1,
        threads: 1,
        calls: vec![
            call("unlink", 4_512, parts(3, 0, 293, 48)),
            call("openat", 9_130, parts(120, 0, 4, 2)),
            failing,
            call("futex", 12, parts(1, 20, 0, 0)),
            never,
        ],
        outside: Some(parts(3_500, 0, 0, 30)),
        cost_per_call_ns: Some(290.0),
        cost_to_others_ns: Some(180.0),
        ..Traced::new(Backend::Bpf, 5_350 * MS)
    }
}

/// A parallel build: make, three compilers and what they start.
pub(crate) fn build() -> Traced {
    let process = |id: u32, parent: Option<u32>, name: &str, on_cpu: u64| Process {
        id,
        parent,
        pid: 4_000 + id,
        name: name.to_owned(),
        execs: 1,
        threads: 1,
        began_ns: u64::from(id) * 10 * MS,
        ended_ns: Some((u64::from(id) * 10 + on_cpu) * MS),
        outside: parts(on_cpu, 0, 0, 1),
        calls: vec![call("read", 10, parts(1, 0, 0, 0)), call("wait4", 2, parts(0, 50, 0, 0))],
    };
    let tree = vec![
        process(0, None, "make", 20),
        process(1, Some(0), "cc", 2),
        process(2, Some(1), "cc1", 400),
        process(3, Some(0), "cc", 2),
        process(4, Some(3), "cc1", 300),
        process(5, Some(0), "sh", 1),
        process(6, Some(0), "cc", 2),
        process(7, Some(6), "cc1", 350),
    ];
    let operation = |operation: &str, count: u64, bytes: u64| FileOperation {
        operation: operation.to_owned(),
        count,
        errors: 0,
        parts: parts(2, 0, 3, 0),
        bytes,
    };
    Traced {
        command: vec!["make".to_owned(), "-j2".to_owned()],
        processes: 8,
        threads: 8,
        files: vec![
            FileTime {
                path: "/usr/lib/gcc/x86_64-linux-gnu/12/include/stddef.h".to_owned(),
                operations: vec![operation("read", 120, 4_718_592), operation("open", 3, 0)],
            },
            FileTime { path: "pipe".to_owned(), operations: vec![operation("read", 7, 21)] },
        ],
        tree,
        missed: vec![Missed { what: "calls of threads that could not be traced".to_owned(), number: 3 }],
        notes: vec!["one process was still there at the end".to_owned()],
        ..checkout()
    }
}

/// [`checkout`] as traced by ptrace(2).
pub(crate) fn by_ptrace() -> Traced {
    let mut traced =
        Traced { backend: Backend::Ptrace, idle: None, outside: None, cost_to_others_ns: None, ..checkout() };
    for call in &mut traced.calls {
        let Parts { sleep_ns, disk_ns, runqueue_ns, .. } = call.parts;
        call.parts = Parts {
            on_cpu_ns: call.parts.on_cpu_ns,
            unknown_ns: sleep_ns + disk_ns + runqueue_ns,
            ..Parts::default()
        };
    }
    traced
}
