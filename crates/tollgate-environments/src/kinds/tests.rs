use proptest::prelude::*;

use super::*;
use crate::container::Runtime;

fn spec(given: &str) -> Spec {
    given.parse().unwrap()
}

fn refused(given: &str) -> String {
    given.parse::<Spec>().unwrap_err().to_string()
}

#[test]
fn names_are_read_and_shown_as_they_were_given() {
    for given in [
        "host",
        "host:cpu=1",
        "host:nice=-5,cpu=0,dir=/var/tmp,seccomp=default,setarch=-R,sched=batch,env.A=b=c,env.B=,env.C=x y",
        "host:seccomp=none",
        "container",
        "container:runtime=runc,seccomp=none",
        "container:seccomp=./profile.json",
        "gvisor",
        "gvisor:platform=systrap",
        "vm",
        "vm:exact",
        "vm:kernel=/boot/vmlinuz,append=mitigations=off quiet,audit=/x/rules,program=/x/tollgate,cpus=2,memory=512M,accel=tcg,cache=none,on=ram:xfs,exact",
        "ssh:user@machine",
        "exec:docker run -i --rm image",
        "exec: sh -c 'exec \"$0\" \"$@\"', ",
    ] {
        assert_eq!(spec(given).to_string(), given);
    }
    // arm64 has one type of machine, and the architecture of this program is not shown.
    let microvm = spec("vm:arch=x86-64,vmm=microvm");
    assert_eq!(spec(&microvm.to_string()).to_string(), microvm.to_string());
    assert_eq!(microvm.outside(), None);
}

/// A new key counts as naming something outside until it is listed here.
#[test]
fn what_names_something_outside_is_known() {
    for (given, part) in [
        ("exec:true", "exec:PREFIX"),
        ("ssh:machine", "ssh:HOST"),
        ("vm:exact,kernel=bzImage", "kernel="),
        ("vm:append=init=/bin/sh", "append="),
        ("vm:on=ram", "on="),
        ("vm:audit=loaded", "audit="),
        ("vm:program=tollgate", "program="),
        ("host:nice=5,dir=.", "dir="),
        ("host:env.LD_PRELOAD=x.so", "env.LD_PRELOAD="),
        ("container:seccomp=profile.json", "seccomp="),
    ] {
        assert_eq!(spec(given).outside().as_deref(), Some(part), "{given}");
    }
    for given in [
        "host",
        "host:cpu=1,nice=-5,sched=batch,setarch=-R,seccomp=none",
        "container:runtime=runc,seccomp=none",
        "gvisor:platform=kvm",
        "vm:append=mitigations=off quiet,cpus=2,memory=512M,accel=tcg,cache=none,exact",
        "vm:exact,arch=arm64",
    ] {
        assert_eq!(spec(given).outside(), None, "{given}");
    }
    let words = ALL.descriptions().flat_map(|kind| kind.keys).filter(|key| key.is_inside("word"));
    let expected = ["cpu", "nice", "append", "cpus", "memory", "exact"];
    assert_eq!(words.map(|key| key.name).collect::<Vec<_>>(), expected);
}

#[test]
fn a_filter_that_is_the_default_is_not_shown() {
    assert_eq!(spec("container:seccomp=default").to_string(), "container");
}

#[test]
fn a_guest_takes_a_file_system_where_its_name_has_none() {
    let on_ram =
        |given| spec(given).on_ram(&"ram:xfs".parse().expect("a device")).map(|spec| spec.to_string());
    assert_eq!(on_ram("vm").as_deref(), Some("vm:on=ram:xfs"));
    assert_eq!(on_ram("vm:on=ram").as_deref(), Some("vm:on=ram:ext4"));
    assert_eq!(on_ram("host"), None);
    assert!(
        spec("vm").in_directory("/x".as_ref()).is_none()
            && spec("host").in_directory("/x".as_ref()).is_some()
    );
}

#[test]
fn the_documentation_has_each_kind_with_its_keys() {
    let documented = include_str!("../../../../docs/environments.md");
    for kind in ALL.descriptions().filter(|kind| kind.operand.is_none()) {
        let keys: Vec<String> = kind.keys.iter().map(documented_key).collect();
        let row = format!("| `{}` | {} |", kind.form(), keys.join(", "));
        assert!(documented.lines().any(|line| line == row), "docs/environments.md has no line\n{row}");
    }
    for kind in ALL.descriptions().filter(|kind| kind.operand.is_some()) {
        assert!(documented.contains(&format!("\n| `{}` | none: ", kind.form())), "{}", kind.name);
    }
}

