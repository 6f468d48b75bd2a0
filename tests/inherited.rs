//! What a test program inherits, made usual before it begins, for itself and all that it starts: a shell lets what it starts
//! in its background ignore SIGINT, and nohup(1) SIGHUP; a mask of signals, a umask and variables go on to every child.

/// Variables that change what programs print or do. Those of the tests themselves stay: they begin with `TOLLGATE_`.
const UNUSUAL: [&std::ffi::CStr; 12] = [
    c"CLICOLOR",
    c"CLICOLOR_FORCE",
    c"COLUMNS",
    c"FORCE_COLOR",
    c"GIT_DIR",
    c"GIT_INDEX_FILE",
    c"GIT_WORK_TREE",
    c"LINES",
    c"MAKEFLAGS",
    c"NO_COLOR",
    c"PAGER",
    c"XDG_DATA_HOME",
];

extern "C" fn make_usual() {
    // SAFETY: the program has one thread yet; the set is initialized before it is used, and all strings end in a zero.
    unsafe {
        for signal in 1..libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = std::mem::MaybeUninit::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
        libc::umask(0o022);
        for name in UNUSUAL {
            libc::unsetenv(name.as_ptr());
        }
        libc::setenv(c"TERM".as_ptr(), c"dumb".as_ptr(), 1);
        // A terminal would stop what reads it in the background; Rust opens streams that are closed.
        let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
        if nothing > 0 {
            libc::dup2(nothing, 0);
            libc::close(nothing);
        }
    }
}

// SAFETY: the C library calls each function of this section once, before main.
#[used]
#[unsafe(link_section = ".init_array")]
static MAKE_USUAL: extern "C" fn() = make_usual;
