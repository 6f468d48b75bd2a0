/// Returns the write lock of a file's first byte, and its unlock.
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
