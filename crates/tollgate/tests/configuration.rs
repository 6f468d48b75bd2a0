//! Options from configuration files: which file is read, which value counts, and what is refused.

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, chown};

use crate::common;
use common::{Home, one_line, row};
use serde_json::Value;

/// The user's file of a home whose XDG_CONFIG_HOME is `config`.
const USER: &str = "config/tollgate/config.toml";

fn said(home: &Home, words: &[&str]) -> (String, String) {
    let mut command = home.tollgate(words.iter().copied());
    let output =
        command.env("XDG_CONFIG_HOME", home.path().join("config")).assert().success().get_output().clone();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr))
}

fn refusal(home: &Home, words: &[&str]) -> String {
    let mut command = home.tollgate(words.iter().copied());
    command.env("XDG_CONFIG_HOME", home.path().join("config"));
    one_line(&command.assert().code(2).stdout("").get_output().stderr.clone())
}

fn after_the_file(said: &str) -> &str {
    said.split_once("tollgate.toml").expect("the file's name").1
}

fn listed(home: &Home, words: &[&str]) -> (bool, Vec<String>) {
    let (list, _) = said(home, words);
    match serde_json::from_str::<Value>(&list) {
        Ok(json) => {
            let all = json["benchmarks"].as_array().expect("benchmarks").iter();
            (true, all.map(|one| one["name"].as_str().expect("a name").to_owned()).collect())
        }
        Err(_) => {
            let names = list.lines().filter_map(|line| line.strip_prefix("  "));
            (false, names.filter(|name| !name.starts_with(' ')).map(str::to_owned).collect())
        }
    }
}

#[test]
fn what_is_typed_wins_over_the_project_and_that_over_the_user() {
    let home = Home::new();
    home.file(USER, "[list]\nformat = 'text'\npattern = ['locks/killed']\n[doctor]\nformat = 'json'\n");
    let one = |is_json: bool, name: &str| (is_json, vec![name.to_owned()]);
    assert!(said(&home, &["doctor"]).0.starts_with('{'));
    assert_eq!(listed(&home, &["list"]), one(false, "locks/killed"));
    let (is_json, all) = listed(&home, &["list", "--no-config"]);
    assert!(!is_json && all.len() > 1, "{all:?}");
    home.file("tollgate.toml", "[list]\nformat = 'json' # as CI reads it\n");
    assert_eq!(listed(&home, &["list"]), one(true, "locks/killed"));
    let typed = ["list", "--format", "text", "entry/syscall"];
    assert_eq!(listed(&home, &typed), one(false, "entry/syscall"));
    // `--json` conflicts with `--format`, and with a format from a file.
    home.file("tollgate.toml", "[list]\nformat = 'text'\n");
    assert!(said(&home, &["list", "--json"]).0.starts_with('{'));
    let named = home.file("ci.toml", "color = 'never'\n[list]\nformat = 'json'\npattern = 'entry/syscall'\n");
    assert_eq!(listed(&home, &["--config", &named, "list"]), one(true, "entry/syscall"));
}

#[test]
fn an_option_that_the_verb_has_no_use_for_is_left_out() {
    let home = Home::new();
    // Without several environments --threshold and --fail-on are refused if they are typed.
    home.file(
        USER,
        "[run]\nthreshold = '2%'\nfail-on = ['slower']\ndir = '/nonexistent'\ntime = 10\nthorough = false\n",
    );
    let (run, _) = said(&home, &["run", "entry/call", "--processes", "1", "--quiet", "--format", "json"]);
    let run: Value = serde_json::from_str(&run).expect("JSON");
    assert_eq!(row(&run, "entry/call")["status"], "measured");
}

#[test]
fn a_required_argument_can_come_from_a_file() {
    let home = Home::new();
    home.keep(&common::document("20200101-000000-00000001", Some("before"), 1.0));
    home.keep(&common::document("20200101-000001-00000002", Some("after"), 1.5));
    home.file(
        USER,
        "[compare]\nbase = 'before'\nall = true\n[report]\nrun = ['before', 'after']\nformat = 'md'\n",
    );
    assert_eq!(
        refusal(&home, &["compare", "--no-config"]),
        "the following required arguments were not provided: <BASE>"
    );
    assert_eq!(
        refusal(&home, &["compare"]),
        "before is a single run; name another run to compare with it, or a session of several environments"
    );
    let compared = said(&home, &["compare", "before", "after", "--format", "json"]).0;
    let compared: Value = serde_json::from_str(&compared).expect("JSON");
    assert_eq!(
        (&compared["base"]["label"], &compared["others"][0]["label"]),
        (&"before".into(), &"after".into())
    );
    let report = said(&home, &["report"]).0;
    assert_eq!(report.lines().next(), Some("# after compared with before"));
    // Changed rows come first, the largest change before all others: the order depends on the machine.
    let rows = report.lines().filter_map(|line| line.strip_prefix("| entry/")?.split(' ').next());
    assert_eq!(rows.collect::<BTreeSet<_>>(), ["call", "syscall", "user-dispatch"].into());
}