/// A key as the documentation writes it: `` `sched=batch` (`other`, `idle`) ``.
fn documented_key(key: &Key) -> String {
    let joint = if key.name.ends_with('.') { "" } else { "=" };
    let [first, rest @ ..] = key.values else {
        return format!("`{}{}`", key.name, key.own.map_or_else(String::new, |own| format!("{joint}{own}")));
    };
    let rest = rest.iter().map(|value| format!("`{value}`"));
    let others: Vec<String> = rest.chain(key.own.map(|own| format!("or {own}"))).collect();
    let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
    format!("`{}={first}`{others}", key.name)
}

#[test]
fn a_survey_has_each_kind_and_runtime_once_with_its_version_or_the_reason() {
    let begun = std::time::Instant::now();
    let found = survey();
    println!("{} ms", begun.elapsed().as_millis());
    let environments: Vec<&str> = found.iter().map(|one| one.environment.as_str()).collect();
    let runtimes = Runtime::ALL.map(|runtime| format!("container:runtime={runtime}"));
    let mut expected = vec!["host"];
    expected.extend(runtimes.each_ref().map(String::as_str));
    expected.extend(["gvisor", "vm", "ssh:HOST", "exec:PREFIX"]);
    assert_eq!(environments, expected);
    for one in &found {
        println!("{one:?}");
        let said = one.found.as_ref().unwrap_or_else(|why| why);
        assert!(!said.is_empty() && !said.contains('\n'), "{one:?}");
        one.names.iter().for_each(|name| drop(spec(name)));
    }
    for (runtime, one) in Runtime::ALL.into_iter().zip(&found[1..]) {
        if runtime.find().is_err() {
            assert!(one.found.as_ref().unwrap_err().starts_with("not installed (Debian package "), "{one:?}");
        }
    }
}

