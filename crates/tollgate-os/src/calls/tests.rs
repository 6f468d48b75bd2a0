use proptest::prelude::*;
use tollgate_arch::architecture::{Architecture, HERE};

use super::*;

#[test]
fn blocking_calls_are_known() {
    for name in [
        "wait4",
        "futex",
        "poll",
        "nanosleep",
        "epoll_wait",
        "clock_nanosleep",
        "clock_nanosleep_time64 (32-bit)",
        "futex (32-bit)",
        "pselect6 (x32)",
        "_newselect (32-bit)",
        "vfork",
    ] {
        assert!(is_blocking(name), "{name}");
    }
    for name in ["read", "openat", "fsync", "execve", "call 999", ""] {
        assert!(!is_blocking(name), "{name}");
    }
}

#[test]
fn names_show_their_table() {
    let own: &[(i64, bool, &str)] = match HERE {
        Architecture::X86_64 => &[
            (0, false, "read"),
            (257, false, "openat"),
            (231, false, "exit_group"),
            (334, false, "rseq"),
            (295, true, "openat (32-bit)"),
            (i64::from(X32), false, "read (x32)"),
            (i64::from(X32 | 520), false, "execve (x32)"),
        ],
        Architecture::Arm64 => &[
            (0, false, "io_setup"),
            (56, false, "openat"),
            (94, false, "exit_group"),
            (293, false, "rseq"),
            (322, true, "openat (32-bit)"),
        ],
    };
    let shared = [
        (424, false, "pidfd_send_signal"),
        (469, false, "file_setattr"),
        (0, true, "restart_syscall (32-bit)"),
        (422, true, "futex_time64 (32-bit)"),
        // x32 numbers without its bit, gaps, and numbers without a call.
        (520, false, "call 520"),
        (400, false, "call 400"),
        (999, false, "call 999"),
        (999, true, "call 999 (32-bit)"),
        (-1, false, "call -1"),
        (i64::MIN, true, "call -9223372036854775808 (32-bit)"),
    ];
    for &(number, is_32_bit, expected) in own.iter().chain(&shared) {
        assert_eq!(name(number, is_32_bit), expected);
    }
}

#[test]
fn numbers_and_names_are_each_others_reverse() {
    let numbers = |long, short, x32| Some(Numbers { long, short, x32 });
    // The last is a call of 32-bit programs alone.
    let own = match HERE {
        Architecture::X86_64 => [
            ("openat", numbers(Some(257), Some(295), Some(X32 | 257))),
            ("execve", numbers(Some(59), Some(11), Some(X32 | 520))),
            ("waitpid", numbers(None, Some(7), None)),
        ],
        Architecture::Arm64 => [
            ("openat", numbers(Some(56), Some(322), None)),
            ("execve", numbers(Some(221), Some(11), None)),
            ("fork", numbers(None, Some(2), None)),
        ],
    };
    for (name, expected) in own {
        assert_eq!(number(name), expected, "{name}");
    }
    assert_eq!(number("opennat"), None);
    for (at, entry) in entries(CALLS).filter(|(at, _)| !X32_ALONE.contains(at)) {
        assert_eq!(number(entry).and_then(|numbers| numbers.long), Some(at), "{entry}");
    }
    for (at, entry) in entries(CALLS_32) {
        assert_eq!(number(entry).and_then(|numbers| numbers.short), Some(at), "{entry}");
    }
}

#[test]
fn the_tables_agree_with_the_headers_of_this_system() {
    if HERE != Architecture::X86_64 {
        return println!("skipped: the headers of arm64 name calls by macros of macros");
    }
    for (header, table) in [("unistd_64.h", CALLS), ("unistd_32.h", CALLS_32)] {
        let found = ["/usr/include/x86_64-linux-gnu/asm", "/usr/include/asm"]
            .iter()
            .find_map(|directory| std::fs::read_to_string(format!("{directory}/{header}")).ok());
        let Some(text) = found else {
            println!("skipped: {header} is not here");
            continue;
        };
        let defined = text.lines().filter_map(|line| line.strip_prefix("#define __NR_")?.split_once(' '));
        let mut compared = 0;
        for (name, number) in defined {
            let number: u32 = number.trim().parse().unwrap();
            // The header of a newer kernel has more calls than the tables.
            if number < 470 {
                assert!(entries(table).any(|entry| entry == (number, name)), "{number} {name}");
                compared += 1;
            }
        }
        assert!(compared > 300, "{header}: {compared}");
    }
}

#[test]
fn a_mistyped_call_has_a_neighbour() {
    for (wrong, right) in
        [("opneat", "openat"), ("raed", "read"), ("fsnyc", "fsync"), ("epollwait", "epoll_wait")]
    {
        assert_eq!(near(wrong), Some(right));
    }
    assert_eq!(near("zzzzzzzzzz"), None);
    assert_eq!(near(&"a".repeat(100_000)), None);
}

proptest! {
    #[test]
    fn any_number_has_a_name_and_any_name_an_answer(number in any::<i64>(), is_32_bit: bool, word in ".{0,60}") {
        prop_assert!(!name(number, is_32_bit).is_empty());
        let _ = (super::number(&word), near(&word), is_blocking(&word));
    }
}
