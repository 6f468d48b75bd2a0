use proptest::prelude::*;

use super::*;

fn call<'a>(line: &Line<'a>) -> (&'a str, &'a str, Returned) {
    match line.body {
        Body::Call { name, arguments, returned } => (name, arguments, returned),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_beginnings_of_lines() {
    const CALL: &str = "brk(NULL) = 0x5649bae4c000 <0.000008>";
    let day = Absolute { ns: 14_285_256_088_000, is_of_day: true, is_coarse: false };
    let coarse = Absolute { ns: 14_285_000_000_000, is_coarse: true, ..day };
    let epoch = Absolute { ns: 1_795_406_285_356_941_000, is_of_day: false, is_coarse: false };
    for (before, thread, absolute, relative_ns) in [
        ("", None, None, None),
        ("32197 ", Some(32197), None, None),
        ("7     ", Some(7), None, None),
        ("[pid 32197] ", Some(32197), None, None),
        ("[pid     7] ", Some(7), None, None),
        ("32197 03:58:05.256088 ", Some(32197), Some(day), None),
        ("03:58:05 ", None, Some(coarse), None),
        ("[pid 32197] 1795406285.356941 ", Some(32197), Some(epoch), None),
        ("1795406285.356941 ", None, Some(epoch), None),
        ("     0.000123 ", None, None, Some(123_000)),
        // `--relative-timestamps=s`, and a quoted log.
        ("     3 ", None, None, Some(3_000_000_000)),
        ("32197      3 ", Some(32197), None, Some(3_000_000_000)),
        ("    8103  ", Some(8103), None, None),
        ("32197      0.000123 ", Some(32197), None, Some(123_000)),
        ("03:58:05 (+     0.000318) ", None, Some(coarse), Some(318_000)),
        (
            "32254<sh> 03:58:05 (+     0.000318) [  12] [00007fa4709b4c47] ",
            Some(32254),
            Some(coarse),
            Some(318_000),
        ),
        ("[pid 32254<a b>] [????????????????] ", Some(32254), None, None),
    ] {
        let text = format!("{before}{CALL}");
        let line = Line::parse(&text);
        assert_eq!((line.thread, line.stamp), (thread, Stamp { absolute, relative_ns }), "{before}");
        let (name, arguments, returned) = call(&line);
        assert_eq!((name, arguments, returned.took_ns), ("brk", "NULL", Some(8_000)), "{before}");
    }
    assert_eq!(Line::parse("[pid 32254<a b>] pause()").comm, Some("a b"));
}

#[test]
fn the_ends_of_calls() {
    let returned = |text: &str| call(&Line::parse(text)).2;
    let missing =
        returned(r#"access("/etc/ld.so.preload", R_OK) = -1 ENOENT (No such file or directory) <0.000009>"#);
    assert_eq!(
        (missing.result, missing.is_error, missing.is_back, missing.took_ns),
        (-2, true, true, Some(9_000))
    );
    let again =
        returned("rt_sigsuspend([], 8) = ? ERESTARTNOHAND (To be restarted if no handler) <0.005532>");
    assert!(again.is_back && again.is_error);
    assert!(!returned("exit_group(0)                           = ?").is_back);
    assert_eq!(returned("getpid() = 32197").took_ns, None);
    assert_eq!(returned("mmap(NULL, 8192) = 0xffff8000").result, 0xffff_8000);
    assert_eq!(returned("openat(AT_FDCWD</tmp>, \"x\", O_RDONLY) = 3</tmp/x> <0.000010>").result, 3);
    assert_eq!(
        returned("poll([{fd=3, events=POLLIN}], 1, 0) = 1 ([{fd=3, revents=POLLIN}]) <0.1>").took_ns,
        Some(100_000_000)
    );
    // A -1 that is not an error, as from fcntl(F_GETOWN).
    assert!(!returned("fcntl(3, F_GETOWN) = -1").is_error);
    // Errors without a name in strace 4.5 and 4.8, 4.20, since 4.26, and with `-e raw=all`.
    for (text, error) in [
        ("ERRNO_524 (Unknown error 524)", -524),
        ("E??? (errno -7)", -1),
        ("E??? (errno 600)", -600),
        ("524 (Unknown error 524)", -524),
        ("(errno 524)", -524),
        ("(errno 2) (INJECTED)", -2),
        ("ENOTSUPP (Unknown error 524)", -1),
    ] {
        let returned = returned(&format!("ioctl(3, TCGETS) = -1 {text} <0.1>"));
        assert_eq!(
            (returned.result, returned.is_error, returned.took_ns),
            (error, true, Some(100_000_000)),
            "{text}"
        );
    }
    // Other results, with strace's remarks.
    for text in ["3 (INJECTED)", "-1", "-1 (INJECTED)", "0x1 (flags FD_CLOEXEC)"] {
        assert!(!returned(&format!("fcntl(3, F_GETFD) = {text}")).is_error, "{text}");
    }
    // The end of a call in a string does not count.
    let written = r#"write(1, ") = 7 <9.000000>", 16) = 16 <0.000007>"#;
    assert_eq!(
        (call(&Line::parse(written)).1, returned(written).result),
        (r#"1, ") = 7 <9.000000>", 16"#, 16)
    );
    assert_eq!(
        returned("bind(3, {sa_family=AF_INET}, 16) = -1 EADDRINUSE (Address already in use)").result,
        -98
    );
}

#[test]
fn lines_that_are_no_whole_call() {
    let body = |text: &'static str| Line::parse(text).body;
    assert_eq!(
        body("12 wait4(-1,  <unfinished ...>"),
        Body::Begun { name: "wait4", arguments: "-1,  ", end: Open::Unfinished }
    );
    let back = Returned { is_back: true, result: 12, is_error: false, took_ns: Some(522_000) };
    let returned = Some(back);
    assert_eq!(
        body("7 <... vfork resumed>) = 12 <0.000522>"),
        Body::Resumed { name: "vfork", arguments: "", returned }
    );
    // Before strace 5.
    assert_eq!(
        body("7 <... read resumed> \"x\", 1) = 12 <0.000522>"),
        Body::Resumed { name: "read", arguments: " \"x\", 1", returned }
    );
    assert_eq!(
        body("clone(flags=SIGCHLDstrace: Process 12 attached"),
        Body::Begun { name: "clone", arguments: "flags=SIGCHLD", end: Open::Attached(12) }
    );
    let rest = |arguments| Body::Continued { arguments, returned };
    assert_eq!(body(", child_tidptr=0x7f) = 12 <0.000522>"), rest(", child_tidptr=0x7f"));
    assert_eq!(body(" <unfinished ...>"), Body::Continued { arguments: " <unfinished ...>", returned: None });
    // Forms of arguments that strace prints after a call has returned.
    for arguments in [
        "[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL",
        "{st_mode=S_IFREG|0644, st_size=(1), ...}",
        r#""a (b", 4096"#,
        "0x7ffc11",
        "NULL, 8",
        "O_RDONLY",
        r#"what "the command printed[{revents=POLLIN}], 1, (-1)"#,
    ] {
        let text = format!("{arguments}) = 12 <0.000522>");
        assert_eq!(Line::parse(&text).body, Body::Continued { arguments, returned }, "{text}");
    }
    assert_eq!(body("12 --- SIGCHLD {si_signo=SIGCHLD} ---"), Body::Signal("SIGCHLD"));
    assert_eq!(body("12 +++ exited with 3 +++"), Body::Exited(3));
    assert_eq!(body("12 +++ killed by SIGSEGV (core dumped) +++"), Body::Killed("SIGSEGV"));
    assert_eq!(body("12 +++ superseded by execve in pid 14 +++"), Body::Superseded(14));
    assert_eq!(body("strace: Process 12 attached"), Body::Attached(12));
    assert_eq!(body("[ Process PID=12 runs in 32 bit mode. ]"), Body::Mode { thread: 12, is_32_bit: true });
    for ignored in [
        "strace: Process 12 detached",
        " > /lib/libc.so.6(read+0xd) [0x1]",
        "12 --- stopped by SIGTSTP ---",
        "12 +++ of a later strace +++",
    ] {
        assert_eq!(body(ignored), Body::Ignored, "{ignored}");
    }
    for other in ["", "hello", "main(argc, argv)", "f(x) = y", "12 bottles", "Read(1) = 2", "1read(1) = 2"] {
        assert_eq!(body(other), Body::Other, "{other}");
    }
    // A diff that the command printed.
    for other in
        ["--- a/file.c\t2026-01-01", "+++ b/file.c", "--- SIGCHLD", "--- a title ---", "+++ exited with 3"]
    {
        assert_eq!(body(other), Body::Other, "{other}");
    }
}

#[test]
fn times_have_up_to_nine_digits() {
    assert_eq!(seconds("0.000123"), Some(123_000));
    assert_eq!(seconds("1.000000007"), Some(1_000_000_007));
    assert_eq!(seconds("5"), Some(5_000_000_000));
    for text in ["", ".", "1.", ".5", "1.0000000001", "-1", "1e3", "99999999999999999999", "18446744074.0"] {
        assert_eq!(seconds(text), None, "{text}");
    }
}

takes_any! { text in "\\PC{0,60}|([0-9<>\\[\\]. :+?=()a-z\"-]|pid | = |resumed>|unfinished|\\+\\+\\+ |--- ){0,40}" => Line::parse(&text) }
