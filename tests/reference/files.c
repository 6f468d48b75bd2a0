/* Calls on files, in the directory that --dir names. */
#include "loops.h"
#include <fcntl.h>
#include <sys/stat.h>

#define MIB (1L << 20)
static int at, file, files[64];
static long size, block;
static _Alignas(4096) char buffer[1 << 20];
static struct stat status;
static uint64_t drawn = 88172645463325252;

static uint64_t draw(void)
{
    drawn ^= drawn << 13, drawn ^= drawn >> 7, drawn ^= drawn << 17;
    return drawn;
}

static void enter(void) { must((at = open(directory, O_RDONLY | O_DIRECTORY)) >= 0); }

/* A file of random bytes that is on storage and in the page cache. It has no name: it ends with its process. */
static void make(long bytes, long blocks)
{
    size = bytes, block = blocks;
    enter();
    unlinkat(at, "loops-data", 0);
    must((file = openat(at, "loops-data", O_RDWR | O_CREAT | O_EXCL, 0600)) >= 0);
    for (long word = 0; word < (long)sizeof buffer / 8; word++)
        ((uint64_t *)buffer)[word] = draw();
    for (long written = 0; written < size; written += sizeof buffer) {
        long some = size - written < (long)sizeof buffer ? size - written : (long)sizeof buffer;
        must(pwrite(file, buffer, some, written) == some);
    }
    must(fsync(file) == 0);
}

static void again_direct(void)
{
    close(file);
    file = openat(at, "loops-data", O_RDWR | O_DIRECT);
    if (file < 0)
        skip("this file system has no direct I/O");
}
static void forget_name(void) { unlinkat(at, "loops-data", 0); }

static void cached_4k(void) { make(4 * MIB, 4096), forget_name(); }
static void cached_128k(void) { make(4 * MIB, 128 << 10), forget_name(); }
static void written_4k(void) { make(8 * MIB, 4096), forget_name(); }
static void written_1m(void) { make(8 * MIB, MIB), forget_name(); }
static void direct(void) { make(28 * MIB, 4096), again_direct(), forget_name(); }
static void direct_written(void) { make(8 * MIB, 4096), again_direct(), forget_name(); }
static void small(void) { make(64 << 10, 4096), forget_name(); }

/* Random blocks; or each in turn. */
static long next;
INLINE long any(void) { return (long)(draw() % (uint64_t)(size / block)) * block; }
INLINE long following(void)
{
    long offset = next;
    next = next + block < size ? next + block : 0;
    return offset;
}

OPERATION(read_any) { must(sys4(SYS_pread64, file, buffer, block, any()) == block); }
OPERATION(write_next)
{
    buffer[0]++;
    must(sys4(SYS_pwrite64, file, buffer, block, following()) == block);
}

static double timed_one(long (*call)(void), long *n)
{
    double began = now();
    long result = call();
    double took = now() - began;
    must(result >= 0);
    *n = 1;
    return took;
}

static void dirty(void)
{
    buffer[0]++;
    must(pwrite(file, buffer, block, following()) == block);
}
static long sync_file(void) { return sys1(SYS_fsync, file); }
static long sync_data(void) { return sys1(SYS_fdatasync, file); }
static double one_fsync(long *n) { return dirty(), sync_file(), dirty(), timed_one(sync_file, n); }
static double fsync_after_sleep(long *n) { return usleep(1000), dirty(), timed_one(sync_file, n); }
static double one_fdatasync(long *n) { return dirty(), sync_data(), dirty(), timed_one(sync_data, n); }

static long read_one(void) { return sys4(SYS_pread64, file, buffer, block, any()); }
static double after_sleep(long *n) { return usleep(1000), timed_one(read_one, n); }

/* Names. */
#define NAME "loops-name"
static char names[64][32];
static long which;

static void with_name(void)
{
    enter();
    must((file = openat(at, NAME, O_RDWR | O_CREAT, 0600)) >= 0);
    must(pwrite(file, buffer, 4096, 0) == 4096);
    for (int name = 0; name < 64; name++)
        snprintf(names[name], sizeof *names, "loops-%d", name);
}

