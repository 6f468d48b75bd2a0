//! A record lock (fcntl(2)).

/// The lock of the first byte of a file for writing, and its unlock.
pub(crate) fn first_byte() -> Box<[libc::flock; 2]> {
    let record = |kind: libc::c_int| libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 1,
        l_pid: 0,
    };
    Box::new([libc::F_WRLCK, libc::F_UNLCK].map(record))
}
