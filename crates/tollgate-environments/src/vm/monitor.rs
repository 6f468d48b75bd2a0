//! This process's connection to the monitor of a running guest: its commands, and its log of executed instructions.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use tollgate_engine::session::{InstructionLog, Stacks, Sums};

use super::log::Log;
use super::qmp::Qmp;
use crate::error::{EnvironmentError, unusable};

/// The monitor's end of the connection: the socket of its protocol, and the pipe of its log.
pub(super) struct Ends {
    pub socket: File,
    pub log: File,
}

impl Ends {
    pub fn arguments(&self) -> [String; 4] {
        let socket = self.socket.as_raw_fd();
        ["-chardev", &format!("socket,id=monitor,fd={socket}"), "-mon", "chardev=monitor,mode=control"]
            .map(str::to_owned)
    }
}

pub(super) struct Monitor {
    qmp: Qmp,
    log: Log,
}

impl Monitor {
    /// Makes both ends, for a monitor that inherits its files.
    pub fn new() -> io::Result<(Self, Ends)> {
        let (own, theirs) = UnixStream::pair()?;
        let (log, to) = Log::new()?;
        let ends = Ends { socket: OwnedFd::from(theirs).into(), log: to };
        Ok((Self { qmp: Qmp::on(own)?, log }, ends))
    }
}

pub(super) type Monitored = Rc<RefCell<Option<Monitor>>>;

/// The log of the instructions that the last started guest executes.
pub(super) struct GuestLog(pub Monitored);

impl GuestLog {
    fn ask<T>(&self, what: impl FnOnce(&mut Monitor) -> Result<T, EnvironmentError>) -> Result<T, String> {
        let mut running = self.0.borrow_mut();
        let done = running.as_mut().ok_or_else(|| unusable!("vm: no guest runs")).and_then(what);
        done.map_err(|error| error.to_string())
    }
}

impl InstructionLog for GuestLog {
    fn begin(&mut self) -> Result<(), String> {
        self.ask(|monitor| monitor.log.begin(&mut monitor.qmp))
    }

    fn end(&mut self) -> Result<Vec<u64>, String> {
        self.ask(|monitor| monitor.log.end(&mut monitor.qmp))
    }

    fn begin_sums(&mut self, stacks: Option<Stacks>) -> Result<(), String> {
        self.ask(|monitor| monitor.log.begin_sums(stacks, &mut monitor.qmp))
    }

    fn end_sums(&mut self) -> Result<Sums, String> {
        self.ask(|monitor| monitor.log.end_sums(&mut monitor.qmp))
    }
}
