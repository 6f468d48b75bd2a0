//! Starting environments with their settings.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;

use rustix::process::geteuid;
use tollgate_environments::{Cleanup, Environment, Spec};
use tollgate_model::traced::Ended;
use tollgate_os::process;

use crate::leftovers::{Groups, Watched};
use crate::program::heard;

fn cleanup() -> Cleanup {
    Cleanup::begin().unwrap()
}

/// Starts an environment and returns what its agent reports about itself.
fn said(spec: &str) -> Result<String, String> {
    let cleanup = cleanup();
    let spec = spec.parse().map_err(|error: tollgate_environments::SpecError| error.to_string())?;
    let mut environment =
        Environment::prepare(&spec, &cleanup, &|| false).map_err(|error| error.to_string())?;
    // Every start works like the first.
    for _ in 0..2 {
        let link = environment.start().map_err(|error| error.to_string())?;
        drop(link);
    }
    let mut link = environment.start().map_err(|error| error.to_string())?;
    let answer = heard(&mut File::from(link.from));
    drop(link.to);
    answer.map_err(|_| {
        // A dead process's last words are in the file once it has ended.
        drop(environment);
        (link.said)().unwrap_or_default()
    })
}

pub fn the_host_has_its_settings() {
    let plain = said("host").unwrap();
    assert!(plain.contains(" seccomp ") && plain.ends_with("personality 00000000\n"), "{plain}");
    let spec = "host:nice=7,sched=batch,setarch=-R,env.TOLLGATE_TEST_X=y z,seccomp=default";
    let set = said(spec).unwrap();
    let wanted =
        format!("file there nice 7 policy 3 seccomp 2 x y z words --as {spec}\npersonality 00040000\n");
    assert_eq!(set, wanted);
    match said("host:nice=-3,sched=rr") {
        Ok(set) => assert!(set.starts_with("file there nice -3 policy 2 "), "{set}"),
        Err(error) => println!("skipped: {error}"),
    }
    let own = said("host:sched=idle,seccomp=none,dir=/tmp").unwrap();
    assert!(own.contains(" policy 5 ") && own.contains(" --dir /tmp"), "{own}");
}

pub fn settings_that_cannot_be_had_are_named() {
    let refused = |spec: &str| said(spec).unwrap_err();
    let processor = refused("host:cpu=100000");
    assert!(processor.starts_with("this process may run on the processors "), "{processor}");
    assert_eq!(refused("host:dir=/no/such/directory"), "/no/such/directory: No such file or directory");
    assert_eq!(refused("host:dir=/etc/passwd"), "/etc/passwd is not a directory");
    for (spec, sentence) in [
        ("host:nice=-3", "nice=-3 needs root or a higher `ulimit -e`"),
        ("host:sched=fifo", "sched=fifo needs root or a higher `ulimit -r`"),
    ] {
        match refused_to_others(spec) {
            Some(refused) => assert_eq!(refused, sentence),
            None => println!("skipped: {spec} is within the limits of every user here (setrlimit(2))"),
        }
    }
}

/// Why a user other than root does not get these settings; `None` if it gets them.
fn refused_to_others(spec: &str) -> Option<String> {
    let spec: Spec = spec.parse().unwrap();
    let (mut from, mut to) = std::io::pipe().unwrap();
    let mut child = process::fork_bound(|| {
        let other = rustix::process::Uid::from_raw(65_534);
        // Root has the settings without this.
        if geteuid().is_root() && rustix::thread::set_thread_res_uid(other, other, other).is_err() {
            return 1;
        }
        let answer = spec.apply().and_then(Result::err).map(|error| error.to_string()).unwrap_or_default();
        i32::from(to.write_all(answer.as_bytes()).is_err())
    })
    .unwrap();
    drop(to);
    let mut answer = String::new();
    from.read_to_string(&mut answer).unwrap();
    assert_eq!(child.wait().unwrap(), Ended::Exit(0));
    Some(answer).filter(|answer| !answer.is_empty())
}

