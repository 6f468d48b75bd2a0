use proptest::prelude::*;

use super::*;

fn of(given: &str) -> Spec {
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
        "host:seccomp=/etc/profile.json",
        "host:seccomp=none",
        "container",
        "container:runtime=runc,seccomp=none",
        "container:seccomp=./profile.json",
        "gvisor",
        "gvisor:platform=systrap",
        "vm",
        "vm:exact",
        "vm:kernel=/boot/vmlinuz,append=mitigations=off quiet,cpus=2,memory=512M,accel=tcg,vmm=microvm,cache=none,on=ram:xfs,exact",
        "ssh:user@machine",
        "exec:docker run -i --rm image",
        "exec: sh -c 'exec \"$0\" \"$@\"', ",
    ] {
        assert_eq!(of(given).to_string(), given);
        assert_eq!(of(&of(given).to_string()), of(given));
    }
}

#[test]
fn settings_are_found() {
    let Spec::Host(host) = of("host:env.A=1,cpu=3,env.B=2,dir=files") else { unreachable!() };
    assert_eq!((host.cpu(), host.dir()), (Some(3), Some(std::path::Path::new("files"))));
    assert_eq!(host.variables().collect::<Vec<_>>(), [("A", "1"), ("B", "2")]);
    let Spec::Exec(exec) = of("exec:ssh -p 22 'a b',c") else { unreachable!() };
    assert_eq!(exec.words(), ["ssh", "-p", "22", "a b,c"]);
    assert_eq!(of("container:seccomp=default"), of("container"));
}

#[test]
fn a_refusal_is_a_sentence_that_says_what_would_be_right() {
    let cases = [
        (
            "",
            "the kind of the environment is missing: there are host, container, gvisor, vm, ssh:HOST and exec:PREFIX",
        ),
        (
            "hots",
            "hots: there is no environment hots (did you mean host?): there are host, container, gvisor, vm, ssh:HOST and \
             exec:PREFIX",
        ),
        (
            "docker",
            "docker: there is no environment docker: there are host, container, gvisor, vm, ssh:HOST and exec:PREFIX",
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
        ("host:seccomp=", "host:seccomp=: seccomp is default, none or a profile's file"),
        (
            "host:",
            "host:: after host: stand pairs key=value with commas between them; its keys are cpu, dir, env.NAME, nice, sched, \
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
            "vm:x=1: vm has no key x; its keys are kernel, append, cpus, memory, accel, vmm, cache, on and exact",
        ),
        (
            "vm:exat",
            "vm:exat: vm has no key exat (did you mean exact?); its keys are kernel, append, cpus, memory, accel, vmm, cache, on \
             and exact",
        ),
        ("vm:exact=1", "vm:exact=1: the key exact has no value: write exact alone"),
        ("vm:exact,exact", "vm:exact,exact: the key exact is given twice"),
        ("gvisor:x=1", "gvisor:x=1: gvisor has no key x; its key is platform"),
        ("ssh", "ssh: after ssh: stands a host as ssh(1) takes it, such as ssh:user@machine"),
        (
            "ssh:-oProxyCommand=x",
            "ssh:-oProxyCommand=x: after ssh: stands a host as ssh(1) takes it, such as ssh:user@machine",
        ),
        ("exec: ", "exec: : after exec: stands a command that runs a program, such as exec:'nice -n 5'"),
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
                prop_assert_eq!(shown.parse::<Spec>().unwrap(), spec.clone());
                if !matches!(spec, Spec::Container(_)) {
                    prop_assert_eq!(shown, given);
                }
            }
            Err(error) => prop_assert!(!error.to_string().contains(char::is_control)),
        }
    }
}
