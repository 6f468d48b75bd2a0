//! Logs of strace 4.5 to 6 in the forms of its options, rewritten by hand after its manuals, bug reports and tutorials. Each
//! has known contents in every form.

use tollgate_model::Traced;
use tollgate_model::traced::Ended;
use tollgate_trace::log;

/// The contents of a log: calls that returned, those that failed, and those that did not return; their time in microseconds
/// if known; the real time likewise, processes and threads.
#[derive(Debug, PartialEq)]
struct Found {
    calls: u64,
    errors: u64,
    unfinished: u64,
    total_us: Option<u64>,
    wall_us: Option<u64>,
    processes: u64,
    threads: u64,
}

fn found(traced: &Traced) -> Found {
    let sum = |of: fn(&tollgate_model::traced::Call) -> u64| traced.calls.iter().map(of).sum();
    let total: u64 = sum(|call| call.total_ns);
    Found {
        calls: sum(|call| call.count),
        errors: sum(|call| call.errors),
        unfinished: sum(|call| call.unfinished),
        total_us: (!traced.is_untimed).then_some(total / 1000),
        wall_us: (traced.wall_ns > 0).then_some(traced.wall_ns / 1000),
        processes: traced.processes,
        threads: traced.threads,
    }
}

/// Version and options, the log, and its contents: calls, errors, unfinished calls, total, real time, processes, threads.
type Form = (&'static str, &'static str, [u64; 3], Option<u64>, Option<u64>, [u64; 2]);

