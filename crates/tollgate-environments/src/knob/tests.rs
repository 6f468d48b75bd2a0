use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tollgate_os::process;

use super::*;

fn refused(text: &str) -> String {
    KnobSetting::claim(text).unwrap_err().to_string()
}

#[test]
fn what_is_no_setting_is_refused() {
    let cases = [
        ("", ": a setting is PATH=VALUE, such as kernel.numa_balancing=0"),
        ("kernel.panic", "kernel.panic: a setting is PATH=VALUE, such as kernel.numa_balancing=0"),
        ("kernel.panic=", "kernel.panic=: the value is one line of text"),
        (
            "kernel.pannic=1",
            "kernel.pannic=1: there is no setting /proc/sys/kernel/pannic; sysctl -a lists those of /proc/sys",
        ),
        ("/etc/passwd=x", "/etc/passwd=x: a setting is a file in /proc/sys or /sys"),
        ("/proc/sysrq-trigger=c", "/proc/sysrq-trigger=c: a setting is a file in /proc/sys or /sys"),
        ("/proc/sys/../uptime=c", "/proc/sys/../uptime=c: a setting is a file in /proc/sys or /sys"),
        ("kernel=1", "kernel=1: /proc/sys/kernel is not a file; a setting is a file in /proc/sys or /sys"),
        (
            "vm.drop_caches=3",
            "vm.drop_caches=3: /proc/sys/vm/drop_caches is not changed: it is a command, not a setting",
        ),
    ];
    for (text, sentence) in cases {
        assert_eq!(refused(text), sentence);
    }
    if Path::new("/sys/power/state").exists() {
        assert!(refused("/sys/power/state=mem").ends_with("is not changed: it suspends the machine"));
    }
    let now = fs::read_to_string("/proc/sys/vm/swappiness").unwrap();
    let same = refused(&format!("vm/swappiness={now}"));
    let is_writable = File::options().write(true).open("/proc/sys/vm/swappiness").is_ok();
    assert!(
        !is_writable
            || same.contains("already is") && same.contains("name another value")
            || same.contains("one line"),
        "{same}"
    );
    // A kernel file that even root cannot write.
    let refusal = refused("kernel.ostype=x");
    let reasons = ["it cannot be written here, not even by root", "it can be written by root only"];
    assert!(reasons.iter().any(|why| refusal == format!("kernel.ostype=x: {why}")), "{refusal}");
}

#[test]
fn values_are_read_as_they_are_written() {
    let of = |text: &str| value_of(text.as_bytes()).map(|present| (present.value, present.words));
    assert_eq!(of("60\n"), Ok(("60".to_owned(), None)));
    assert_eq!(of("4096\t131072\t6291456\n"), Ok(("4096\t131072\t6291456".to_owned(), None)));
    let words = ["always", "madvise", "never"].map(str::to_owned).to_vec();
    assert_eq!(of("always [madvise] never\n"), Ok(("madvise".to_owned(), Some(words))));
    for no_line in ["", "\n", "a\nb\n"] {
        of(no_line).unwrap_err();
    }
    value_of(&[0xff, 0xfe]).err().unwrap();
    assert!(is_same("1\t2", "1 2") && !is_same("12", "1 2"));
}

/// A setting without effect on other programs, within a range that the kernel checks.
fn harmless() -> Option<(&'static str, String)> {
    let path = "/proc/sys/kernel/panic_on_oops";
    let is_writable = File::options().write(true).open(path).is_ok();
    if !is_writable {
        println!("skipped: needs root (to change {path})");
        return None;
    }
    Some((path, fs::read_to_string(path).unwrap().trim().to_owned()))
}

