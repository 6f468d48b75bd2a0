//! Errors of KVM's requests.

use std::io;

use tollgate_model::text::plainly;

use crate::KvmError;

pub(crate) fn unavailable(why: String) -> KvmError {
    KvmError::Unavailable { why }
}

pub(crate) fn failed(request: &'static str) -> impl Fn(kvm_ioctls::Error) -> KvmError {
    move |error| unavailable(format!("{request}: {}", plainly(&io::Error::from_raw_os_error(error.errno()))))
}

pub(crate) fn failed_io(what: &'static str) -> impl Fn(io::Error) -> KvmError {
    move |error| unavailable(format!("{what}: {}", plainly(&error)))
}