#[test]
fn what_is_found_writes_nowhere_and_what_is_named_does() {
    let home = Home::new();
    let stored = home.path().join("stored");
    let path = home.file("tollgate.toml", format!("[run]\nstore = '{}'\nquick = true\n", stored.display()));
    let run = ["run", "entry/call", "--processes", "1", "--quiet"];
    let (_, said_found) = said(&home, &run);
    assert!(said_found.starts_with("tollgate: not taken from "), "{said_found}");
    assert_eq!(
        after_the_file(&said_found),
        ", which was found, not named: store; `--config FILE` takes everything from a file\n"
    );
    assert!(!stored.exists());
    let (_, said_named) = said(&home, &[&["--config", &path], &run[..]].concat());
    assert!(said_named.is_empty() && stored.is_dir(), "{said_named}");
    std::fs::rename(&path, home.file(USER, "")).expect("renamed");
    std::fs::remove_dir_all(&stored).expect("removed");
    said(&home, &run);
    assert!(stored.is_dir());
}

/// Settings not taken from a found file, by the line that says so.
fn not_taken(said: &str) -> Option<&str> {
    let line = said.lines().find(|line| line.starts_with("tollgate: not taken from "))?;
    after_the_file(line).strip_prefix(", which was found, not named: ")?.split("; `--config FILE`").next()
}

#[test]
fn a_found_file_adds_no_command_to_one_that_is_typed() {
    let home = Home::new();
    let path =
        home.file("tollgate.toml", "[versus]\nparameter-list = ['HOME', '(touch executed; echo /)']\n");
    let typed = ["versus", "--runs", "1", "--no-trace", "echo ${HOME}", "true"];
    let (shown, said_found) = said(&home, &typed);
    assert_eq!(not_taken(&said_found), Some("parameter-list"));
    let executed = home.path().join("executed");
    assert!(shown.contains("echo ${HOME}") && !executed.exists(), "{shown}");
    said(&home, &[&["--config", &path], &typed[..]].concat());
    assert!(executed.exists(), "a file that is named gives all");
}

#[test]
fn a_found_file_deletes_opens_hides_and_prolongs_nothing() {
    let home = Home::new();
    home.keep(&common::document("20200101-000000-00000001", Some("before"), 1.0));
    home.keep(&common::document("20200101-000001-00000002", Some("after"), 1.5));
    let found = "[run]\ntime = '24h'\non = 'loop'\nmachine = 'm'\npattern = 'workloads'\nstore = 'stored'\n\
        [versus]\nwarmup = 4294967295\nmax-runs = 1\nexit-undecided = 0\n[compare]\nexit-undecided = 0\n\
        [runs.delete]\nrun = 'last'\n[report]\nopen = true\n\
        [claims]\nas-published = true\n[lab]\non = 'qemu'\n[trace]\nlabel = 'x'\n[decode]\ninput = 'secret'\n";
    home.file("tollgate.toml", found);
    let shown: Value = serde_json::from_str(&said(&home, &["config", "--json"]).0).expect("JSON");
    let settings = shown["settings"].as_array().expect("settings");
    assert_eq!(settings.len(), found.matches(" = ").count());
    assert!(settings.iter().all(|one| one["counts"] == false), "{shown}");
    // The run ends, and is kept at the usual place.
    let (_, said_found) = said(&home, &["run", "entry/call", "--processes", "1"]);
    assert_eq!(not_taken(&said_found), Some("time (more than 10m), on, machine, store"));
    let (_, said_found) = said(&home, &["versus", "--runs", "1", "true", ":"]);
    assert_eq!(not_taken(&said_found), Some("warmup, max-runs, exit-undecided"));
    assert_eq!(not_taken(&said(&home, &["trace", "true"]).1), Some("label"));
    assert!(said(&home, &["claims", "direct-io-buffer-2017"]).1.contains(": as-published;"));
    let (_, said_found) = said(&home, &["report", "before", "--out", "page.html"]);
    assert_eq!(not_taken(&said_found), Some("open"));
    // Files that it would delete must stay.
    let delete = home.tollgate(["runs", "delete"]).assert().code(2).get_output().stderr.clone();
    assert!(String::from_utf8(delete).expect("text").contains("not provided: <RUN>"));
    let runs = home.json(["runs", "--format", "json"]);
    assert_eq!(runs["runs"].as_array().expect("runs").len(), 3, "two that were kept, and that of run");
}

