//! The tasks of a bench process that work at the same time, each on its own processor. They start when first needed.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, atomic::Ordering::SeqCst};
use std::thread::JoinHandle;

use tollgate_os::process::{self, Child};

use super::board::{Board, wake_all};
use super::participant::Participant;
use crate::machine::limits::{Quota, Taken};
use crate::refusal::Result;
use crate::{Context, machine::cpu};

/// Whether tasks are threads or processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskKind {
    /// Threads of one process, which share its memory and descriptors.
    Threads,
    /// Processes, each with its own memory and descriptors.
    Processes,
}

impl TaskKind {
    /// Returns the word for one of them.
    pub fn one(self) -> &'static str {
        match self {
            Self::Threads => "thread",
            Self::Processes => "process",
        }
    }
}

/// Tasks of one kind, and their board. The thread that gives the jobs is not one of them: it sleeps meanwhile.
pub struct Pool {
    pub kind: TaskKind,
    pub board: Arc<Board>,
    processors: Vec<usize>,
    quota: Quota,
    started: RefCell<Started>,
}

#[derive(Default)]
struct Started {
    threads: Vec<JoinHandle<()>>,
    children: Vec<Child>,
    taken: Vec<Taken>,
}

impl Pool {
    pub fn new(context: &mut Context, kind: TaskKind) -> Result<Self> {
        let mut processors = vec![context.home()?];
        processors.extend(cpu::others(&context.processors));
        let board = Board::new(processors.len());
        let board = board.map_err(|error| crate::Refusal::new("mmap(2) is refused", &error))?;
        Ok(Self {
            kind,
            board: Arc::new(board),
            processors,
            quota: context.quota.clone(),
            started: RefCell::default(),
        })
    }

    /// Starts the missing ones of `tasks`. Fails with a skip if there are fewer processors, or a limit allows fewer tasks.
    pub fn have(&self, tasks: usize) -> Result<()> {
        let processors = self.processors.len();
        if tasks > processors {
            return Err(skip!("{tasks} processors are needed, but this process may use {processors}"));
        }
        let mut started = self.started.borrow_mut();
        for number in started.taken.len()..tasks {
            let taken = self.quota.take_processes(1)?;
            let Some(&processor) = self.processors.get(number) else { return Ok(()) };
            let refused =
                |error: io::Error| self.quota.refused(&format!("one more {}", self.kind.one()), &error);
            match self.kind {
                TaskKind::Threads => {
                    let board = Arc::clone(&self.board);
                    let thread = std::thread::Builder::new().name("tollgate-task".to_owned());
                    let thread = thread.spawn(move || Participant::new(number).serve(&board, processor));
                    let thread = thread.map_err(refused)?;
                    started.threads.push(thread);
                }
                TaskKind::Processes => {
                    let board = &self.board;
                    // If this process has threads, they sleep now, without a lock.
                    let life = || {
                        Participant::new(number).serve(board, processor);
                        0
                    };
                    started.children.push(process::fork_bound(life).map_err(refused)?);
                }
            }
            started.taken.push(taken);
        }
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let started = self.started.get_mut();
        self.board.job().leave.store(1, SeqCst);
        self.board.job().number.fetch_add(1, SeqCst);
        wake_all(&self.board.job().number);
        for thread in started.threads.drain(..) {
            let _ = thread.join();
        }
        // All are killed at once; dropping each waits for it.
        started.children.iter().for_each(|child| child.kill(libc::SIGKILL));
    }
}
