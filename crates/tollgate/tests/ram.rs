//! A device in memory that is lent to a command: only the command finds it, and nothing of it stays, however the command and
//! the program end. Tests that need root and loop devices report that they are skipped elsewhere.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

mod common;

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use common::{Home, entries, is_root, one_line, program, readable_copy, wait_for};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// Whether a device can be made here; prints the reason if not.
fn works(home: &Home) -> bool {
    if !is_root() {
        println!("skipped: only root may make a block device and mount it");
        return false;
    }
    let output = ram(home, &["--size", "64M", "--", "true"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let without = ["needs root", "loop", "mkfs.ext4", "no file system", "namespace"];
    if output.status.code() == Some(2) && without.iter().any(|word| stderr.contains(word)) {
        println!("skipped: no device in memory can be made here: {stderr}");
        return false;
    }
    assert!(output.status.success(), "{output:?}");
    true
}

fn ram(home: &Home, arguments: &[&str]) -> Output {
    home.tollgate(["ram"]).args(arguments).output().expect("started")
}

fn said(home: &Home, options: &[&str], script: &str) -> String {
    let output = ram(home, &[options, &["--", "sh", "-c", script]].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The private directories that a program made.
fn homes(of: u32) -> Vec<PathBuf> {
    let own = format!("/.tollgate-ram-{of}-");
    let all = ["/run", "/tmp"].map(|under| entries(Path::new(under)));
    all.into_iter().flatten().filter(|path| path.to_string_lossy().contains(&own)).collect()
}

/// A shell's words for the file that is bound to its loop device.
const BACKING: &str = "$(cat /sys/block/$(basename $TOLLGATE_RAM)/loop/backing_file)";

/// Whether a loop device is bound to this file. Another test may have got the number of a device that is free again.
fn is_bound(file: &str) -> bool {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut files =
        devices.filter_map(|entry| fs::read_to_string(entry.path().join("loop/backing_file")).ok());
    files.any(|other| other.trim_end() == file)
}

#[test]
fn the_command_finds_a_file_system_and_its_status_is_the_programs() {
    let home = Home::new();
    if !works(&home) {
        return;
    }
    let script =
        "echo $TOLLGATE_RAM && stat -f -c %T $TOLLGATE_RAM && touch $TOLLGATE_RAM/file && ls $TOLLGATE_RAM";
    let text = said(&home, &["--size", "64M"], script);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with('/') && lines[1].starts_with("ext2/ext3") && lines.contains(&"file"),
        "{text}"
    );
    assert!(!Path::new(lines[0]).exists(), "it is gone");
    let text = said(&home, &["--fs", "tmpfs", "--size", "8M"], "stat -f -c '%T %b %S' $TOLLGATE_RAM");
    let fields: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(fields[0], "tmpfs");
    let bytes: u64 = fields[1..].iter().map(|number| number.parse::<u64>().expect("a number")).product();
    assert_eq!(bytes, 8 << 20);
    for (script, status) in [("exit 7", 7), ("exit 0", 0)] {
        let output = ram(&home, &["--size", "64M", "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
    }
    let output = ram(&home, &["--size", "64M", "--", "no-such-program-at-all"]);
    assert_eq!(output.status.code(), Some(127), "{output:?}");
    assert!(one_line(&output.stderr).contains("no-such-program-at-all"));
    let output = ram(&home, &["--size", "64M", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(output.status.signal(), Some(9), "{output:?}");
}

#[test]
fn without_a_file_system_the_device_itself_is_lent() {
    let home = Home::new();
    if !works(&home) {
        return;
    }
    let script = format!(
        "test -b $TOLLGATE_RAM && cat /sys/block/$(basename $TOLLGATE_RAM)/size && echo {BACKING} \
        && echo precious > $TOLLGATE_RAM && head -c 8 $TOLLGATE_RAM"
    );
    let text = said(&home, &["--fs", "none", "--size", "16M"], &script);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0].parse::<u64>().expect("sectors"), (16 << 20) / 512);
    assert_eq!(lines[2], "precious");
    wait_for("the device to be free", || (!is_bound(lines[1])).then_some(()));
}

#[test]
fn other_processes_do_not_see_it() {
    let home = Home::new();
    if !works(&home) {
        return;
    }
    let mut lent = start(&home, "touch $TOLLGATE_RAM/file; echo $TOLLGATE_RAM; read line");
    let directory = line_of(&mut lent);
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert!(!mounts.contains(&directory), "{mounts}");
    assert!(!Path::new(&directory).join("file").exists());
    drop(lent.stdin.take());
    lent.wait().expect("waited");
    assert_eq!(homes(lent.id()), [""; 0].map(PathBuf::from));
}

/// A command in a shell whose input and output are pipes.
fn start(home: &Home, script: &str) -> Child {
    let mut command = Command::new(program());
    command.args(["ram", "--size", "64M", "--quiet", "--", "sh", "-c", script]);
    command.env("XDG_DATA_HOME", home.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    // Signals to the test's process group must not reach it.
    command.process_group(0).spawn().expect("started")
}

fn line_of(child: &mut Child) -> String {
    use std::io::{BufRead, BufReader};
    let mut line = String::new();
    let output = child.stdout.as_mut().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("a line");
    line.trim().to_owned()
}

/// A command with a process that has left its session, group and directory, and one whose directory is in the file system:
/// their numbers, and the device.
fn busy(home: &Home) -> (Child, Vec<i32>, String) {
    let script = "setsid sleep 600 & echo $! > $TOLLGATE_RAM/pids; cd $TOLLGATE_RAM; sleep 600 & echo $! >> pids; \
        trap 'exit 5' TERM; \
        echo $(cat pids) $(grep $TOLLGATE_RAM /proc/self/mountinfo | sed 's/.* - //' | cut -d' ' -f2); exec 1>&-; \
        while :; do sleep 0.05; done";
    let mut lent = start(home, script);
    let line = line_of(&mut lent);
    let words: Vec<&str> = line.split(' ').collect();
    let [first, second, .., source] = words.as_slice() else { panic!("{line}") };
    let pids = vec![first.parse().expect("a number"), second.parse().expect("a number")];
    // The mount's source is the path of the loop device's file, or the device.
    (lent, pids, (*source).to_owned())
}

fn runs(pid: i32) -> bool {
    let alive = fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z')));
    alive && test_kill_process(Pid::from_raw(pid).expect("a number")).is_ok()
}

fn expect_nothing(lent: &Child, pids: &[i32]) {
    let own = lent.id();
    wait_for("the end of what the command left", || pids.iter().all(|pid| !runs(*pid)).then_some(()));
    wait_for("the end of the directory", || homes(own).is_empty().then_some(()));
    let marks = format!(".tollgate-ram-{own}-");
    wait_for("the end of the device", || {
        let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let files =
            devices.filter_map(|entry| fs::read_to_string(entry.path().join("loop/backing_file")).ok());
        let is_ours = |file: &String| file.contains(&marks);
        (!files.collect::<Vec<_>>().iter().any(is_ours)).then_some(())
    });
}

#[test]
fn what_a_command_leaves_is_ended_and_the_device_is_gone() {
    let home = Home::new();
    if !works(&home) {
        return;
    }
    let script = "setsid sleep 600 & (cd $TOLLGATE_RAM && sleep 600 & echo $! ) ; echo $!";
    let output = ram(
        &home,
        &["--size", "64M", "--", "sh", "-c", &format!("exec 3>&1; ({script}) 3>&- | head -2; exit 3")],
    );
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let line = one_line(&output.stderr);
    assert!(line.contains("processes that the command left were ended"), "{line}");
    let text = String::from_utf8(output.stdout).expect("text");
    for pid in text.split_whitespace().map(|pid| pid.parse::<i32>().expect("a number")) {
        assert!(!runs(pid), "{pid}");
    }
}

#[test]
fn what_a_command_mounts_itself_goes_with_the_device() {
    let home = Home::new();
    if !works(&home) {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    for (kind, mount, made) in [
        ("ext4", "mount --bind $TOLLGATE_RAM", "$TOLLGATE_RAM"),
        ("none", "mkfs.ext4 -q -F $TOLLGATE_RAM && mount $TOLLGATE_RAM", BACKING),
    ] {
        let script = format!("{mount} '{}' && echo {made}", place.path().display());
        let output = ram(&home, &["--fs", kind, "--size", "64M", "--", "sh", "-c", &script]);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let path = String::from_utf8(output.stdout).expect("text").trim().to_owned();
        assert!(if kind == "none" { !is_bound(&path) } else { !Path::new(&path).exists() }, "{path}");
    }
}

#[test]
fn nothing_stays_where_the_program_is_told_to_end_or_is_killed() {
    let home = Home::new();
    if !works(&home) {
        return;
    }
    for signal in [Signal::TERM, Signal::KILL] {
        let (mut lent, pids, source) = busy(&home);
        assert!(pids.iter().all(|pid| runs(*pid)), "{source}: nothing would be tested");
        assert_eq!(homes(lent.id()).len(), 1, "nothing would be tested");
        kill_process(Pid::from_child(&lent), signal).expect("our own child");
        let status = lent.wait().expect("waited");
        match signal {
            // The command received it, and chose its own status.
            Signal::TERM => assert_eq!(status.code(), Some(5), "{status:?}"),
            _ => assert_eq!(status.signal(), Some(9), "{status:?}"),
        }
        expect_nothing(&lent, &pids);
    }
}

#[test]
fn killed_at_any_moment_of_its_start_nothing_stays() {
    let home = Home::new();
    if !works(&home) {
        return;
    }
    for after in [2, 10, 20, 35, 60] {
        let mut lent = start(&home, "sleep 600");
        std::thread::sleep(Duration::from_millis(after));
        kill_process(Pid::from_child(&lent), Signal::KILL).expect("our own child");
        lent.wait().expect("waited");
        expect_nothing(&lent, &[]);
    }
}

#[test]
fn wrong_input_is_one_line() {
    let home = Home::new();
    for (arguments, said) in [
        (&["--size", "1.5G", "--", "true"][..], "it is not a size, such as"),
        (&["--size", "3 weeks", "--", "true"], "not one of K, M, G, T and P"),
        (&["--fs", "../x", "--", "true"], "not a file system"),
        (&[], "<COMMAND>"),
    ] {
        let output = ram(&home, arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let line = one_line(&output.stderr);
        assert!(line.contains(said), "{line}");
    }
    if !works(&home) {
        return;
    }
    for (arguments, said) in [
        (&["--size", "1", "--", "true"][..], "a device has 1024 KiB or more"),
        (&["--size", "1000000G", "--fs", "tmpfs", "--", "true"], "a tmpfs cannot be larger"),
        (&["--fs", "nosuch", "--", "true"], "mkfs.nosuch, which makes the file system, is not installed"),
    ] {
        let line = one_line(&ram(&home, arguments).stderr);
        assert!(line.starts_with("ram: ") && line.contains(said), "{line}");
    }
}

/// Blocks that were never written take no memory.
#[test]
fn a_device_may_be_larger_than_the_memory() {
    let home = Home::new();
    if !works(&home) {
        return;
    }
    let script = "stat -fc '%b %S' $TOLLGATE_RAM && head -c 64M /dev/zero > $TOLLGATE_RAM/file";
    let output = ram(&home, &["--size", "4T", "--", "sh", "-c", script]);
    assert!(output.status.success(), "{output:?}");
    let numbers: Vec<u64> = String::from_utf8_lossy(&output.stdout)
        .split_whitespace()
        .map(|number| number.parse().expect("a number"))
        .collect();
    assert!(numbers[0] * numbers[1] > 3 << 40, "{numbers:?}");
    let line = one_line(&output.stderr);
    let (held, after) = line
        .strip_prefix("ram: 4.00 TiB: mkfs.ext4 took ")
        .and_then(|rest| rest.split_once("; ")?.1.split_once(" of memory held before the command, "))
        .unwrap_or_else(|| panic!("{line}"));
    let mib = |text: &str| -> f64 {
        text.split_once(" MiB")
            .and_then(|(number, _)| number.parse().ok())
            .unwrap_or_else(|| panic!("{line}"))
    };
    assert!((60.0..200.0).contains(&(mib(after) - mib(held))), "{line}");
    // Data that a command wrote to the bare device may still be in the page cache.
    let script = "head -c 64M /dev/zero > $TOLLGATE_RAM";
    let output = ram(&home, &["--size", "1P", "--fs", "none", "--", "sh", "-c", script]);
    let line = one_line(&output.stderr);
    let after = line.strip_prefix("ram: 1024 TiB: 0.0 bytes of memory held before the command, ");
    assert!((60.0..200.0).contains(&mib(after.unwrap_or_else(|| panic!("{line}")))), "{line}");
}

#[test]
fn others_than_root_are_told_what_it_needs() {
    let temporary = common::public_directory();
    let mut command = Command::new(readable_copy(temporary.path()));
    command.args(["ram", "--", "true"]).current_dir("/").env("HOME", "/nonexistent");
    if is_root() {
        command.uid(65534).gid(65534);
    }
    let output = command.output().expect("started");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(one_line(&output.stderr).starts_with("ram needs root: "), "{output:?}");
}
