#![allow(unsafe_code)] // Calls that a filter refuses are made.

use proptest::prelude::*;
use tollgate_model::traced::Ended;
use tollgate_os::process::fork;

use super::*;

fn parsed(text: &str) -> Result<Profile, String> {
    Profile::parse(text.as_bytes())
}

/// What a call gives under a filter: 0, or its error.
fn under(filter: &Filter, number: libc::c_long, arguments: [u64; 2]) -> i32 {
    let mut child = fork(|| {
        if filter.install().is_err() {
            return 200;
        }
        // SAFETY: the calls that the tests name take numbers or refuse a null pointer.
        match unsafe { libc::syscall(number, arguments[0], arguments[1], 0, 0, 0) } {
            -1 => std::io::Error::last_os_error().raw_os_error().unwrap_or(201),
            _ => 0,
        }
    })
    .unwrap();
    match child.wait().unwrap() {
        Ended::Exit(status) => status,
        Ended::Signal(signal) => -signal,
    }
}

#[test]
fn the_default_refuses_what_docker_lists_and_nothing_else() {
    let names: Vec<&str> = BLOCKED.split_whitespace().collect();
    let numbers: Vec<_> = names.iter().map(|name| (*name, calls::number(name).expect(name))).collect();
    let short_only: Vec<&str> =
        numbers.iter().filter(|(_, numbers)| numbers.x86_64.is_none()).map(|(name, _)| *name).collect();
    assert_eq!(short_only, ["stime", "umount", "vm86", "vm86old"]);
    assert_eq!(numbers.len(), 49);
    let filter = Filter::read(&Seccomp::Default).unwrap().unwrap();
    // Allowed they would fail otherwise: no such policy, no such id, a bad address.
    for (name, expected) in [
        ("get_mempolicy", libc::EPERM),
        ("unshare", libc::EPERM),
        ("userfaultfd", libc::EPERM),
        ("personality", libc::EPERM),
        ("getppid", 0),
        ("sched_yield", 0),
        ("statx", libc::EFAULT),
    ] {
        let number = calls::number(name).unwrap().x86_64.unwrap();
        assert_eq!(under(&filter, number.into(), [u64::MAX, 0]), expected, "{name}");
    }
    assert!(Filter::read(&Seccomp::None).unwrap().is_none());
}

#[test]
fn a_profile_is_kept_to() {
    let text = r#"{"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 18, "archMap": [{"architecture": "SCMP_ARCH_X86_64",
        "subArchitectures": ["SCMP_ARCH_X86"]}, {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": null}],
        "syscalls": [{"names": ["getppid", "exit_group", "close", "openat"], "action": "SCMP_ACT_ALLOW", "args": [], "comment": "", "includes": {}},
        {"names": ["getppid"], "action": "SCMP_ACT_KILL_PROCESS"},
        {"names": ["getuid"], "action": "SCMP_ACT_KILL_PROCESS"}, {"names": ["getgid"], "action": "SCMP_ACT_ERRNO", "errnoRet": 7}]}"#;
    let profile = parsed(text).unwrap();
    assert_eq!(profile.architectures, Some(vec![Arch::X86, Arch::X86_64]));
    let filter = profile.program("it").unwrap().unwrap();
    assert_eq!(under(&filter, libc::SYS_getppid, [0; 2]), 0);
    assert_eq!(under(&filter, libc::SYS_getuid, [0; 2]), -libc::SIGSYS);
    assert_eq!(under(&filter, libc::SYS_getgid, [0; 2]), 7);
    assert_eq!(under(&filter, libc::SYS_geteuid, [0; 2]), 18);
    let oci = profile.oci();
    assert_eq!(oci["defaultErrnoRet"], 18);
    assert_eq!(Profile::parse(oci.to_string().as_bytes()).unwrap(), profile);
}

