use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use tollgate_os::process;

use super::*;

fn group(script: &str) -> Undo {
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    let pid = command.spawn().unwrap().id().cast_signed();
    Undo::Group { pid, started: started(pid) }
}

fn pid(of: &Undo) -> i32 {
    match of {
        Undo::Group { pid, .. } => *pid,
        _ => unreachable!(),
    }
}

/// A zombie that only PID 1 can reap counts as gone.
fn is_gone(number: i32) -> bool {
    !group::any_alive(number)
}

#[test]
fn all_of_a_group_ends() {
    for script in [
        "sleep 1000 & sleep 1000",
        "sleep 1000 & exit",
        "trap '' TERM; while :; do sleep 1; done",
        "kill -STOP $$",
    ] {
        let undo = group(script);
        assert_eq!(undo_all(std::slice::from_ref(&undo)), []);
        assert!(is_gone(pid(&undo)), "{script}");
        assert_eq!(undo_all(&[undo]), []);
    }
}

#[test]
fn another_process_of_the_same_number_is_left_alone() {
    let own = group("sleep 1000");
    let Undo::Group { pid, started } = own else { unreachable!() };
    assert_eq!(undo_all(&[Undo::Group { pid, started: started + 1 }]), []);
    assert!(!is_gone(pid));
    assert_eq!(undo_all(&[Undo::Group { pid: 0, started: 0 }, Undo::Group { pid: -5, started: 0 }]), []);
    assert_eq!(undo_all(&[own]), []);
}

#[test]
fn programs_run_in_reverse_order_and_may_fail() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("said");
    let say = |word: &str| {
        let script = format!("echo {word} >> {}; exit 1", file.display());
        Undo::Program(["sh", "-c", script.as_str()].map(Into::into).to_vec())
    };
    let none = Undo::Program(vec!["tollgate-no-such-program".into()]);
    assert_eq!(undo_all(&[say("first"), none, Undo::Program(Vec::new()), say("second")]), []);
    assert_eq!(fs::read_to_string(file).unwrap(), "second\nfirst\n");
}

#[test]
fn a_directory_goes_and_what_was_put_in_its_place_stays() {
    let place = tempfile::tempdir().unwrap();
    let (made, other) = (place.path().join("made"), place.path().join("other"));
    for directory in [&made, &other] {
        fs::create_dir(directory).unwrap();
        fs::write(directory.join("file"), "x").unwrap();
    }
    symlink(&other, made.join("link")).unwrap();
    let metadata = fs::metadata(&made).unwrap();
    let undo = Undo::Directory { path: made.clone(), device: metadata.dev(), inode: metadata.ino() };
    let aside = place.path().join("aside");
    fs::rename(&made, &aside).unwrap();
    assert_eq!(undo_all(std::slice::from_ref(&undo)), []);
    symlink(&aside, &made).unwrap();
    assert_eq!(undo_all(std::slice::from_ref(&undo)), []);
    assert!(aside.join("file").exists(), "a link is not followed");
    fs::remove_file(&made).unwrap();
    fs::rename(&other, &made).unwrap();
    assert_eq!(undo_all(std::slice::from_ref(&undo)), []);
    assert!(made.join("file").exists(), "another directory");
    fs::rename(&made, &other).unwrap();
    fs::rename(&aside, &made).unwrap();
    assert_eq!(undo_all(&[undo]), []);
    assert!(!made.exists() && other.join("file").exists());
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("skipped: needs root (to mount, to make control groups)");
    }
    is_root
}

#[test]
fn mounts_below_a_directory_go_before_it() {
    if !is_root() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let precious = tempfile::tempdir().unwrap();
    fs::write(precious.path().join("file"), "x").unwrap();
    let made = place.path().join("made with spaces");
    fs::create_dir_all(made.join("a/b")).unwrap();
    let metadata = fs::metadata(&made).unwrap();
    let undo = Undo::Directory { path: made.clone(), device: metadata.dev(), inode: metadata.ino() };
    let mounted = [made.join("a"), made.join("a")].iter().all(|to| {
        let command = Command::new("mount").arg("--bind").arg(precious.path()).arg(to).status();
        command.is_ok_and(|status| status.success())
    });
    if !mounted {
        println!("skipped: mount(8) does not work here");
        return;
    }
    assert_eq!(undo_all(&[undo.clone(), Undo::Unmount(made.clone())]), []);
    assert!(!made.exists() && precious.path().join("file").exists());
    assert_eq!(undo_all(&[undo]), []);
}

#[test]
fn a_control_group_goes_with_its_processes_and_those_beneath() {
    if !is_root() {
        return;
    }
    let mut tried = 0;
    for hierarchy in
        ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/freezer"]
    {
        let own = Path::new(hierarchy).join(format!("tollgate-test-{}", process::own_pid()));
        // The root of a hierarchy has such a file; if the path is a plain directory, no cgroup can be made.
        if !Path::new(hierarchy).join("cgroup.procs").exists()
            || fs::create_dir_all(own.join("inner/more")).is_err()
        {
            continue;
        }
        tried += 1;
        let sleeping = group("sleep 1000 & sleep 1000");
        let join = fs::write(own.join("inner/cgroup.procs"), pid(&sleeping).to_string());
        assert_eq!(undo_all(&[Undo::Cgroup(own.clone())]), [], "{hierarchy}");
        assert!(!own.exists());
        if join.is_ok() {
            // Its second process may have been started before it joined.
            assert!(!matches!(process::wait4(pid(&sleeping), 0), Ok(None)));
        }
        assert_eq!(undo_all(&[sleeping, Undo::Cgroup(own)]), []);
    }
    println!("{tried} hierarchies");
    let refused = undo_all(&[Undo::Cgroup("/tmp".into())]);
    assert_eq!(refused.len(), 1, "{refused:?}");
}

#[test]
fn a_setting_is_written_back() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("setting");
    fs::write(&file, "new").unwrap();
    assert_eq!(undo_all(&[Undo::Setting { path: file.clone(), value: "was".to_owned() }]), []);
    assert_eq!(fs::read_to_string(&file).unwrap(), "was\n");
    let missing = Undo::Setting { path: place.path().join("none"), value: "x".to_owned() };
    assert_eq!(undo_all(&[missing]).len(), 1);
}