#[test]
fn a_refusal_is_a_sentence_that_says_what_would_be_right() {
    let cases = [
        (
            "",
            "the kind of environment is missing; the kinds are host, container, gvisor, vm, ssh:HOST and exec:PREFIX",
        ),
        (
            "hots",
            "hots: there is no environment hots (did you mean host?); the kinds are host, container, gvisor, vm, ssh:HOST and \
             exec:PREFIX",
        ),
        (
            "docker",
            "docker: there is no environment docker; the kinds are host, container, gvisor, vm, ssh:HOST and exec:PREFIX",
        ),
        (
            "host:cpus=1",
            "host:cpus=1: host has no key cpus (did you mean cpu?); its keys are cpu, dir, env.NAME, nice, sched, seccomp \
             and setarch",
        ),
        ("host:cpu", "host:cpu: the key cpu has no value: write cpu=VALUE"),
        ("host:cpu=1,cpu=2", "host:cpu=1,cpu=2: the key cpu is given twice"),
        (
            "host:cpu=-1",
            "host:cpu=-1: cpu is a processor's number as lscpu shows it, such as cpu=0, not `-1`",
        ),
        ("host:nice=20", "host:nice=20: nice is a number from -20 to 19, not `20`"),
        (
            "host:sched=bach",
            "host:sched=bach: sched is one of batch, other, idle, fifo and rr, not `bach` (did you mean batch?)",
        ),
        (
            "host:setarch=-X",
            "host:setarch=-X: setarch is -R, which turns the randomization of addresses off, not `-X`",
        ),
        ("host:env.=1", "host:env.=1: env. is followed by a variable's name, such as env.MALLOC_ARENA_MAX=1"),
        (
            "host:env.A=1,2",
            "host:env.A=1,2: host has no key 2; its keys are cpu, dir, env.NAME, nice, sched, seccomp and setarch",
        ),
        ("host:dir=", "host:dir=: dir is a directory, such as dir=/var/tmp"),
        ("container:seccomp=", "container:seccomp=: seccomp is default, none or a profile's file"),
        (
            "host:seccomp=p.json",
            "host:seccomp=p.json: seccomp is default or none on the host, not `p.json`; container:runtime=podman and \
             container:runtime=docker take a profile's file, and exec:'setpriv --seccomp-filter FILE' a filter of your own",
        ),
        (
            "host:",
            "host:: host: is followed by key=value pairs separated by commas; its keys are cpu, dir, env.NAME, nice, sched, \
             seccomp and setarch",
        ),
        (
            "container:runtime=dokcer",
            "container:runtime=dokcer: runtime is one of bwrap, runc, crun, podman, docker and nspawn, not `dokcer` (did you \
             mean docker?)",
        ),
        (
            "gvisor:platform=ptrase",
            "gvisor:platform=ptrase: platform is one of systrap, ptrace and kvm, not `ptrase` (did you mean ptrace?)",
        ),
        (
            "vm:x=1",
            "vm:x=1: vm has no key x; its keys are kernel, append, audit, arch, program, cpus, memory, accel, vmm, cache, on and exact",
        ),
        (
            "vm:exat",
            "vm:exat: vm has no key exat (did you mean exact?); its keys are kernel, append, audit, arch, program, cpus, memory, \
             accel, vmm, cache, on and exact",
        ),
        ("vm:arch=arm", "vm:arch=arm: arch is one of x86-64 and arm64, not `arm` (did you mean arm64?)"),
        (
            "vm:arch=arm64,vmm=microvm",
            "vm:arch=arm64,vmm=microvm: QEMU's machine type microvm is x86-64's; omit vmm=microvm or arch=arm64",
        ),
        ("vm:exact=1", "vm:exact=1: the key exact has no value: write exact alone"),
        ("vm:exact,exact", "vm:exact,exact: the key exact is given twice"),
        ("gvisor:x=1", "gvisor:x=1: gvisor has no key x; its key is platform"),
        ("ssh", "ssh: ssh: is followed by a host as ssh(1) takes it, such as ssh:user@machine"),
        (
            "ssh:-oProxyCommand=x",
            "ssh:-oProxyCommand=x: ssh: is followed by a host as ssh(1) takes it, such as ssh:user@machine",
        ),
        ("exec: ", "exec: : exec: is followed by a command that runs a program, such as exec:'nice -n 5'"),
        ("exec:sh -c 'a", "exec:sh -c 'a: a single quote (') is not closed"),
    ];
    for (given, sentence) in cases {
        assert_eq!(refused(given), sentence);
    }
    assert_eq!(refused("host\u{1b}[m"), "host\\u{1b}[m: a name of an environment has no control characters");
    assert!(refused(&"h".repeat(100_000)).len() < 1000);
    assert!(refused(&format!("host:{}=1", "k".repeat(100_000))).len() < 1000);
}

fn texts() -> impl Strategy<Value = String> {
    let value = "[a-z0-9=./ -]{0,8}";
    let pair = (
        prop::sample::select(vec!["cpu", "dir", "nice", "sched", "seccomp", "setarch", "env.A", "env.B"]),
        value,
    )
        .prop_map(|(key, value)| format!("{key}={value}"));
    let right = prop::sample::select(vec![
        "cpu=1",
        "dir=/x",
        "nice=3",
        "sched=idle",
        "seccomp=none",
        "setarch=-R",
        "env.X=y",
        "env.Y=",
        "runtime=bwrap",
        "platform=kvm",
    ])
    .prop_map(str::to_owned);
    let pairs =
        prop::collection::vec(prop_oneof![3 => right, 1 => pair], 0..4).prop_map(|pairs| pairs.join(","));
    let kind = prop::sample::select(vec!["host", "container", "gvisor", "ssh", "exec", "hos"]);
    prop_oneof![
        ("\\PC{0,60}").prop_map(|text| text),
        ("(host|exec|ssh|container|gvisor):.{0,60}").prop_map(|text| text),
        (kind, pairs).prop_map(|(kind, pairs)| format!("{kind}:{pairs}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_panics_and_what_is_shown_is_read_as_the_same(given in texts()) {
        match given.parse::<Spec>() {
            Ok(spec) => {
                let shown = spec.to_string();
                prop_assert_eq!(&shown.parse::<Spec>().unwrap().to_string(), &shown);
                if spec.description().name != "container" {
                    prop_assert_eq!(shown, given);
                }
            }
            Err(error) => prop_assert!(!error.to_string().contains(char::is_control)),
        }
    }
}