#[test]
fn a_found_file_decides_no_exit_status() {
    let home = Home::new();
    let before = common::document("20200101-000001-00000001", Some("before"), 1.0);
    home.keep_others_like(&before);
    home.keep(&before);
    home.keep(&common::document("20200101-000001-00000002", Some("after"), 1.5));
    home.file("tollgate.toml", "[compare]\nthreshold = '1000%'\nall = true\n");
    let compare = ["compare", "before", "after"];
    let slower = |home: &Home, words: &[&str]| {
        let mut command = home.tollgate([&compare[..], words].concat());
        let output = command.env("XDG_CONFIG_HOME", home.path().join("config")).output().expect("executed");
        (output.status.code(), String::from_utf8(output.stderr).expect("text"))
    };
    assert_eq!(slower(&home, &[]), (Some(0), String::new()));
    let (status, said) = slower(&home, &["--fail-on", "slower"]);
    assert_eq!((status, not_taken(&said)), (Some(1), Some("threshold (the exit status depends on it)")));
    // Likewise if the user's own file sets `fail-on`; then its threshold counts.
    home.file(USER, "[compare]\nfail-on = ['slower']\nthreshold = '5%'\n");
    let (status, said) = slower(&home, &[]);
    assert_eq!((status, not_taken(&said)), (Some(1), Some("threshold (the exit status depends on it)")));
    home.file(USER, "[compare]\nfail-on = ['slower']\nthreshold = '1000%'\n");
    assert_eq!(slower(&home, &[]).0, Some(0));
}

#[test]
fn a_budget_is_a_table_of_a_file_that_is_named() {
    let home = Home::new();
    let path = home.file("tollgate.toml", "[versus.budget]\nfaults = 1\nopenat = 100_000\n");
    let call = ["versus", "--runs", "2", "--quiet", "true"];
    let (_, said_found) = said(&home, &call);
    assert_eq!(not_taken(&said_found), Some("budget"));
    let output = home.tollgate([&["--config", &path], &call[..]].concat()).output().expect("executed");
    let said_named = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{said_named}");
    assert!(said_named.starts_with("tollgate: A is over budget: faults "), "{said_named}");
    let shown: Value =
        serde_json::from_str(&said(&home, &["--config", &path, "config", "--json"]).0).expect("JSON");
    assert_eq!(shown["settings"][0]["value"], serde_json::json!(["faults=1", "openat=100000"]), "{shown}");
    assert_eq!(
        (&shown["settings"][0]["table"], &shown["settings"][0]["key"]),
        (&"versus".into(), &"budget".into())
    );
}

#[test]
fn an_environment_of_a_project_is_said_and_never_the_users() {
    let home = Home::new();
    home.file("evil", "#!/bin/sh\ntouch executed\nexec \"$@\"\n");
    let evil = home.path().join("evil");
    std::fs::set_permissions(&evil, std::fs::Permissions::from_mode(0o755)).expect("set");
    let executed = home.path().join("executed");
    let path = home.file(
        "tollgate.toml",
        format!("[environments]\nbase = 'exec:{}'\nniced = 'host:nice=18'\n", evil.display()),
    );
    let run = |name: &'static str| ["run", "entry/call", "--processes", "1", "--quiet", "--in", name];
    let refused = refusal(&home, &run("base"));
    assert!(
        refused.contains(&format!("tollgate.toml:2 says exec:{}, but a file that was found", evil.display()))
            && refused.contains("may not set exec:PREFIX; `--config FILE` takes"),
        "{refused}"
    );
    // Its own name for words and numbers is accepted, also after a label, and reported.
    for name in ["niced", "old=niced"] {
        let (_, said) = said(&home, &run(name));
        assert!(said.starts_with("tollgate: niced is host:nice=18, by "), "{said}");
        assert_eq!(after_the_file(&said), ":3\n");
    }
    // The user's meaning has precedence, and needs no report.
    home.file(USER, "[environments]\nbase = 'host'\nniced = 'host:nice=19'\n");
    for name in ["base", "niced"] {
        assert_eq!(said(&home, &run(name)).1, "");
    }
    assert!(!executed.exists());
    let shown: Value = serde_json::from_str(&said(&home, &["config", "--json"]).0).expect("JSON");
    assert!(
        shown["settings"].as_array().expect("settings").iter().all(|one| one["counts"] == true),
        "{shown}"
    );
    // A file that is named on the command line may set anything.
    said(&home, &[&["--config", &path], &run("base")[..]].concat());
    assert!(executed.exists());
}

