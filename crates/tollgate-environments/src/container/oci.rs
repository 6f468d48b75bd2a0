//! runc and crun, called directly, with a bundle of our own. Their state is in the private directory.

use std::path::Path;

use super::{Bundle, Order, Separation, Words, cgroups, config};
use crate::error::EnvironmentError;
use crate::prepared::{Prepared, Undo};
use crate::seccomp;

pub(super) fn prepare(runtime: &Path, order: &Order<'_>) -> Result<Prepared, EnvironmentError> {
    let bundle = Bundle::make(order)?;
    // They have no profile of their own: container engines supply one.
    let seccomp = seccomp::oci(order.seccomp)?;
    let is_root = rustix::process::geteuid().is_root();
    let place = if is_root { Separation::OfRoot } else { Separation::OfUser };
    bundle.write(&config(order, &bundle, place, seccomp)?)?;
    let of_state = || {
        let mut words = Words::new(runtime);
        words.option("--root", &bundle.state);
        words
    };
    let command = of_state().add(["run", "--bundle"]).add([&bundle.path]).add([&order.id]).done();
    let mut undo = vec![Undo::Unmount(order.private.join(&order.id))];
    if is_root {
        undo.extend(cgroups::named(&order.id));
    }
    undo.push(Undo::Program(of_state().add(["delete", "--force", &order.id]).done()));
    Ok(Prepared { command, undo, ..Prepared::default() })
}
