//! Environments whose start and end are measured.

use tollgate_engine::Refusal;
use tollgate_engine::session::{About, Life, Link, Mark};

use crate::environment::Environment;

impl Life for Environment {
    fn start(&mut self, begin: &mut dyn FnMut()) -> Result<Link, String> {
        self.start_as(true, begin).map_err(|error| error.to_string())
    }

    fn start_shell(&mut self, begin: &mut dyn FnMut()) -> Result<Link, Refusal> {
        Self::start_shell(self, begin).map_err(|error| Refusal::Skip(error.to_string()))
    }

    fn marks(&mut self) -> Vec<Mark> {
        self.take_marks()
    }

    fn end(&mut self) {
        Self::end(self);
    }

    fn about(&self) -> About {
        let kind = self.spec().description();
        About {
            hidden: self.spec().kind().hidden(self.runtime()).map(str::to_owned),
            has_kernel: kind.has_kernel,
            is_guest: kind.is_guest,
            remark: self.remark_of_starts().map(str::to_owned),
        }
    }
}