/// A prefix that accepts only some words as programs.
fn only(pattern: &str, place: &Watched) -> String {
    let script = place.path().join("only");
    let text = format!(
        "#!/bin/sh\ncase \"$1\" in {pattern}) exec \"$@\";; esac\necho \"$1: not here\" >&2\nexit 127\n"
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    format!("exec:{}", script.display())
}

pub fn a_prefix_is_reached_in_three_ways() {
    let place = Watched::new();
    let nice = (rustix::process::getpriority_process(None).unwrap() + 3).min(19);
    assert!(said("exec:nice -n 3").unwrap().starts_with(&format!("file there nice {nice} ")));
    assert!(said("exec:env TOLLGATE_TEST_X='a b'").unwrap().contains(" x a b "));
    // The program is in an image: a directory of PATH.
    let named = place.path().join("tollgate");
    fs::copy(crate::program::own(), &named).unwrap();
    let path = format!("{}:{}", place.path().display(), std::env::var("PATH").unwrap());
    let spec = only("tollgate", &place).replace("exec:", &format!("exec:env PATH='{path}' "));
    assert!(said(&spec).unwrap().contains(" words \n"));
    fs::remove_file(named).unwrap();
    // A shell gets a copy, which removes itself.
    let copied = only("sh", &place).replace("exec:", &format!("exec:env TMPDIR={} ", place.path().display()));
    assert!(said(&copied).unwrap().starts_with("file gone "));
    // This also works if a second shell parses the joined words.
    let joined = place.path().join("joined");
    fs::write(&joined, "#!/bin/sh\ncase \"$1\" in sh) exec sh -c \"$*\";; esac\nexit 127\n").unwrap();
    fs::set_permissions(&joined, fs::Permissions::from_mode(0o755)).unwrap();
    let spec = format!("exec:env TMPDIR={} {}", place.path().display(), joined.display());
    assert!(said(&spec).unwrap().starts_with("file gone "));
    fs::remove_file(joined).unwrap();
    fs::remove_file(place.path().join("only")).unwrap();
    assert_eq!(place.left(&Groups::default()), [""; 0]);
}

pub fn another_machine_gets_a_copy() {
    let place = Watched::new();
    let programs = tempfile::tempdir().unwrap();
    let ssh = programs.path().join("ssh");
    let text = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\n[ \"$2\" = user@machine ] || { echo \"ssh: no $2\" >&2; exit 255; }\n\
        shift 2\nexec sh -c \"$*\"\n";
    fs::write(&ssh, text).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let before = std::env::var("PATH").unwrap();
    let set = |name: &str, value: &str| {
        // SAFETY: this program has one thread.
        unsafe { std::env::set_var(name, value) }
    };
    set("PATH", &format!("{}:{before}", programs.path().display()));
    set("TMPDIR", place.path().to_str().unwrap());
    let (right, wrong) = (said("ssh:user@machine"), said("ssh:nowhere"));
    set("PATH", "/no/such/directory");
    // The usual directories are searched after PATH.
    let missing = tollgate_os::programs::find("ssh").is_none().then(|| said("ssh:user@machine"));
    set("PATH", &before);
    set("TMPDIR", "/tmp");
    assert!(right.unwrap().starts_with("file gone "));
    assert_eq!(wrong.unwrap_err(), "the command ended before an agent answered: ssh: no nowhere");
    match missing {
        Some(missing) => assert_eq!(
            missing.unwrap_err(),
            "ssh: there is no such program; it is in the package openssh-client"
        ),
        None => println!("skipped: this machine has an ssh of its own"),
    }
    assert_eq!(place.left(&Groups::default()), [""; 0]);
}

pub fn containers_start() {
    for spec in ["container:runtime=bwrap", "container:runtime=runc", "container", "gvisor"] {
        match said(spec) {
            Ok(said) => assert!(said.contains("policy 0"), "{spec}: {said}"),
            Err(error) => println!("skipped: {spec}: {error}"),
        }
    }
}
