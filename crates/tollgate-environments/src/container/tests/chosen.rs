//! Choosing a runtime, and the options of each.

use super::*;

fn agent() -> Agent {
    Agent::with(&["--dir".into(), WORK.into()]).unwrap()
}

fn asked(runtime: Option<Runtime>, seccomp: Seccomp) -> Container {
    Container { runtime, seccomp }
}

fn words(prepared: &Prepared) -> Vec<String> {
    prepared.command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

fn with_private<T>(run: impl FnOnce(Paths<'_>, &Cleanup) -> T) -> T {
    let cleanup = Cleanup::begin().unwrap();
    let (path, removed) = private();
    let _removed = cleanup.promise(&[removed]).unwrap();
    run(Paths { private: &path, work: None }, &cleanup)
}

#[test]
fn the_first_that_works_is_taken_or_each_has_its_reason() {
    with_private(|paths, cleanup| {
        let first = Runtime::ALL.into_iter().find(|runtime| works(runtime.name(), paths.private, cleanup));
        match (prepare(&asked(None, Seccomp::None), &agent(), paths, cleanup, &|| false), first) {
            (Ok(prepared), Some(runtime)) => {
                let program = runtime.find().unwrap().display().to_string();
                assert!(words(&prepared).contains(&program), "{prepared:?}");
            }
            (Err(why), None) => {
                let why = why.to_string();
                assert!(why.starts_with("no container runtime works here (bwrap: "), "{why}");
                assert!(why.contains("; docker: ") && why.contains("; nspawn: "), "{why}");
            }
            other => panic!("{other:?}"),
        }
        let stopped = prepare(&asked(None, Seccomp::None), &agent(), paths, cleanup, &|| true);
        if first.is_some() {
            assert_eq!(stopped.unwrap_err(), EnvironmentError::Interrupted);
        }
    });
}

#[test]
fn a_filter_is_given_in_the_form_of_the_runtime() {
    with_private(|paths, cleanup| {
        let file = paths.private.join("profile.json");
        std::fs::write(&file, "{}").unwrap();
        for runtime in Runtime::ALL {
            let of = |seccomp| prepare(&asked(Some(runtime), seccomp), &agent(), paths, cleanup, &|| false);
            let config = || {
                let id = Order::new(&file, &[], paths, runtime.name(), &Seccomp::None).id;
                let text =
                    std::fs::read_to_string(paths.private.join(id).join("bundle/config.json")).unwrap();
                serde_json::from_str::<serde_json::Value>(&text).unwrap()
            };
            let usual = of(Seccomp::Default);
            let Ok(prepared) = &usual else {
                println!("skipped: {}", usual.unwrap_err());
                continue;
            };
            let given = words(prepared).join(" ");
            let with_file = of(Seccomp::File(file.clone()));
            if !matches!(runtime, Runtime::Podman | Runtime::Docker) {
                let why = with_file.as_ref().unwrap_err().to_string();
                assert_eq!(
                    why,
                    format!(
                        "{runtime}: it takes no profile from a file; runtime=podman and runtime=docker do"
                    )
                );
            }
            match runtime {
                Runtime::Bwrap => {
                    assert!(given.contains(" --seccomp 9 -- /tollgate agent --dir /work"), "{given}")
                }
                Runtime::Runc | Runtime::Crun => {
                    assert_eq!(config()["linux"]["seccomp"]["defaultAction"], "SCMP_ACT_ALLOW");
                    assert_eq!(config()["process"]["args"][3], "/work");
                    of(Seccomp::None).unwrap();
                    assert!(config()["linux"].get("seccomp").is_none());
                }
                Runtime::Nspawn => {}
                Runtime::Podman | Runtime::Docker => {
                    let option = format!("--security-opt=seccomp={}", file.display());
                    let given = words(&with_file.unwrap()).join(" ");
                    assert!(given.contains(&option), "{given}");
                    let none = words(&of(Seccomp::None).unwrap()).join(" ");
                    assert!(none.contains("--security-opt=seccomp=unconfined"), "{none}");
                }
            }
        }
    });
}

#[test]
fn messages_lose_the_names_before_them() {
    assert_eq!(reason("podman: Error: no such file: x"), "no such file: x");
    assert_eq!(reason("crun: cgroups in hybrid mode"), "cgroups in hybrid mode");
    assert_eq!(reason("plain"), "plain");
}

#[test]
fn names_are_those_of_hosts_and_cgroups() {
    let paths = Paths { private: Path::new("/tmp/.tollgate-12-00ff"), work: None };
    let order = Order::new(Path::new("/x"), &[], paths, "runc", &Seccomp::None);
    assert_eq!(order.id, "tollgate-12-00ff-runc");
    let paths = Paths { private: Path::new("/tmp/a b:c"), work: None };
    assert_eq!(Order::new(Path::new("/x"), &[], paths, "runc", &Seccomp::None).id, "tollgate-abc-runc");
}

#[test]
fn a_path_that_would_be_divided_is_not_given() {
    with_private(|paths, _| {
        for (name, is_given) in [("work", true), ("wo:rk", false), ("wo,rk", false)] {
            let work = paths.private.join(name);
            std::fs::create_dir(&work).unwrap();
            let order =
                Order::new(Path::new("/x"), &[], Paths { work: Some(&work), ..paths }, "t", &Seccomp::None);
            assert_eq!(order.work().unwrap() == work, is_given, "{name}");
        }
    });
}