#[test]
fn a_setting_is_switched_and_is_as_it_was_at_the_end() {
    let Some((path, was)) = harmless() else { return };
    let now = || fs::read_to_string(path).unwrap().trim().to_owned();
    let other = if was == "0" { "1" } else { "0" };
    let cleanup = Cleanup::begin().unwrap();
    let mut knob = KnobSetting::claim(&format!("kernel.panic_on_oops={other}")).unwrap();
    assert!(knob.sentence().contains(path), "{}", knob.sentence());
    knob.switch(true).unwrap_err();
    knob.promise(&cleanup).unwrap();
    assert_eq!(now(), was);
    for on in [true, true, false, true] {
        knob.switch(on).unwrap();
        assert_eq!(now(), if on { other } else { was.as_str() });
    }
    assert_eq!(knob.knob().was, was);
    knob.end().unwrap();
    assert_eq!(now(), was);
    let mut unguarded = KnobSetting::claim(&format!("{path}={other}")).unwrap();
    unguarded.promise(&cleanup).unwrap();
    unguarded.switch(true).unwrap();
    process::kill(cleanup.pid(), libc::SIGKILL).unwrap();
    while cleanup.is_alive() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    unguarded.switch(false).unwrap();
    let refused = unguarded.switch(true).unwrap_err().to_string();
    let why = "the cleanup process that would restore it is missing";
    assert_eq!(refused, format!("{path} is not changed: {why}"));
    assert_eq!(now(), was);
    drop(unguarded);
    let cleanup = Cleanup::begin().unwrap();
    let mut wrong = KnobSetting::claim(&format!("{path}=nonsense")).unwrap();
    let sentence = wrong.promise(&cleanup).unwrap_err().to_string();
    assert_eq!(sentence, format!("{path}: the kernel rejects the value nonsense"));
    assert_eq!(now(), was);
}

/// A setting that no other test in this file changes: the interval in seconds over which messages of printk(9) are counted.
const LOCKED: &str = "/proc/sys/kernel/printk_ratelimit";

/// The value of [`LOCKED`], and another one; one test at a time.
fn locked() -> Option<(MutexGuard<'static, ()>, String, String)> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if File::options().write(true).open(LOCKED).is_err() {
        println!("skipped: needs root (to change {LOCKED})");
        return None;
    }
    let was = present(Path::new(LOCKED)).unwrap().value;
    let other = (was.parse::<u32>().unwrap() + 1).to_string();
    Some((alone, was, other))
}

#[test]
fn a_setting_has_one_session_by_whichever_name() {
    let Some((_alone, _, other)) = locked() else { return };
    let first = KnobSetting::claim(&format!("{LOCKED}={other}")).unwrap();
    for name in [LOCKED, "kernel.printk_ratelimit", "/proc/sys/kernel/../kernel/printk_ratelimit"] {
        let why = KnobSetting::claim(&format!("{name}={other}")).unwrap_err().to_string();
        let begins = format!("{name}={other}: process {} (", std::process::id());
        assert!(
            why.starts_with(&begins) && why.ends_with("only one session at a time may change a setting"),
            "{why}"
        );
    }
    drop(first);
    drop(KnobSetting::claim(&format!("{LOCKED}={other}")).unwrap());
}

#[test]
fn the_session_after_a_killed_one_finds_the_value_before() {
    let Some((_alone, was, other)) = locked() else { return };
    let now = || present(Path::new(LOCKED)).unwrap().value;
    for attempt in 0..12 {
        let mut session = process::fork_bound(|| {
            let Ok(mut knob) = KnobSetting::claim(&format!("{LOCKED}={other}")) else { return 1 };
            let Ok(cleanup) = Cleanup::holding(&[knob.lock()]) else { return 2 };
            if knob.promise(&cleanup).and_then(|()| knob.switch(true)).is_err() {
                return 3;
            }
            loop {
                std::thread::park();
            }
        })
        .unwrap();
        while now() != other {
            assert_eq!(session.try_wait().unwrap(), None, "attempt {attempt}");
            std::thread::yield_now();
        }
        let claim = || KnobSetting::claim(&format!("{LOCKED}={other}0"));
        claim().unwrap_err();
        session.end().unwrap();
        let began = Instant::now();
        let second = loop {
            match claim() {
                Ok(second) => break second,
                Err(why) => assert!(began.elapsed() < Duration::from_secs(300), "{why}"),
            }
        };
        assert_eq!(second.was(), was, "attempt {attempt}");
    }
    assert_eq!(now(), was);
}
