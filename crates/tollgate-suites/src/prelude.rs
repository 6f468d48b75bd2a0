//! The names that nearly every benchmark needs: the engine's interface, the boundaries, and parameters.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use tollgate_arch::call::call;
pub(crate) use tollgate_arch::memory::{huge_page, page_size};
pub(crate) use tollgate_engine::mapping::Mapping;
// Named, because a boundary also has this name.
pub(crate) use tollgate_engine::Random;
pub(crate) use tollgate_engine::events::{Counting, Of, Tally};
pub(crate) use tollgate_engine::*;
pub(crate) use tollgate_model::Boundary::*;
pub(crate) use tollgate_model::{Boundary, ParamValue, Params, Unit};

pub(crate) use crate::checks::{self, KILLED_BY_FILTER, any, last_error};

/// Locks a mutex whose data stays consistent after a panic.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The timed code of a case that another version wrote, which has no instance either.
pub(crate) const NOT_TIMED: Timed = Timed::Whole("");

/// An enum that [`words!`] defines.
pub(crate) trait Listed: Copy + 'static {
    const ALL: &'static [Self];

    fn word(self) -> &'static str;
}

/// Defines an enumeration of a parameter's words; with a type, also a value for each, such as its loop. An empty word comes first
/// and stands for cases without the parameter.
macro_rules! words {
    ($(#[$about:meta])* $vis:vis enum $name:ident($key:literal): $type:ty { $($variant:ident = $word:literal => $value:expr),+ $(,)? }) => {
        words! { $(#[$about])* $vis enum $name($key) { $($variant = $word),+ } }

        impl $name {
            $vis fn value(self) -> $type {
                match self {
                    $(Self::$variant => $value),+
                }
            }
        }
    };
    ($(#[$about:meta])* $vis:vis enum $name:ident($key:literal) { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $name {
            $($variant),+
        }

        impl $name {
            $vis const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl Listed for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn word(self) -> &'static str {
                Self::WORDS[self as usize]
            }
        }

        impl TryFrom<&Params> for $name {
            type Error = Refusal;

            fn try_from(params: &Params) -> Result<Self> {
                let given = params.get($key).map(ToString::to_string).unwrap_or_default();
                match given.as_str() {
                    $($word => Ok(Self::$variant),)+
                    _ => {
                        let known = Self::WORDS.join(", ");
                        Err(fail!("{} is {given:?}; it must be one of {}", $key, known.trim_start_matches(", ")))
                    }
                }
            }
        }
    };
}
pub(crate) use words;
