use super::*;

/// The program of these tests is not an agent: it prints the tests. A command that prints something or ends does so earlier.
fn refused(prefix: &str) -> String {
    refused_within(Duration::from_secs(30), prefix)
}

fn refused_within(patience: Duration, prefix: &str) -> String {
    let cleanup = Cleanup::begin().unwrap();
    let reach =
        Reach::Prefix(tollgate_os::words::split(prefix).unwrap().into_iter().map(OsString::from).collect());
    let agent = Agent::with(&["--none-of-the-tests".into()]).unwrap();
    let started = start_within(patience, &reach, &mut None, &agent, &cleanup, &|| false, &mut || {});
    started.err().unwrap().to_string()
}

#[test]
fn what_is_no_way_to_an_agent_is_named() {
    assert_eq!(refused("tollgate-no-such-program -x"), "tollgate-no-such-program: there is no such program");
    assert_eq!(
        refused("false"),
        "the command ended before an agent answered, without a word; it must run the program that follows it"
    );
    assert_eq!(
        refused("sh -c 'echo no such container >&2; exit 1'"),
        "the command ended before an agent answered: no such container"
    );
    // On a busy machine a command may say nothing within a second.
    let silent = [1, 4, 16, 64].map(|seconds| (seconds, format!("no agent answered within {seconds} s")));
    let said = silent.iter().find_map(|(seconds, unheard)| {
        let said = refused_within(Duration::from_secs(*seconds), "sh -c 'echo loading >&2; sleep 1000'");
        (said != *unheard).then(|| said == format!("{unheard}; the command said: loading"))
    });
    assert_eq!(said, Some(true));
    let banner = refused("sh -c 'echo Welcome to the machine; cat'");
    let printed = |what: &str| {
        format!(
            "the command printed {what} where an agent of tollgate answers; it must pass standard input and output on unchanged and print nothing itself"
        )
    };
    assert_eq!(banner, printed("`Welcome to the machine`"));
    let endless = refused("sh -c 'exec yes'");
    let binary = refused("sh -c 'exec cat /proc/self/exe'");
    assert_eq!(binary, printed("bytes that are not text"));
    assert_eq!(endless, printed("`y`"));
}

#[test]
fn a_request_to_stop_ends_it() {
    let cleanup = Cleanup::begin().unwrap();
    let reach = Reach::Prefix(["sleep", "100"].map(OsString::from).to_vec());
    let agent = Agent::with(&[]).unwrap();
    let silent = Reach::Prefix(["sh", "-c", "sleep 100"].map(OsString::from).to_vec());
    let stopped = start(&silent, &mut None, &agent, &cleanup, &|| true, &mut || {});
    assert_eq!(stopped.err().unwrap(), EnvironmentError::Interrupted);
    let stopped = start(&reach, &mut Some(Way::Upload), &agent, &cleanup, &|| true, &mut || {});
    assert!(stopped.is_err());
}

#[test]
fn a_command_for_ssh_is_one_word() {
    let agent = Agent::with(&[]).unwrap();
    let command = Reach::Host("user@machine".to_owned()).command(Way::Upload, &agent, ".name").unwrap();
    assert_eq!(command[command.len() - 3..command.len() - 1], ["--", "user@machine"]);
    let last = command.last().unwrap().to_str().unwrap();
    assert!(last.starts_with("sh -c ':; ") && last.ends_with('\''), "{last}");
}
