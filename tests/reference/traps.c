/* Exceptions, page faults and signals. */
#include "loops.h"
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

/* Handlers: each counts, and steps over what trapped. */

static volatile long handled;
static long stepped; /* bytes of the instruction */

#ifdef __aarch64__
#define NEXT(context) ((ucontext_t *)context)->uc_mcontext.pc
#else
#define NEXT(context) ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]
#endif

static void handle(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    NEXT(context) += stepped;
    handled++;
}

#ifdef __x86_64__
static void handle_flag(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x40100L; /* AC, TF */
    handled++;
}
#endif

static void handle_protection(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    sys3(SYS_mprotect, (long)info->si_addr & -PAGE, PAGE, PROT_READ | PROT_WRITE);
    handled++;
}

static void install(int signal, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = { .sa_flags = SA_SIGINFO };
    action.sa_sigaction = handler;
    must(sigaction(signal, &action, NULL) == 0);
}

/* The address of a breakpoint is that of the next instruction, on arm64 its own. */
static void on_breakpoint(void) { stepped = ON(0, 4), install(SIGTRAP, handle); }
#ifdef __x86_64__
static void on_division(void) { stepped = 2, install(SIGFPE, handle); }
static void on_protection(void) { stepped = 1, install(SIGSEGV, handle); }
static void on_step(void) { install(SIGTRAP, handle_flag); }
static void on_alignment(void) { install(SIGBUS, handle_flag); }
#else
static void on_alignment(void) { stepped = 4, install(SIGBUS, handle); }
#endif
static pid_t self;
static void on_own_signal(void) { self = getpid(), install(SIGUSR1, handle); }

static void begin(long n) { (void)n, handled = 0; }
static void all_handled(long n) { must(handled == n); }
#define COUNTED .before = begin, .after = all_handled

OPERATION(breakpoint) { __asm__ volatile(ON("int3", "brk 0") ::: "memory"); }
#ifdef __x86_64__
OPERATION(division) { __asm__ volatile("xor %%ecx, %%ecx; div %%ecx" ::: "eax", "ecx", "edx", "memory"); }
OPERATION(privileged) { __asm__ volatile("hlt" ::: "memory"); }
OPERATION(step) { __asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq; nop" ::: "memory", "cc"); }
#endif

static char odd[64] __attribute__((aligned(64)));
OPERATION(misaligned)
{
    __asm__ volatile(ON("pushfq; orl $0x40000, (%%rsp); popfq; mov (%0), %%rax", "ldxr x9, [%0]") ::"r"(odd + 1)
                     : ON("rax", "x9"), "memory", "cc");
}

#ifdef __aarch64__
static uint64_t id, other_id;
static void read_id(void) { __asm__ volatile("mrs %0, id_aa64isar0_el1" : "=r"(id)); }
OPERATION(id_register)
{
    uint64_t now;
    __asm__ volatile("mrs %0, id_aa64isar0_el1" : "=r"(now));
    other_id |= now ^ id;
}
static void all_equal(long n) { must(n > 0 && other_id == 0); }
#endif

OPERATION(own_signal) { must(sys3(SYS_tgkill, self, self, SIGUSR1) == 0); }

static struct kernel_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    unsigned long mask;
} kernel_action;

static void find_action(void)
{
    on_own_signal();
    must(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &kernel_action, 8) == 0);
}

OPERATION(install_handler) { must(sys4(SYS_rt_sigaction, SIGUSR1, &kernel_action, 0, 8) == 0); }

/* Page faults. */

#define HUGE_PAGE (2L << 20)
static char *region, *next;
static long pages, stride;

