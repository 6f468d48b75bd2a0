use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use crate::refusal::{Refusal, Result};
use crate::{
    loops::heartbeat::Heartbeat, machine::cpu, machine::limits::Quota, machine::storage::Storage,
    machine::topology::Topology,
};

/// The resources of a bench process, and what its instances share.
pub struct Context {
    /// The processors that the program may use, from before this process was pinned.
    pub processors: Vec<usize>,
    /// The processes and the memory that may still be taken.
    pub quota: Quota,
    /// Tells the parent that a long preparation or batch makes progress.
    pub heartbeat: Heartbeat,
    storage: Result<Storage, String>,
    affinity: Result<(), String>,
    fixtures: BTreeMap<(TypeId, String), Box<dyn Any>>,
}

impl Context {
    pub(crate) fn new(
        processors: Vec<usize>,
        quota: Quota,
        heartbeat: Heartbeat,
        storage: Result<Storage, String>,
    ) -> Self {
        Self { processors, quota, heartbeat, storage, affinity: Ok(()), fixtures: BTreeMap::new() }
    }

    pub(crate) fn with_affinity(self, affinity: Result<(), String>) -> Self {
        Self { affinity, ..self }
    }

    /// Returns the context of a process outside a run, such as a test: without limits, and without a directory for files.
    pub fn here() -> Self {
        let no_directory = Err("no directory for files was named".to_owned());
        Self::new(cpu::allowed(), Quota::default(), Heartbeat::default(), no_directory)
    }

    /// Adds a directory for files.
    pub fn with_storage(self, storage: Storage) -> Self {
        Self { storage: Ok(storage), ..self }
    }

    /// Returns the directory for files.
    ///
    /// # Errors
    /// [`Refusal::Skip`] with the reason if there is none.
    pub fn storage(&self) -> Result<&Storage> {
        self.storage.as_ref().map_err(|why| Refusal::Skip(why.clone()))
    }

    /// Returns the one processor that this thread and its future children and threads are bound to.
    ///
    /// # Errors
    /// [`Refusal::Refuse`] if an affinity does not bind, [`Refusal::Skip`] if the thread is not pinned.
    pub fn home(&self) -> Result<usize> {
        self.affinity.clone().map_err(Refusal::Refuse)?;
        cpu::home()
    }

    /// Returns the best other processor for a partner.
    ///
    /// # Errors
    /// [`Refusal::Skip`] if there is only one, [`Refusal::Refuse`] if an affinity does not bind.
    pub fn other_processor(&self) -> Result<usize> {
        self.affinity.clone().map_err(Refusal::Refuse)?;
        let others = cpu::others(&self.processors);
        others.first().copied().ok_or_else(Refusal::one_processor)
    }

    /// Returns what its processors share, read on first use. A pinned thread does not know a quota of processor time.
    pub fn topology(&mut self) -> Rc<Topology> {
        self.shared("topology", |context| Rc::new(Topology::read(context.processors.clone())))
    }

    /// Returns the fixture of this type and key, made on first use. It stays until the process ends.
    pub fn shared<T: Clone + 'static>(&mut self, key: &str, make: impl FnOnce(&mut Self) -> T) -> T {
        if let Some(known) = self.known(key) {
            return known;
        }
        let made = make(self);
        self.keep(key, made.clone());
        made
    }

    /// Like [`Context::shared`] for a fixture that may fail: it is replaced when it is no longer `usable`.
    pub fn shared_while<T: Clone + 'static>(
        &mut self,
        key: &str,
        usable: impl FnOnce(&T) -> bool,
        make: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if let Some(known) = self.known(key).filter(usable) {
            return Ok(known);
        }
        let made = make(self)?;
        self.keep(key, made.clone());
        Ok(made)
    }

    /// Returns the fixture of this type and key, made on first use, and dropped with the last instance that holds it.
    pub fn shared_while_held<T: 'static>(
        &mut self,
        key: &str,
        make: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<Rc<T>> {
        if let Some(held) = self.known::<Weak<T>>(key).and_then(|weak| weak.upgrade()) {
            return Ok(held);
        }
        let made = Rc::new(make(self)?);
        self.keep(key, Rc::downgrade(&made));
        Ok(made)
    }

    fn known<T: Clone + 'static>(&self, key: &str) -> Option<T> {
        self.fixtures.get(&(TypeId::of::<T>(), key.to_owned()))?.downcast_ref().cloned()
    }

    fn keep<T: 'static>(&mut self, key: &str, fixture: T) {
        self.fixtures.insert((TypeId::of::<T>(), key.to_owned()), Box::new(fixture));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn what_needs_one_processor_is_refused_where_an_affinity_does_not_bind() {
        let why = "threads ran at the same time".to_owned();
        let context = Context::here().with_affinity(Err(why.clone()));
        assert_eq!(context.home(), Err(Refusal::Refuse(why.clone())));
        assert_eq!(context.other_processor(), Err(Refusal::Refuse(why)));
    }

    #[test]
    fn a_fixture_is_made_once_for_its_type_and_key() {
        let mut context = Context::here();
        assert_eq!((context.shared("a", |_| 1), context.shared("a", |_| 2)), (1, 1));
        assert_eq!((context.shared("b", |_| 3), context.shared("a", |_| 4_u8)), (3, 4));
        let mut replaced = |usable| context.shared_while("a", |_: &i32| usable, |_| Ok(5));
        assert_eq!((replaced(true), replaced(false), replaced(true)), (Ok(1), Ok(5), Ok(5)));
        let failed = context.shared_while("c", |_: &i32| true, |_| Err(Refusal::Fail(String::new())));
        assert!(failed.is_err());
        assert_eq!(context.shared("c", |context| context.shared("a", |_| 6)), 5);
    }

    #[test]
    fn a_held_fixture_is_dropped_with_its_last_holder_and_another_one_with_the_context() {
        struct Counts(Rc<Cell<u32>>);
        impl Drop for Counts {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let dropped = Rc::new(Cell::new(0));
        let mut context = Context::here();
        let mut held = || context.shared_while_held("a", |_| Ok(Counts(Rc::clone(&dropped)))).expect("made");
        let (first, second) = (held(), held());
        assert!(Rc::ptr_eq(&first, &second));
        drop(first);
        assert_eq!(dropped.get(), 0);
        drop(second);
        assert_eq!(dropped.get(), 1);
        drop(held());
        assert_eq!(dropped.get(), 2);
        drop(context.shared("b", |_| Rc::new(Counts(Rc::clone(&dropped)))));
        assert_eq!(dropped.get(), 2);
        drop(context);
        assert_eq!(dropped.get(), 3);
    }
}
