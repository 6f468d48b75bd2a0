//! Options from configuration files: which file is read, which value counts, and what is refused.

mod common;

use std::os::unix::fs::{PermissionsExt, chown};

use common::{Home, one_line};

/// The user's file of a home whose XDG_CONFIG_HOME is `config`.
const USER: &str = "config/tollgate/config.toml";

/// What a verb prints on success, and what it says.
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

#[test]
fn what_is_typed_wins_over_the_project_and_that_over_the_user() {
    let home = Home::new();
    home.file(USER, "[list]\nformat = 'text'\npattern = ['locks']\n[doctor]\nformat = 'json'\n");
    assert!(said(&home, &["doctor"]).0.starts_with('{'));
    assert!(said(&home, &["list"]).0.contains("locks/"));
    assert!(!said(&home, &["list", "--no-config"]).0.starts_with('{'));
    home.file("tollgate.toml", "[list]\nformat = 'json' # as CI reads it\n");
    let (project, _) = said(&home, &["list"]);
    assert!(project.starts_with('{') && project.contains("locks/") && !project.contains("entry/syscall"));
    let (typed, _) = said(&home, &["list", "--format", "text", "entry/syscall"]);
    assert!(!typed.starts_with('{') && typed.contains("entry/syscall") && !typed.contains("locks/"));
    // `--json` cannot stand beside `--format`, nor what a file has of it.
    home.file("tollgate.toml", "[list]\nformat = 'text'\n");
    assert!(said(&home, &["list", "--json"]).0.starts_with('{'));
    let named = home.file("ci.toml", "color = 'never'\n[list]\nformat = 'json'\npattern = 'entry/syscall'\n");
    let (named, _) = said(&home, &["--config", &named, "list"]);
    assert!(
        named.starts_with('{') && named.contains("entry/syscall") && !named.contains("locks/"),
        "{named}"
    );
}

#[test]
fn an_option_that_the_verb_has_no_use_for_is_left_out() {
    let home = Home::new();
    // Without several environments --threshold and --fail-on are refused where they are typed, --keep-days without --every.
    home.file(USER, "[run]\nthreshold = '2%'\nfail-on = ['slower']\nkeep-days = 30\ndir = '/nonexistent'\ntime = 10\nthorough = false\n");
    let (run, _) = said(&home, &["run", "entry/call", "--processes", "1", "--quiet", "--format", "json"]);
    assert!(run.contains("entry/call"));
}

#[test]
fn a_required_argument_can_come_from_a_file() {
    let home = Home::new();
    home.keep(&common::document("20200101-000000-00000001", Some("before"), 1.0));
    home.keep(&common::document("20200101-000001-00000002", Some("after"), 1.5));
    home.file(
        "tollgate.toml",
        "[compare]\nbase = 'before'\nall = true\n[report]\nrun = ['before', 'after']\nformat = 'md'\n",
    );
    assert!(refusal(&home, &["compare", "--no-config"]).contains("BASE"));
    let why = refusal(&home, &["compare"]);
    assert!(!why.contains("BASE"), "the base alone is there: {why}");
    assert!(said(&home, &["compare", "before", "after"]).0.contains("entry/syscall"));
    assert!(said(&home, &["report"]).0.contains("entry/syscall"));
}

#[test]
fn what_is_found_names_nothing_outside_and_what_is_named_does() {
    let home = Home::new();
    let stored = home.path().join("stored");
    let path = home.file("tollgate.toml", format!("[run]\nstore = '{}'\nquick = true\n", stored.display()));
    let run = ["run", "entry/call", "--processes", "1", "--quiet"];
    let (_, said_found) = said(&home, &run);
    assert!(said_found.contains("not taken from") && said_found.contains(": store;"), "{said_found}");
    assert!(!stored.exists());
    let (_, said_named) = said(&home, &[&["--config", &path], &run[..]].concat());
    assert!(said_named.is_empty() && stored.is_dir(), "{said_named}");
    // In the user's own file as well.
    std::fs::rename(&path, home.file(USER, "")).expect("renamed");
    std::fs::remove_dir_all(&stored).expect("removed");
    said(&home, &run);
    assert!(stored.is_dir());
}