#[test]
fn words_that_are_taken_for_kinds_are_no_names() {
    let home = Home::new();
    for name in [
        "docker", "podman", "runc", "qemu", "kvm", "ssh", "exec", "native", "local", "lxc", "sandbox", "WSL",
        "host",
    ] {
        for file in ["tollgate.toml", USER] {
            home.file("tollgate.toml", "");
            home.file(file, format!("[environments]\n{name} = 'host:nice=19'\n"));
            let refused = refusal(&home, &["list"]);
            assert!(
                refused.contains(&format!(":2: {name} would be taken for a kind of environments")),
                "{refused}"
            );
        }
        home.file(USER, "");
    }
}

#[test]
fn environments_have_names() {
    let home = Home::new();
    home.file("tollgate.toml", "[environments]\nplain = 'host'\nniced = \"host:nice=19\"\n");
    let run = [
        "run",
        "entry/call",
        "--in",
        "plain",
        "--in",
        "other=niced",
        "--processes",
        "1",
        "--quiet",
        "--format",
        "json",
    ];
    said(&home, &run);
    let runs = home.json(["runs", "--format", "json"]);
    let mut names: Vec<&str> = runs["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .filter_map(|run| run["session"]["environment"].as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["other", "plain"]);
    let whys = ["host = 'container'", "'a b' = 'host'", "a = 'hots'", "a = 1"].map(|line| {
        home.file("tollgate.toml", format!("[environments]\n{line}\n"));
        after_the_file(&refusal(&home, &["list"])).to_owned()
    });
    insta::assert_snapshot!("wrong-environments", whys.join("\n"));
}

#[test]
fn the_nearest_file_of_the_work_tree_is_read() {
    let home = Home::new();
    let inner = home.path().join("tree/a/b");
    std::fs::create_dir_all(&inner).expect("made");
    home.file("tollgate.toml", "[list]\nformat = 'json'\n");
    let list = |what: &str| {
        let mut command = home.tollgate(["list", "entry/syscall"]);
        let output = command.current_dir(&inner).assert().success().get_output().stdout.clone();
        println!("{what}");
        output.starts_with(b"{")
    };
    assert!(!list("outside of a work tree the current directory alone counts"));
    std::fs::create_dir(home.path().join("tree/.git")).expect("made");
    assert!(!list("above the work tree nothing counts"));
    home.file("tree/tollgate.toml", "[list]\nformat = 'json'\n");
    assert!(list("the root of the work tree counts"));
    home.file("tree/a/tollgate.toml", "[list]\nformat = 'text'\n");
    assert!(!list("a nearer one wins"));
}

#[test]
fn what_is_wrong_is_one_sentence_with_file_and_line() {
    let home = Home::new();
    let mut whys = String::new();
    for text in [
        "[run]\ntiem = 10\n",
        "[rnu]\ntime = 10\n",
        "[agent]\nas = 'host'\n",
        "[store.lst]\nformat = 'json'\n",
        "colour = 'never'\n",
        "config = 'x'\n",
        "[run]\nxyzzy = 1\n",
        "[man]\nx = 1\n",
        "[run]\ntime = 'soon'\n",
        "[list]\nformat = 'jsn'\n",
        "[run]\nquick = 1\n",
        "[run]\ntime = true\n",
        "[run]\ntime = [1, 2]\n",
        "[list]\npattern = ['--json']\n",
        "[trace]\ncommand = ['true']\n",
        "[run]\ntime = 10\ntime = 20\n",
        "[run\n",
        "[versus.budget]\nopneat = 1\n",
        "[versus.budget]\ncalls = true\n",
        "[run.knob]\nx = 1\n",
    ] {
        home.file("tollgate.toml", text);
        let [list, config] = ["list", "config"].map(|verb| refusal(&home, &[verb]));
        assert_eq!(list, config);
        whys += &format!("{text:?}\n{}\n", after_the_file(&list));
        said(&home, &["list", "--no-config"]);
    }
    insta::assert_snapshot!("wrong", whys);
    home.file("tollgate.toml", b"[run]\ntime = '\xff'\n");
    assert!(refusal(&home, &["list"]).ends_with("tollgate.toml is not UTF-8"));
    home.file("tollgate.toml", "#".repeat(1 << 20));
    let why = refusal(&home, &["list"]);
    assert_eq!(after_the_file(&why), " has more than 65536 bytes, the limit for such a file");
    std::fs::remove_file(home.path().join("tollgate.toml")).expect("removed");
    std::fs::create_dir(home.path().join("tollgate.toml")).expect("made");
    assert_eq!(after_the_file(&refusal(&home, &["list"])), " cannot be read: Is a directory");
    let why = refusal(&home, &["--config", "nothing.toml", "list"]);
    assert_eq!(why, "--config nothing.toml: No such file or directory");
}

#[test]
fn a_file_that_another_user_can_have_written_is_not_read() {
    let home = Home::new();
    let path = home.file("tollgate.toml", "[list]\nformat = 'json'\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("set");
    let found = std::fs::canonicalize(&path).expect("it is there").display().to_string();
    let (list, warned) = said(&home, &["list", "entry/syscall"]);
    assert!(!list.starts_with('{'));
    let why = format!("{found} may be written by others (mode 0666)");
    assert_eq!(warned, format!("tollgate: {found} is not read: {why}\n"));
    let shown: Value = serde_json::from_str(&said(&home, &["config", "--json"]).0).expect("JSON");
    assert_eq!((&shown["files"][0]["values"], &shown["files"][0]["why"]), (&Value::Null, &why.into()));
    if !common::is_root() {
        println!("skipped in part: needs root (to give a file to another user)");
        return;
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("set");
    chown(&path, Some(54_321), None).expect("given");
    let (list, warned) = said(&home, &["list", "entry/syscall"]);
    assert!(!list.starts_with('{'));
    assert_eq!(warned, format!("tollgate: {found} is not read: {found} belongs to uid 54321\n"));
    assert!(said(&home, &["--config", &path, "list", "entry/syscall"]).0.starts_with('{'));
}

#[test]
fn config_shows_the_values_that_count_and_where_they_come_from() {
    let home = Home::new();
    home.file(
        USER,
        "color = 'never'\n[run]\ntime = 20\nstore = '/srv/runs'\n[environments]\nbase = 'host'\n",
    );
    home.file("tollgate.toml", "[run]\ntime = 10\nout = 'x'\n[store.list]\nformat = 'json'\n");
    let shown: Value = serde_json::from_str(&said(&home, &["config", "--json"]).0).expect("JSON");
    let origins: Vec<_> =
        shown["files"].as_array().expect("files").iter().map(|file| file["origin"].clone()).collect();
    assert_eq!(origins, ["project", "user"]);
    let settings = shown["settings"].as_array().expect("settings");
    let of = |table: &str, key: &str| {
        let found = settings.iter().find(|one| one["table"] == table && one["key"] == key);
        found.unwrap_or_else(|| panic!("{table} {key}: {shown}"))
    };
    assert_eq!(of("run", "time")["value"], 10);
    assert!(of("run", "time")["from"].as_str().is_some_and(|from| from.ends_with("tollgate.toml:2")));
    assert_eq!((&of("run", "store")["counts"], &of("run", "out")["counts"]), (&true.into(), &false.into()));
    assert_eq!(of("environments", "base")["value"], "host");
    assert_eq!(of("store.list", "format")["value"], "json");
    assert_eq!(of("", "color")["value"], "never");
    let (text, _) = said(&home, &["config"]);
    // The line breaks depend on the length of this home's path.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("[store.list] format \"json\" "), "{text}");
    assert!(
        words.contains("not taken from a file that was found, not named; name the file with --config"),
        "{text}"
    );
    let empty = Home::new();
    assert_eq!(said(&empty, &["config"]).0.lines().last(), Some("No value is set."));
}
