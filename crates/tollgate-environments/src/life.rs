//! Environments that are started and ended to be measured themselves.

use tollgate_engine::Refusal;
use tollgate_engine::session::{About, Life, Link, Mark};

use crate::environment::Environment;
use crate::spec::Spec;

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
        let hidden = match (self.spec(), self.runtime()) {
            (Spec::Ssh(_), _) => Some("its processes are on another machine"),
            (Spec::Exec(_), _) => Some("the prefix may have processes that do not come from it"),
            (Spec::Container(_), Some("docker")) => Some("docker's daemon starts its processes"),
            _ => None,
        };
        let of_translator =
            "QEMU's translator executes the guest: real time of the host, without counted instructions";
        let remark =
            self.is_translated().filter(|is_translated| *is_translated).map(|_| of_translator.to_owned());
        About {
            hidden: hidden.map(str::to_owned),
            has_kernel: matches!(self.spec(), Spec::Gvisor(_) | Spec::Vm(_)),
            is_guest: matches!(self.spec(), Spec::Vm(_)),
            remark,
        }
    }
}
