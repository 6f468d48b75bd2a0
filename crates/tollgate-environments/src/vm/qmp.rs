//! QEMU machine protocol, on a socket that the monitor inherits: a line of JSON each way (QEMU, docs/interop/qmp-spec.txt).

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tollgate_model::text::excerpt;

use crate::error::{EnvironmentError, plainly, unusable};

/// The monitor's answer may take this long on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
const MOST_LINE: usize = 1 << 20;
const MOST_EVENTS: usize = 1 << 12;

/// A connection to the monitor of a running guest. The first command reads its greeting.
pub(super) struct Qmp {
    stream: UnixStream,
    /// Bytes after the last complete line.
    rest: Vec<u8>,
    is_greeted: bool,
}

impl Qmp {
    pub fn on(stream: UnixStream) -> io::Result<Self> {
        // Short, so that a wait notices the monitor's end.
        stream.set_read_timeout(Some(PATIENCE / 20))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, rest: Vec::new(), is_greeted: false })
    }

    /// Executes a command and returns its result. Fails if the monitor refuses, does not answer, or has ended.
    pub fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value, EnvironmentError> {
        if !self.is_greeted {
            let greeting = self.line()?;
            if greeting.get("QMP").is_none() {
                return Err(unusable!("vm: QEMU's monitor did not greet"));
            }
            self.ask("qmp_capabilities", &json!({}))?;
            self.is_greeted = true;
        }
        self.ask(command, arguments)
    }

    /// Has the human monitor execute a line, and returns what it prints: nothing if the command is silent and succeeded.
    pub fn human(&mut self, line: &str) -> Result<String, EnvironmentError> {
        let printed = self.execute("human-monitor-command", &json!({ "command-line": line }))?;
        Ok(printed.as_str().unwrap_or_default().trim().to_owned())
    }

    fn ask(&mut self, command: &str, arguments: &Value) -> Result<Value, EnvironmentError> {
        let line = format!("{}\n", json!({ "execute": command, "arguments": arguments }));
        self.stream.write_all(line.as_bytes()).map_err(|error| of_socket(&error))?;
        for _ in 0..MOST_EVENTS {
            let mut answer = self.line()?;
            if let Some(returned) = answer.get_mut("return") {
                return Ok(returned.take());
            }
            if let Some(error) = answer.get("error") {
                let why = error.get("desc").and_then(Value::as_str).unwrap_or("no reason is given");
                return Err(unusable!("vm: QEMU's monitor refused {command}: {}", excerpt(why)));
            }
        }
        Err(lost("it sends events only"))
    }

    fn line(&mut self) -> Result<Value, EnvironmentError> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return serde_json::from_slice(&line).map_err(|_| lost("it sent something that is not JSON"));
            }
            if self.rest.len() > MOST_LINE {
                return Err(lost("it sent a line without an end"));
            }
            let mut bytes = [0; 1 << 12];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(lost("it has ended")),
                Ok(read) => self.rest.extend_from_slice(&bytes[..read]),
                Err(error) if is_wait(&error) && Instant::now() < until => {}
                Err(error) if is_wait(&error) => {
                    return Err(lost(&format!("it did not answer for {} s", PATIENCE.as_secs())));
                }
                Err(error) => return Err(of_socket(&error)),
            }
        }
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// The socket of a monitor that has ended accepts no more data, or is reset.
fn of_socket(error: &io::Error) -> EnvironmentError {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => lost("it has ended"),
        kind => lost(&plainly(kind)),
    }
}

fn lost(why: &str) -> EnvironmentError {
    unusable!("vm: QEMU's monitor: {why}")
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    /// A monitor that greets, and answers each line with the next of these texts.
    fn monitor(answers: &'static [&'static str]) -> Qmp {
        let (own, other) = UnixStream::pair().expect("a socket");
        std::thread::spawn(move || {
            let mut lines = BufReader::new(other.try_clone().expect("a descriptor")).lines();
            let mut other = other;
            let _ = other.write_all(b"{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n");
            for answer in std::iter::once(&"{\"return\": {}}").chain(answers) {
                let Some(Ok(_)) = lines.next() else { return };
                let _ = other.write_all(format!("{answer}\r\n").as_bytes());
            }
        });
        Qmp::on(own).expect("a socket")
    }

    #[test]
    fn an_answer_is_found_behind_events() {
        let mut qmp = monitor(&[
            "{\"event\": \"RESUME\"}\r\n{\"return\": \"unknown command: 'x'\\r\\n\"}",
            "{\"return\": [{\"thread-id\": 7}]}",
        ]);
        assert_eq!(qmp.human("x"), Ok("unknown command: 'x'".to_owned()));
        assert_eq!(qmp.execute("query-cpus-fast", &json!({})), Ok(json!([{ "thread-id": 7 }])));
    }

    #[test]
    fn a_refusal_and_an_end_are_sentences() {
        let mut qmp = monitor(&["{\"error\": {\"class\": \"x\", \"desc\": \"no such command\"}}", "no JSON"]);
        let said = |answer: Result<Value, EnvironmentError>| answer.map_err(|error| error.to_string());
        let refused = said(qmp.execute("x", &json!({})));
        assert_eq!(refused, Err("vm: QEMU's monitor refused x: no such command".to_owned()));
        assert_eq!(
            said(qmp.execute("y", &json!({}))),
            Err("vm: QEMU's monitor: it sent something that is not JSON".to_owned())
        );
        assert_eq!(said(qmp.execute("z", &json!({}))), Err("vm: QEMU's monitor: it has ended".to_owned()));
    }
}