static void close_all(long n)
{
    for (long number = 0; number < n; number++)
        close(files[number]);
    which = 0;
}
static void remove_all(long n)
{
    close_all(n);
    for (long number = 0; number < n; number++)
        must(unlinkat(at, names[number], 0) == 0);
}
static void write_all(long n)
{
    which = 0;
    for (long number = 0; number < n; number++) {
        must((files[number] = openat(at, names[number], O_RDWR | O_CREAT | O_EXCL, 0600)) >= 0);
        must(write(files[number], buffer, 4096) == 4096);
    }
}
static void write_and_close(long n) { write_all(n), close_all(n); }
static void unlink_all(long n)
{
    for (long number = 0; number < n; number++)
        must(unlinkat(at, names[number], 0) == 0);
}

OPERATION(stat_name) { must(sys4(SYS_newfstatat, at, NAME, &status, 0) == 0); }
OPERATION(open_name) { must((files[which++] = sys4(SYS_openat, at, NAME, O_RDONLY | O_CLOEXEC, 0)) >= 0); }
OPERATION(create_name)
{
    must((files[which] = sys4(SYS_openat, at, names[which], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) >= 0);
    which++;
}


/* One operation, behind an untimed one of its kind; each after its preparation, and with what ends it. */
static double one(void (*before)(long), long (*call)(void), void (*after)(long), long *n)
{
    double took = 0;
    for (int time = 0; time < 2; time++) {
        before(1);
        took = timed_one(call, n);
        after(1);
    }
    return took;
}
static void nothing(long n) { (void)n; }
static long stat_it(void) { return sys4(SYS_newfstatat, at, NAME, &status, 0); }
static long open_it(void) { return files[0] = sys4(SYS_openat, at, NAME, O_RDONLY | O_CLOEXEC, 0); }
static long rename_it(void)
{
    const char *other = "loops-renamed", *from = which ? other : NAME;
    which = !which;
    return sys4(SYS_renameat, at, from, at, which ? other : NAME);
}
static long unlink_it(void) { return sys3(SYS_unlinkat, at, names[0], 0); }
static long close_it(void) { return sys1(SYS_close, files[0]); }
static double one_stat(long *n) { return one(nothing, stat_it, nothing, n); }
static double one_open(long *n) { return one(nothing, open_it, close_all, n); }
static double one_rename(long *n) { return one(nothing, rename_it, nothing, n); }
static double one_unlink(long *n) { return one(write_and_close, unlink_it, nothing, n); }
static double one_close(long *n) { return one(write_all, close_it, unlink_all, n); }

#define CACHED "random blocks of 4 MiB in the page cache: in the processor's caches behind the second level"

const struct loop file_loops[] = {
    ROW("files/read{block=4k,state=cached}", read_any, CACHED, .prepare = cached_4k),
    ROW("files/read{block=128k,state=cached}", read_any, CACHED, .prepare = cached_128k),
    ROW("files/direct-read{block=4k,buffer=aligned,gap=none}", read_any, "other reads before it", .prepare = direct, .most = 1),
    { "files/direct-read{block=4k,buffer=aligned,gap=idle}", "1 ms of sleep before it", .itself = after_sleep, .prepare = direct },
    ROW("files/write{block=4k,mode=buffered}", write_next, "the next block of 8 MiB in the page cache: behind the second level",
        .prepare = written_4k),
    ROW("files/write{block=1m,mode=buffered}", write_next, "the next block of 8 MiB in the page cache: behind the second level",
        .prepare = written_1m),
    ROW("files/write{block=4k,mode=direct}", write_next, "other writes before it", .prepare = direct_written, .most = 1),
    { "files/fsync", "a block that was just written; another one before it", .itself = one_fsync, .prepare = small },
    { "files/fsync{gap=idle}", "a block that was just written, after 1 ms of sleep", .itself = fsync_after_sleep, .prepare = small },
    { "files/fdatasync", "a block that was just written; another one before it", .itself = one_fdatasync, .prepare = small },
    { "files/stat", "one before it", .itself = one_stat, .prepare = with_name },
    ROW("files/stat{timed=batches}", stat_name, "the name in the cache of names", .prepare = with_name),
    { "files/open", "one before it", .itself = one_open, .prepare = with_name },
    ROW("files/open{timed=batches}", open_name, "the name in the cache of names; 64 descriptors", .prepare = with_name, .after = close_all,
        .most = 64),
    ROW("files/create{after=nothing}", create_name, "names of the stretch, 64 at most, which were removed before", .prepare = with_name,
        .after = remove_all, .most = 64),
    { "files/rename", "one before it, of the other name", .itself = one_rename, .prepare = with_name },
    { "files/unlink", "a new file; one before it", .itself = one_unlink, .prepare = with_name },
    { "files/close-after-write", "a new file; one before it", .itself = one_close, .prepare = with_name },
    END,
};
