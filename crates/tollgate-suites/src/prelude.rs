//! The names that nearly every benchmark needs: the engine's interface, the boundaries, and parameters.

pub(crate) use tollgate_engine::mapping::{HUGE, Mapping};
// Named, since a boundary has this name too.
pub(crate) use tollgate_engine::Random;
pub(crate) use tollgate_engine::*;
pub(crate) use tollgate_model::Boundary::*;
pub(crate) use tollgate_model::{Boundary, ParamValue, Params, Unit};
