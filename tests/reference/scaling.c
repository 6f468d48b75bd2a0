/* One thread of what several make at once: in a process with a second thread, which sleeps, as tollgate's is one of several. */
#include "loops.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int ends[2], at = AT_FDCWD;
static char bytes[PAGE];
static struct stat status;

static void in_directory(void)
{
    must((at = open(directory, O_RDONLY | O_DIRECTORY)) >= 0);
    unlinkat(at, "loops-file", 0);
    must((ends[0] = openat(at, "loops-file", O_RDWR | O_CREAT, 0600)) >= 0);
    must(write(ends[0], bytes, PAGE) == PAGE);
    become_threaded();
}

OPERATION(parent) { sys0(SYS_getppid); }

OPERATION(open_and_close)
{
    long file = sys4(SYS_openat, at, "loops-file", O_RDONLY | O_CLOEXEC, 0);
    must(file >= 0);
    sys1(SYS_close, file);
}

OPERATION(stat_name) { must(sys4(SYS_newfstatat, at, "loops-file", &status, 0) == 0); }
OPERATION(read_page) { must(sys4(SYS_pread64, ends[0], bytes, PAGE, 0) == PAGE); }
OPERATION(write_page) { must(sys4(SYS_pwrite64, ends[0], bytes, PAGE, 0) == PAGE); }

OPERATION(create_and_remove)
{
    long file = sys4(SYS_openat, at, "loops-new", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    must(file >= 0);
    sys1(SYS_close, file);
    must(sys3(SYS_unlinkat, at, "loops-new", 0) == 0);
}

static void with_pipe(void) { must(pipe2(ends, O_CLOEXEC) == 0), become_threaded(); }
static void with_socket(void) { must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0), become_threaded(); }
static struct pollfd asked;
static void with_counter(void)
{
    must((ends[0] = ends[1] = eventfd(0, EFD_NONBLOCK)) >= 0);
    become_threaded();
}
static void with_ready(void)
{
    must((asked.fd = eventfd(1, EFD_NONBLOCK)) >= 0);
    asked.events = POLLIN;
    become_threaded();
}

OPERATION(copy_descriptor)
{
    long copy = sys1(SYS_dup, ends[0]);
    must(copy >= 0);
    sys1(SYS_close, copy);
}

OPERATION(pass_byte)
{
    must(sys3(SYS_write, ends[1], bytes, 1) == 1);
    must(sys3(SYS_read, ends[0], bytes, 1) == 1);
}

static uint64_t count = 1;
OPERATION(count_one)
{
    must(sys3(SYS_write, ends[1], &count, 8) == 8);
    must(sys3(SYS_read, ends[0], &count, 8) == 8);
}

ON(, static long no_time[2];)
OPERATION(poll_ready) { must(ON(sys3(SYS_poll, &asked, 1, 0), sys4(SYS_ppoll, &asked, 1, no_time, 0)) == 1); }

static struct flock lock = { .l_type = F_WRLCK, .l_len = 1 }, unlock = { .l_type = F_UNLCK, .l_len = 1 };
static void with_memory_file(void) { must((ends[0] = memfd_create("loops", 0)) >= 0), become_threaded(); }
OPERATION(lock_record)
{
    must(sys3(SYS_fcntl, ends[0], F_OFD_SETLK, &lock) == 0);
    must(sys3(SYS_fcntl, ends[0], F_OFD_SETLK, &unlock) == 0);
}

#define PAGES 256
static char *region;
static int next;
static void with_region(void)
{
    region = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(region != MAP_FAILED);
    madvise(region, PAGES * PAGE, MADV_NOHUGEPAGE);
    become_threaded();
}

OPERATION(touch)
{
    if (next == PAGES) {
        next = 0;
        must(sys3(SYS_madvise, region, PAGES * PAGE, MADV_DONTNEED) == 0);
    }
    *(volatile char *)(region + next++ * PAGE) = 1;
}

OPERATION(map_and_unmap)
{
    long at = sys(SYS_mmap, 0, 128L << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(at > 0);
    must(sys2(SYS_munmap, at, 128L << 20) == 0);
}

static long where;
static void find_break(void) { where = sys1(SYS_brk, 0); }
OPERATION(move_break)
{
    long now = where;
    must(sys1(SYS_brk, now + PAGE) == now + PAGE);
    must(sys1(SYS_brk, now) == now);
}

static _Alignas(128) int word;
OPERATION(wake_none) { must(sys3(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1) == 0); }

static volatile long handled;
static pid_t process;
static void handle(int signal) { (void)signal, handled++; }
static void with_handler(void)
{
    struct sigaction action = { .sa_handler = handle };
    must(sigaction(SIGUSR2, &action, NULL) == 0);
    process = getpid();
    become_threaded();
}
OPERATION(signal_self) { must(sys3(SYS_tgkill, process, process, SIGUSR2) == 0); }

OPERATION(yield) { sys0(SYS_sched_yield); }

OPERATION(clone_and_wait)
{
    int ended = -1;
    long child = sys4(SYS_clone, SIGCHLD, 0, 0, 0);
    if (child == 0)
        sys1(SYS_exit_group, 0);
    must(child > 0);
    must(sys4(SYS_wait4, child, &ended, 0, 0) == child && ended == 0);
}

#define ONE "{kind=threads,tasks=1}"
#define ONE_OWN "{file=own,kind=threads,tasks=1}"
#define WARM "what the operation before it left"

const struct loop scaling_loops[] = {
    ROW("scaling/getppid" ONE, parent, WARM, .prepare = become_threaded),
    ROW("scaling/open{file=shared,kind=threads,tasks=1}", open_and_close, "the name in the cache of names", .prepare = in_directory),
    ROW("scaling/stat" ONE, stat_name, "the name in the cache of names", .prepare = in_directory),
    ROW("scaling/read" ONE, read_page, "one page of the page cache, in the first or second level", .prepare = in_directory),
    ROW("scaling/dup" ONE, copy_descriptor, "a free descriptor", .prepare = with_pipe),
    ROW("scaling/pipe" ONE, pass_byte, "an empty pipe", .prepare = with_pipe),
    ROW("scaling/eventfd" ONE, count_one, "a count of 0", .prepare = with_counter),
    ROW("scaling/unix" ONE, pass_byte, "an empty socket", .prepare = with_socket),
    ROW("scaling/poll" ONE, poll_ready, "an eventfd that is ready", .prepare = with_ready),
    ROW("scaling/file-lock" ONE, lock_record, "no lock", .prepare = with_memory_file),
    ROW("scaling/write" ONE_OWN, write_page, "one page of the page cache, dirty", .prepare = in_directory),
    ROW("scaling/create" ONE, create_and_remove, "a name that was just removed", .prepare = in_directory),
    ROW("scaling/page-fault" ONE, touch, "the 256 pages that were given back last", .prepare = with_region),
    ROW("scaling/mmap" ONE, map_and_unmap, "the mapping's data that were given back last", .prepare = become_threaded),
    ROW("scaling/brk{kind=processes,tasks=1}", move_break, "the break where it was", .prepare = find_break),
    ROW("scaling/futex" ONE, wake_none, "a word on which no thread sleeps", .prepare = become_threaded),
    ROW("scaling/signal" ONE, signal_self, "the handler and its stack in the caches", .prepare = with_handler),
    ROW("scaling/yield" ONE, yield, "nothing else to run", .prepare = become_threaded),
    ROW("scaling/fork" ONE, clone_and_wait, "a small program with the C library and a second thread", .prepare = become_threaded),
    END,
};
