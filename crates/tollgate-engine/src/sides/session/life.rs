//! Starts and ends an environment for a session that measures its start and its end.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use super::Link;
use crate::cases::aspect::Phase;
use crate::refusal::Refusal;

/// An environment that can be started and ended repeatedly, with one start at a time.
pub trait Life {
    /// Starts it with an agent in it. `begin` is called directly before fork(2) of its first process.
    ///
    /// # Errors
    /// A sentence.
    fn start(&mut self, begin: &mut dyn FnMut()) -> Result<Link, String>;

    /// Starts it with `/bin/sh -c echo` instead of the agent.
    ///
    /// # Errors
    /// Why it has no shell, or why that cannot be started.
    fn start_shell(&mut self, begin: &mut dyn FnMut()) -> Result<Link, Refusal>;

    /// Returns the streams that show the ends of the current start's phases, each only once. Empty if it has no phases.
    fn marks(&mut self) -> Vec<Mark> {
        Vec::new()
    }

    /// Removes what the last start left, and ends what still runs of it.
    fn end(&mut self);

    /// Describes it.
    fn about(&self) -> About;
}

/// For an environment with another owner, which starts it when the start is not measured.
impl<L: Life> Life for Rc<RefCell<&mut L>> {
    fn start(&mut self, begin: &mut dyn FnMut()) -> Result<Link, String> {
        self.borrow_mut().start(begin)
    }

    fn start_shell(&mut self, begin: &mut dyn FnMut()) -> Result<Link, Refusal> {
        self.borrow_mut().start_shell(begin)
    }

    fn marks(&mut self) -> Vec<Mark> {
        self.borrow_mut().marks()
    }

    fn end(&mut self) {
        self.borrow_mut().end();
    }

    fn about(&self) -> About {
        self.borrow().about()
    }
}

/// The properties of an environment that its measurement depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Why some of its processes are not descendants of this one, so that their memory is unknown; `None` if all are.
    pub hidden: Option<String>,
    /// Whether its own kernel reports the memory in use in it.
    pub has_kernel: bool,
    /// Whether its start has phases.
    pub is_guest: bool,
    /// A remark on its times.
    pub remark: Option<String>,
}

/// A stream that shows the ends of phases.
#[derive(Debug)]
pub struct Mark {
    /// The stream, which is read to its end.
    pub from: OwnedFd,
    /// The phases that end there, in order, each with the bytes that end it, anywhere in the stream; empty for any byte.
    pub ends: Vec<(Phase, &'static [u8])>,
}