const FORMS: &[Form] = &[
    (
        "4.5, -f on a terminal: messages without the program's name, structures without names of fields",
        "execve(\"./n\", [\"./n\", \"400\"], [/* 26 vars */]) = 0\n\
         clone(Process 2461 attached (waiting for parent)\n\
         Process 2461 resumed (parent 2460 ready)\n\
         child_stack=0, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0xb7e3c708) = 2461\n\
         [pid  2460] waitpid(-1, Process 2460 suspended\n\
         \x20<unfinished ...>\n\
         [pid  2461] nanosleep({5000, 0}, 0xbffffc44) = -1 ERRNO_516 (errno 516)\n\
         [pid  2461] exit_group(0)               = ?\n\
         Process 2461 detached\n\
         <... waitpid resumed> [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0) = 2461\n\
         exit_group(0)                           = ?\n",
        [4, 1, 2],
        None,
        None,
        [2, 2],
    ),
    (
        "4.8, -f -tt -T -o FILE: a space before the rest of a resumed call, errors of a kernel that is newer",
        "16491 12:00:01.000000 execve(\"/bin/sh\", [\"sh\"], [/* 20 vars */]) = 0 <0.000200>\n\
         16491 12:00:01.001000 vfork()           = 16492 <0.000100>\n\
         16491 12:00:01.002000 wait4(-1,  <unfinished ...>\n\
         16492 12:00:01.002500 ioctl(1, TCGETS, 0x7ffe) = -1 E??? (errno 600) <0.000010>\n\
         16492 12:00:01.002700 exit_group(0)     = ?\n\
         16492 12:00:01.002800 +++ exited with 0 +++\n\
         16491 12:00:01.003000 <... wait4 resumed> [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 16492 <0.001000>\n\
         16491 12:00:01.003100 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=16492, si_status=0} ---\n\
         16491 12:00:01.003200 exit_group(0)     = ?\n\
         16491 12:00:01.003300 +++ exited with 0 +++\n",
        [4, 1, 2],
        Some(1310),
        Some(3300),
        [2, 2],
    ),
    (
        "4.20, -ttt -T: an error that has a number and no name",
        "1500000000.100000 execve(\"/bin/a\", [\"a\"], 0x7ffd2 /* 9 vars */) = 0 <0.000100>\n\
         1500000000.101000 keyctl(KEYCTL_READ, 5, NULL, 0) = -1 524 (Unknown error 524) <0.000020>\n\
         1500000000.102000 exit_group(1)         = ?\n\
         1500000000.102500 +++ exited with 1 +++\n",
        [2, 1, 1],
        Some(120),
        Some(2500),
        [1, 1],
    ),
    (
        "4.26, -r -T: distances alone",
        "     0.000000 execve(\"/bin/a\", [\"a\"], 0x7ffd2 /* 9 vars */) = 0 <0.000100>\n\
         \x20    0.000250 read(3, \"\", 4096)          = 0 <0.002000>\n\
         \x20    0.002100 exit_group(0)             = ?\n\
         \x20    0.000050 +++ exited with 0 +++\n",
        [2, 0, 1],
        Some(2100),
        Some(2400),
        [1, 1],
    ),
    (
        "5.5, -f on a terminal: the message of a thread breaks clone(2), whose flags come when it resumes",
        "[pid 15229] rt_sigprocmask(SIG_SETMASK, ~[], [], 8) = 0\n\
         [pid 15229] clone(strace: Process 15236 attached\n\
         \x20<unfinished ...>\n\
         [pid 15230] read(6, \"8\\0\"..., 135168) = 56\n\
         [pid 15229] <... clone resumed>child_stack=0xc000136000, flags=CLONE_VM|CLONE_FS|CLONE_THREAD) = 15236\n\
         [pid 15236] gettid( <unfinished ...>\n\
         [pid 15230] read(6,  <unfinished ...>\n\
         [pid 15236] <... gettid resumed>)       = 15236\n",
        [4, 0, 1],
        None,
        None,
        [2, 3],
    ),
    (
        "5.10, -f -p: attached in the middle of calls",
        "strace: Process 900 attached with 2 threads\n\
         [pid   901] restart_syscall(<... resuming interrupted poll ...> <unfinished ...>\n\
         [pid   900] futex(0x7fbc, FUTEX_WAIT_PRIVATE, 0, NULL <unfinished ...>\n\
         [pid   901] <... restart_syscall resumed>) = 0\n\
         [pid   901] futex(0x7fbc, FUTEX_WAKE_PRIVATE, 1) = 1\n\
         [pid   900] <... futex resumed>)        = 0\n\
         strace: Process 900 detached\n\
         \x20<detached ...>\n",
        [3, 0, 0],
        None,
        None,
        [2, 2],
    ),
    (
        "5.11, -f -t -r -T -y -o FILE: whole seconds, distances beside them, paths of descriptors",
        "700   09:00:00 (+     0.000000) execve(\"/bin/a\", [\"a\"], 0x7ffd2 /* 9 vars */) = 0 <0.000100>\n\
         700   09:00:00 (+     0.001000) openat(AT_FDCWD</home/u>, \"x = (1\", O_RDONLY) = 3</home/u/x = (1> <0.000050>\n\
         700   09:00:01 (+     0.600000) close(3</home/u/x = (1>) = 0 <0.000010>\n\
         700   09:00:01 (+     0.000500) +++ killed by SIGSEGV (core dumped) +++\n",
        [3, 0, 0],
        Some(160),
        Some(601_500),
        [1, 1],
    ),
    (
        "5.19, -ff -r -tt -T: a file of one process, whose distances are to the lines of the others",
        "11:43:16.000000 (+     0.000000) execve(\"/bin/a\", [\"a\"], 0x7ffd2 /* 9 vars */) = 0 <0.001000>\n\
         11:43:16.002000 (+     0.000012) wait4(-1, NULL, 0, NULL) = 77 <0.300000>\n\
         11:43:16.302100 (+     0.000039) +++ exited with 0 +++\n",
        [2, 0, 0],
        Some(301_000),
        Some(302_100),
        [1, 1],
    ),
    (
        "6.1, -f -Y --syscall-times=ns -n -i: names of threads, numbers of calls, instructions",
        "[pid 32254<a b>] [   0] [00007fa4709b4c47] read(0, \"\", 1) = 0 <0.000001500>\n\
         [pid 32254<a b>] [ 231] [00007fa4709b4c50] exit_group(0) = ?\n\
         [pid 32254<a b>] [????????????????] +++ exited with 0 +++\n",
        [1, 0, 1],
        Some(1),
        None,
        [1, 1],
    ),
    (
        "6.1, -C: a table below a log without times",
        "read(3, \"x\", 1)                         = 1\n\
         exit_group(0)                           = ?\n\
         +++ exited with 0 +++\n\
         % time     seconds  usecs/call     calls    errors syscall\n\
         ------ ----------- ----------- --------- --------- ----------------\n\
         100.00    0.000030          30         1           read\n\
         ------ ----------- ----------- --------- --------- ----------------\n\
         100.00    0.000030          30         1           total\n",
        [1, 0, 0],
        Some(30),
        None,
        [1, 1],
    ),
    (
        "6.1, -T -e read=3 -k: dumps and stacks between the calls",
        "read(3, \"hello\", 5) = 5 <0.000010>\n\
         \x20| 00000  68 65 6c 6c 6f                                    hello            |\n\
         \x20> /usr/lib/libc.so.6(read+0xd) [0x1]\n\
         close(3)                                = 0 <0.000010>\n",
        [2, 0, 0],
        Some(20),
        None,
        [1, 1],
    ),
    (
        "6.x, -e raw=all -e inject=…: results in hexadecimal, errors that were made up, an error above all names",
        "openat(0xffffff9c, 0x7f, 0x80000) = 0x3\n\
         read(0x3, 0x7f, 0x1) = -1 (errno 5) (INJECTED)\n\
         fcntl(0x3, 0x1) = -1 EBADF (Bad file descriptor) (INJECTED)\n\
         ioctl(0x3, 0x5401) = -1 (errno 524)\n\
         pause() = ? ERESTARTNOHAND (To be restarted if no handler)\n",
        [5, 4, 0],
        None,
        None,
        [1, 1],
    ),
    (
        "6.x, what a command prints letter by letter, quoted in a text that is indented",
        "    342900 write(1, \"c\", 1c)           = 1\n\
         \x20   342900 write(1, \"1\", 11)           = 1\n\
         \x20   342900 write(1, \"\\n\", 1\n\
         )          = 1\n\
         \x20   342900 exit_group(1)              = ?\n\
         \x20   342900 +++ exited with 1 +++\n",
        [3, 0, 1],
        None,
        None,
        [1, 1],
    ),
];

#[test]
fn each_form_has_what_is_in_it() {
    for &(form, text, [calls, errors, unfinished], total_us, wall_us, [processes, threads]) in FORMS {
        let traced = log::read(text.as_bytes(), &[], 0).unwrap_or_else(|why| panic!("{form}: {why}")).traced;
        let expected = Found { calls, errors, unfinished, total_us, wall_us, processes, threads };
        assert_eq!(found(&traced), expected, "{form}\n{:?}", traced.calls);
        assert_eq!(traced.validate(), Ok(()), "{form}");
    }
}

#[test]
fn an_end_is_known_where_a_line_says_it() {
    for (text, ended) in [
        (
            "pause() = ? ERESTARTNOHAND (To be restarted)\n+++ killed by SIGSEGV (core dumped) +++\n",
            Some(Ended::Signal(11)),
        ),
        ("close(3) = 0\n+++ exited with 7 +++\n", Some(Ended::Exit(7))),
        ("close(3) = 0\n", None),
    ] {
        assert_eq!(log::read(text.as_bytes(), &[], 0).expect("a log").traced.ended, ended, "{text}");
    }
}