#[test]
fn what_is_no_profile_is_refused_with_a_sentence() {
    let rule = |inner: &str| {
        let text = format!(r#"{{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{{{inner}}}]}}"#);
        parsed(&text)
            .and_then(|profile| profile.program("it").map_err(|error| error.to_string()))
            .unwrap_err()
    };
    assert_eq!(
        rule(r#""names": ["opneat"], "action": "SCMP_ACT_ERRNO""#),
        "`opneat` is no system call of x86-64 (did you mean openat?)"
    );
    assert_eq!(
        rule(r#""names": ["read"], "action": "SCMP_ACT_NO""#),
        "`SCMP_ACT_NO` is no action; there are SCMP_ACT_ALLOW, SCMP_ACT_ERRNO, SCMP_ACT_KILL_THREAD, SCMP_ACT_KILL_PROCESS, \
         SCMP_ACT_TRAP and SCMP_ACT_LOG"
    );
    assert_eq!(
        rule(r#""names": ["read"], "action": "SCMP_ACT_NOTIFY""#),
        "SCMP_ACT_NOTIFY needs a second process that answers, and there is none"
    );
    assert_eq!(
        rule(r#""names": ["read"], "action": "SCMP_ACT_ERRNO", "errnoRet": 4096"#),
        "errnoRet is an error's number, from 0 to 4095"
    );
    let condition = r#""names": ["clone"], "action": "SCMP_ACT_ERRNO", "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}]"#;
    assert_eq!(
        rule(condition),
        "it: the rule for clone has conditions (args), by which tollgate's own filter does not decide; write rules \
         without args, or use a container of runc, podman or docker"
    );
    let some = r#""names": ["mount"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}"#;
    assert_eq!(
        rule(some),
        "the rule for mount holds for some containers only (includes, excludes), which podman and docker alone know"
    );
    let no_profile = "it is no seccomp profile, a JSON object with defaultAction and syscalls: ";
    for (text, why) in [
        ("[1]", "invalid type: integer `1`, expected a string at line 1 column 2"),
        ("{}", "missing field `defaultAction` at line 1 column 2"),
    ] {
        assert_eq!(parsed(text).unwrap_err(), format!("{no_profile}{why}"));
    }
    let many = format!(r#""names": [{}], "action": "SCMP_ACT_LOG""#, vec!["\"read\""; 10_001].join(","));
    assert_eq!(rule(&many), "it has more than 10000 names of calls");
    let full = format!(r#""names": [{}], "action": "SCMP_ACT_LOG""#, vec!["\"read\""; 4_000].join(","));
    assert_eq!(rule(&full), "it: the profile has more rules than a filter has room for (4096 instructions)");
}

#[test]
fn a_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("profile.json");
    let said = |file: &Path| Filter::read(&Seccomp::File(file.to_owned())).unwrap_err().to_string();
    let named = |why: &str| format!("{}: {why}", file.display());
    assert_eq!(said(&file), named("No such file or directory"));
    std::fs::write(&file, vec![b' '; (1 << 20) + 1]).unwrap();
    assert_eq!(said(&file), named("it is longer than a seccomp profile, of at most 1 MiB"));
    std::fs::write(&file, Profile::of_containers().oci().to_string()).unwrap();
    assert_eq!(Profile::read(&file).unwrap(), Profile::of_containers());
    assert_eq!(file_for("podman", &file).unwrap(), file);
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,80}") {
        let _ = parsed(&text);
    }

    #[test]
    fn any_profile_is_read_back(
        other in 0_u16..=4095,
        which in prop::collection::vec((0_u32..460, prop::sample::select(vec![
            "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO", "SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_TRAP", "SCMP_ACT_LOG", "x",
        ]), prop::option::of(0_u32..5000)), 0..30),
        listed in prop::option::of(prop::collection::vec(prop::sample::select(vec![
            "SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32",
        ]), 1..4)),
    ) {
        let rules: Vec<_> = which.iter().map(|(number, action, errno)| {
            let name = calls::base_name(*number, false).unwrap_or("no_call");
            serde_json::json!({"names": [name], "action": action, "errnoRet": errno})
        }).collect();
        let mut value = serde_json::json!({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": other, "syscalls": rules});
        if let Some(listed) = listed {
            value["architectures"] = serde_json::json!(listed);
        }
        if let Ok(profile) = parsed(&value.to_string()) {
            prop_assert_eq!(profile.rules.len(), which.len());
            prop_assert!(profile.program("it").is_ok());
            prop_assert_eq!(parsed(&profile.oci().to_string()), Ok(profile));
        }
    }
}
