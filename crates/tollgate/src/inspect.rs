//! `tollgate inspect`: the state that determines latencies.

mod aslr;
mod config;
mod facts;
mod kernel;
mod machine;

#[cfg(test)]
pub use facts::CapturedTree;

use crate::args::{InspectArgs, Question};
use crate::failure::Failure;

impl InspectArgs {
    pub fn execute(&self) -> Result<(), Failure> {
        match &self.question {
            None => facts::facts(self),
            Some(Question::Aslr(args)) => aslr::aslr(args),
            Some(Question::Kernel(args)) => kernel::kernel(args),
            Some(Question::Config(args)) => config::config(args),
        }
    }
}