static char *aligned(long length, int protection, int flags, int file)
{
    char *at = mmap(NULL, length + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(at != MAP_FAILED);
    at = (char *)(((long)at + HUGE_PAGE - 1) & -HUGE_PAGE);
    must(mmap(at, length, protection, flags | MAP_FIXED, file, 0) == at);
    return at;
}

static void anonymous(long count, long bytes, int advice)
{
    pages = count, stride = bytes;
    region = aligned(pages * stride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    madvise(region, pages * stride, advice);
}

static void small(void) { anonymous(256, PAGE, MADV_NOHUGEPAGE); }
static void huge(void)
{
    anonymous(4, HUGE_PAGE, MADV_HUGEPAGE);
    unsigned char there = 0;
    region[0] = 1;
    must(mincore(region + HUGE_PAGE - PAGE, PAGE, &there) == 0);
    if (!(there & 1))
        skip("no huge pages here");
}

static int file_of(long length)
{
    int file = memfd_create("loops", 0);
    char *bytes = malloc(length);
    must(file >= 0 && bytes != NULL);
    memset(bytes, 0x5a, length);
    must(write(file, bytes, length) == length);
    free(bytes);
    return file;
}

static void private_file(void)
{
    pages = 256, stride = PAGE;
    region = aligned(pages * stride, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_of(pages * stride));
    madvise(region, pages * stride, MADV_NOHUGEPAGE);
}

/* A fault maps the 16 pages around it (fault_around_bytes, 64 KiB by default). */
static void shared_file(void)
{
    pages = 64, stride = 16 * PAGE;
    region = aligned(pages * stride, PROT_READ, MAP_SHARED, file_of(pages * stride));
    madvise(region, pages * stride, MADV_NOHUGEPAGE);
}

static void discard(long n)
{
    (void)n;
    must(madvise(region, pages * stride, MADV_DONTNEED) == 0);
    next = region;
}

static void read_all(long n)
{
    for (long page = 0; page < n; page++)
        (void)*(volatile char *)(region + page * stride);
}

static void discard_and_read(long n) { discard(n), read_all(n); }
static void read_and_discard(long n) { discard(n), read_all(n), discard(n); }

OPERATION(touch)
{
    *(volatile char *)next = 1;
    next += stride;
}

OPERATION(load)
{
    (void)*(volatile char *)next;
    next += stride;
}

/* In a function that has called others, which have returned: no call around the loop has yet to return, but that of this function, as in
 * a program's main. */
INLINE double touch_after_calls(long *n, void (*before)(long))
{
    *n = 64;
    before(*n);
    double began = now();
    for (long left = *n; left > 0; left--)
        touch();
    return now() - began;
}

static double touch_fresh(long *n) { return touch_after_calls(n, discard); }
static double touch_copied(long *n) { return touch_after_calls(n, discard_and_read); }

static void unmapped(void)
{
    pages = 512, stride = PAGE;
    region = aligned(pages * stride, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

static void unmap(long n)
{
    (void)n;
    must(mmap(region, pages * stride, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == region);
    next = region;
}

OPERATION(populate)
{
    long at = sys(SYS_mmap, (long)next, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0);
    must(at == (long)next);
    next += 64 * PAGE;
}

static void read_only(void) { small(), stepped = ON(3, 4), install(SIGSEGV, handle); }
static void repaired(void) { small(), install(SIGSEGV, handle_protection); }

static void protect(long n)
{
    must(mprotect(region, pages * stride, PROT_READ | PROT_WRITE) == 0);
    for (long page = 0; page < n; page++)
        region[page * stride] = 0;
    must(mprotect(region, pages * stride, PROT_READ) == 0);
    next = region;
    handled = 0;
}

/* Three bytes long, on arm64 four, which the handler steps over. */
OPERATION(store_protected)
{
    __asm__ volatile(ON("movb $1, (%%rax)", "strb wzr, [%0]") ::ON("a", "r")(next) : "memory");
    next += PAGE;
}

#define REUSED "pages that the stretch before gave back: the first of the processor's list, in its second-level cache"
#define COPIED ", the file's pages in the caches' second level or behind it"

const struct loop trap_loops[] = {
    ROW("traps/breakpoint", breakpoint, "the handler and its stack in the caches", .prepare = on_breakpoint, COUNTED),
#ifdef __x86_64__
    ROW("traps/divide", division, "the same", .prepare = on_division, COUNTED),
    ROW("traps/general-protection", privileged, "the same", .prepare = on_protection, COUNTED),
    ROW("traps/single-step", step, "the same", .prepare = on_step, COUNTED),
#endif
#ifdef __aarch64__
    ROW("traps/id-register", id_register, "the kernel's tables of registers in the caches", .prepare = read_id, .after = all_equal),
#endif
    ROW("traps/alignment", misaligned, "the same", .prepare = on_alignment, COUNTED),
    ROW("traps/segv{repair=skip}", store_protected, "another page each, present and read-only", .prepare = read_only, .before = protect,
        .after = all_handled, .most = 256),
    ROW("traps/segv{repair=mprotect}", store_protected, "another page each, present and read-only, of one mapping that is split at it",
        .prepare = repaired, .before = protect, .after = all_handled, .most = 256),
    ROW("traps/signal-install", install_handler, "the action in the caches", .prepare = find_action),
    ROW("traps/signal-self", own_signal, "the handler and its stack in the caches", .prepare = on_own_signal, COUNTED),
    ROW("traps/minor-fault{page=4k}", touch, REUSED, .prepare = small, .before = discard, .most = 256),
    ROW("traps/minor-fault{page=thp}", touch, "huge pages that the stretch before gave back", .prepare = huge, .before = discard,
        .most = 4),
    ROW("traps/cow-fault", touch, REUSED COPIED, .prepare = private_file,
        .before = discard_and_read, .most = 256),
    { "traps/return{calls=none,fault=minor}", REUSED, .prepare = small, .itself = touch_fresh },
    ROW("traps/return{calls=loop,fault=minor}", touch, REUSED, .prepare = small, .before = discard, .most = 256, .is_user_code = 1),
    ROW("traps/return{calls=each,fault=minor}", touch, REUSED, .prepare = small, .before = discard, .most = 256),
    { "traps/return{calls=none,fault=cow}", REUSED COPIED, .prepare = private_file, .itself = touch_copied },
    ROW("traps/return{calls=loop,fault=cow}", touch, REUSED COPIED, .prepare = private_file, .before = discard_and_read, .most = 256,
        .is_user_code = 1),
    ROW("traps/return{calls=each,fault=cow}", touch, REUSED COPIED, .prepare = private_file, .before = discard_and_read, .most = 256),
    ROW("traps/file-fault", load, "the file's pages and the kernel's data of them in the caches", .prepare = shared_file,
        .before = read_and_discard, .most = 64),
    ROW("traps/fresh-page{by=touch}", touch, REUSED, .prepare = small, .before = discard, .most = 256),
    ROW("traps/fresh-page{by=populate}", populate, REUSED, .prepare = unmapped, .before = unmap, .most = 8, .each = 64),
    ROW("traps/fresh-page{by=huge}", touch, "huge pages that the stretch before gave back", .prepare = huge, .before = discard, .most = 4,
        .each = 512),
    END,
};