#[test]
fn environments_have_names() {
    let home = Home::new();
    home.file("tollgate.toml", "[environments]\nplain = 'host'\nniced = \"host:nice=5\"\n");
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
    let names: Vec<&str> = runs["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .filter_map(|run| run["session"]["environment"].as_str())
        .collect();
    assert!(names.contains(&"plain") && names.contains(&"other"), "{names:?}");
    for (line, why) in [
        ("host = 'container'", "host is a kind of environments"),
        ("'a b' = 'host'", "is no name of an environment"),
        ("a = 'hots'", "did you mean host?"),
        ("a = 1", "the environment a is text"),
    ] {
        home.file("tollgate.toml", format!("[environments]\n{line}\n"));
        let said = refusal(&home, &["list"]);
        assert!(said.contains("tollgate.toml:2: ") && said.contains(why), "{said}");
    }
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
    for (text, why) in [
        ("[run]\ntiem = 10\n", ":2: tiem is no key of [run]; did you mean time?"),
        ("[rnu]\ntime = 10\n", ":2: there is no table [rnu]; did you mean run?"),
        ("[agent]\nas = 'host'\n", ":2: there is no table [agent]; "),
        ("[store.lst]\nformat = 'json'\n", ":2: there is no table [store.lst]; did you mean list?"),
        ("colour = 'never'\n", ":1: colour is no key before the first table; did you mean color?"),
        ("config = 'x'\n", ":1: config is no key before the first table"),
        ("[run]\nxyzzy = 1\n", "; there are pattern, time, "),
        ("[man]\nx = 1\n", "is no key of [man]"),
        ("[run]\ntime = 'soon'\n", "invalid value 'soon' for '--time <DURATION>'"),
        ("[list]\nformat = 'jsn'\n", ":2: invalid value 'jsn' for '--format <FORMAT>'"),
        ("[run]\nquick = 1\n", ":2: quick is true or false"),
        ("[run]\ntime = true\n", ":2: time takes text and numbers"),
        ("[run]\ntime = [1, 2]\n", ":2: time takes one value, and no list"),
        ("[list]\npattern = ['--json']\n", ":2: a value of pattern does not begin with `-`"),
        ("[trace]\ncommand = ['true']\n", "command is no key of [trace]"),
        ("[run]\ntime = 10\ntime = 20\n", ":3: time is there twice"),
        ("[run\n", ":1: a table's name ends with `]`"),
    ] {
        home.file("tollgate.toml", text);
        for verb in ["list", "config"] {
            let said = refusal(&home, &[verb]);
            assert!(said.contains("tollgate.toml") && said.contains(why), "{text:?}: {said}");
        }
        said(&home, &["list", "--no-config"]);
    }
    home.file("tollgate.toml", b"[run]\ntime = '\xff'\n");
    assert!(refusal(&home, &["list"]).ends_with("tollgate.toml is not UTF-8"));
    home.file("tollgate.toml", "#".repeat(1 << 20));
    assert!(refusal(&home, &["list"]).contains("tollgate.toml"));
    std::fs::remove_file(home.path().join("tollgate.toml")).expect("removed");
    std::fs::create_dir(home.path().join("tollgate.toml")).expect("made");
    assert!(refusal(&home, &["list"]).contains("cannot be read: Is a directory"));
    let why = refusal(&home, &["--config", "nothing.toml", "list"]);
    assert!(why.starts_with("--config nothing.toml: No such file"), "{why}");
}

#[test]
fn a_file_that_another_user_can_have_written_is_not_read() {
    let home = Home::new();
    let path = home.file("tollgate.toml", "[list]\nformat = 'json'\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("set");
    let (list, warned) = said(&home, &["list", "entry/syscall"]);
    assert!(
        !list.starts_with('{') && warned.contains("is not read: ") && warned.contains("mode 0666"),
        "{warned}"
    );
    let shown: serde_json::Value = serde_json::from_str(&said(&home, &["config", "--json"]).0).expect("JSON");
    assert_eq!(shown["files"][0]["values"], serde_json::Value::Null);
    assert!(shown["files"][0]["why"].as_str().is_some_and(|why| why.contains("may be written by others")));
    if !common::is_root() {
        println!("skipped in part: needs root (to give a file to another user)");
        return;
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("set");
    chown(&path, Some(54_321), None).expect("given");
    let (list, warned) = said(&home, &["list", "entry/syscall"]);
    assert!(!list.starts_with('{') && warned.contains("belongs to uid 54321"), "{warned}");
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
    let shown: serde_json::Value = serde_json::from_str(&said(&home, &["config", "--json"]).0).expect("JSON");
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
    assert!(text.contains("[store.list]") && text.contains("name it with --config"), "{text}");
    let empty = Home::new();
    assert!(said(&empty, &["config"]).0.contains("No value is set."));
}
