//! The beginning and the end of an environment, as a session makes them to measure them.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use super::Link;
use crate::cases::aspect::Phase;
use crate::refusal::Refusal;

/// An environment that can be started and ended again and again. Only one start of it exists at a time.
pub trait Life {
    /// Starts it with an agent in it. `begin` is called right before fork(2) of its first process.
    ///
    /// # Errors
    /// A sentence.
    fn start(&mut self, begin: &mut dyn FnMut()) -> Result<Link, String>;

    /// Starts it with `/bin/sh -c echo` in the agent's place.
    ///
    /// # Errors
    /// Why it has no shell, or why that cannot be started.
    fn start_shell(&mut self, begin: &mut dyn FnMut()) -> Result<Link, Refusal>;

    /// The streams on which the present start shows the ends of its phases; each is given away once. Empty where it has no phases.
    fn marks(&mut self) -> Vec<Mark> {
        Vec::new()
    }

    /// Removes what the last start left. What still runs of it is ended.
    fn end(&mut self);

    /// What it is.
    fn about(&self) -> About;
}

/// One that has another owner, which starts it where it is not measured itself.
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

/// What an environment is, as far as its measurement depends on that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Why not all of its processes come from this one, so that their memory is not known; None where all do.
    pub hidden: Option<String>,
    /// Whether a kernel of its own says how much memory is in use in it.
    pub has_kernel: bool,
    /// Whether its start has phases.
    pub is_guest: bool,
    /// What is said beside its times.
    pub remark: Option<String>,
}

/// A stream that shows the ends of phases.
#[derive(Debug)]
pub struct Mark {
    /// What is read. It is read to its end.
    pub from: OwnedFd,
    /// The phases that end there, one after the other, each with the bytes that end it, somewhere in the stream; none for any byte.
    pub ends: Vec<(Phase, &'static [u8])>,
}
