/* Kernel entry, and calls that avoid it. */
#include "loops.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

static APART void callee(void) { __asm__ volatile(""); }

OPERATION(call) { callee(); }

#ifdef __aarch64__
OPERATION(rdtsc) { __asm__ volatile("mrs x9, cntvct_el0" ::: "x9"); }
#else
OPERATION(rdtsc) { __asm__ volatile("rdtsc" ::: "eax", "edx"); }
#endif

/* The vDSO's functions, called without the C library's around them. */
static int (*vdso_gettime)(clockid_t, struct timespec *);
static int (*vdso_cpu)(unsigned *, unsigned *, void *);
static void find_vdso(void)
{
    void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!vdso)
        skip("there is no vDSO");
    vdso_gettime = (int (*)(clockid_t, struct timespec *))dlsym(vdso, ON("__vdso_clock_gettime", "__kernel_clock_gettime"));
    vdso_cpu = (int (*)(unsigned *, unsigned *, void *))dlsym(vdso, "__vdso_getcpu");
    must(vdso_gettime && ON(vdso_cpu, 1));
}

static struct timespec time_now;
OPERATION(vdso_clock) { vdso_gettime(CLOCK_MONOTONIC, &time_now); }

#ifdef __x86_64__
static unsigned cpu;
OPERATION(vdso_getcpu) { vdso_cpu(&cpu, NULL, NULL); }
#endif

OPERATION(refused) { sys_bare(-1); }
OPERATION(getpid_call) { sys_bare(SYS_getpid); }
OPERATION(getppid_call) { sys_bare(SYS_getppid); }

OPERATION(getppid_function)
{
    pid_t parent = getppid();
    __asm__ volatile("" ::"r"(parent));
}

OPERATION(clock_call)
{
    struct timespec time;
    sys2(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
}

static int descriptor;
static struct stat status;
static char byte;

static void open_zero(void) { must((descriptor = open("/dev/zero", O_RDWR)) >= 0); }
static void open_null(void) { must((descriptor = open("/dev/null", O_RDWR)) >= 0); }

OPERATION(read_byte) { must(sys3(SYS_read, descriptor, &byte, 1) == 1); }
OPERATION(write_byte) { must(sys3(SYS_write, descriptor, &byte, 1) == 1); }
OPERATION(fstat_file) { must(sys2(SYS_fstat, descriptor, &status) == 0); }

/* Loads of an argument: the kernel does not remember the verdict for a call number. */
static void filter_of(unsigned count)
{
    struct sock_filter filter[256];
    for (unsigned at = 0; at + 1 < count; at++)
        filter[at] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args));
    filter[count - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = { count, filter };
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        skip("a seccomp filter is refused");
}

static void filter_of_1(void) { filter_of(1); }
static void filter_of_32(void) { filter_of(32); }
static void filter_of_256(void) { filter_of(256); }

static char selector;

static void dispatch(void)
{
    if (prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, 0, 0, &selector) != 0)
        skip("system call user dispatch is refused");
}

static void without_store_bypass(void)
{
    if (prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, PR_SPEC_DISABLE, 0, 0) != 0)
        skip("the store bypass cannot be disabled for a thread here");
}

#ifdef __x86_64__
OPERATION(int80)
{
    long result = -1;
    __asm__ volatile("int $0x80" : "+a"(result)::"r8", "r9", "r10", "r11", "memory");
}

OPERATION(int80_getpid)
{
    long result = 20;
    __asm__ volatile("int $0x80" : "+a"(result)::"r8", "r9", "r10", "r11", "memory");
}

OPERATION(cpuid)
{
    unsigned leaf = 0;
    __asm__ volatile("cpuid" : "+a"(leaf)::"ebx", "ecx", "edx");
}
#endif

/* io_uring: a ring whose entries stay no-operations. */
static struct {
    int descriptor;
    unsigned batch, *submitted, *taken, *completed;
} ring;

static void make_ring(unsigned batch)
{
    struct io_uring_params asked = { 0 };
    long made = syscall(SYS_io_uring_setup, batch, &asked);
    if (made < 0)
        skip("io_uring_setup(2) is refused");
    size_t length = asked.cq_off.cqes + asked.cq_entries * sizeof(struct io_uring_cqe);
    char *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, made, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entries = mmap(NULL, asked.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                                        made, IORING_OFF_SQES);
    must(at != MAP_FAILED && entries != MAP_FAILED && asked.features & IORING_FEAT_SINGLE_MMAP);
    unsigned *indices = (unsigned *)(at + asked.sq_off.array);
    for (unsigned entry = 0; entry < asked.sq_entries; entry++) {
        entries[entry].opcode = IORING_OP_NOP;
        indices[entry] = entry;
    }
    ring.descriptor = made;
    ring.batch = batch;
    ring.submitted = (unsigned *)(at + asked.sq_off.tail);
    ring.taken = (unsigned *)(at + asked.cq_off.head);
    ring.completed = (unsigned *)(at + asked.cq_off.tail);
}

static void ring_of_1(void) { make_ring(1); }
static void ring_of_8(void) { make_ring(8); }
static void ring_of_64(void) { make_ring(64); }

OPERATION(no_operations)
{
    __atomic_store_n(ring.submitted, *ring.submitted + ring.batch, __ATOMIC_RELEASE);
    long done = sys(SYS_io_uring_enter, ring.descriptor, ring.batch, ring.batch, IORING_ENTER_GETEVENTS, 0, 0);
    must(done == ring.batch);
    __atomic_store_n(ring.taken, __atomic_load_n(ring.completed, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}

#define WARM "what the operation before it left"

const struct loop entry_loops[] = {
    ROW("entry/call", call, "a predicted call", .is_user_code = 1),
    ROW("entry/rdtsc", rdtsc, "nothing in flight waits for it", .is_user_code = 1),
    ROW("entry/vdso-clock", vdso_clock, "the vDSO's code and page in the first-level caches", .prepare = find_vdso, .is_user_code = 1),
#ifdef __x86_64__
    ROW("entry/vdso-getcpu", vdso_getcpu, "the same", .prepare = find_vdso, .is_user_code = 1),
#endif
    ROW("entry/syscall", refused, WARM),
    ROW("entry/syscall-getpid", getpid_call, WARM),
    ROW("entry/syscall-clock", clock_call, WARM),
    ROW("entry/short-call{call=read}", read_byte, "a file that one thread has open", .prepare = open_zero),
    ROW("entry/short-call{call=write}", write_byte, "a file that one thread has open", .prepare = open_null),
    ROW("entry/short-call{call=fstat}", fstat_file, "a file that one thread has open", .prepare = open_null),
    ROW("entry/libc{by=inline}", getppid_call, WARM, .is_user_code = 1),
    ROW("entry/libc{by=wrapper}", getppid_function, "the same; the C library's function is the call around it", .is_user_code = 1),
    ROW("entry/return{depth=1}", refused, "the same; the call around it is the one that is meant"),
    ROW("entry/seccomp{instructions=1}", refused, "the filter in the first-level caches", .prepare = filter_of_1),
    ROW("entry/seccomp{instructions=32}", refused, "the filter in the first-level caches", .prepare = filter_of_32),
    ROW("entry/seccomp{instructions=256}", refused, "the filter in the first-level caches", .prepare = filter_of_256),
    ROW("entry/user-dispatch", refused, "the selector in the first-level cache", .prepare = dispatch),
    ROW("entry/speculation", refused, WARM, .prepare = without_store_bypass),
    ROW("entry/io-uring-nop{batch=1}", no_operations, "an empty ring in the caches", .prepare = ring_of_1),
    ROW("entry/io-uring-nop{batch=8}", no_operations, "an empty ring in the caches", .prepare = ring_of_8, .each = 8),
    ROW("entry/io-uring-nop{batch=64}", no_operations, "an empty ring in the caches", .prepare = ring_of_64, .each = 64),
#ifdef __x86_64__
    ROW("entry/int80", int80, WARM),
    ROW("entry/int80-getpid", int80_getpid, WARM),
    ROW("entry/vm-exit", cpuid, "what the exit before it left in the caches, here and in the hypervisor"),
#endif
    END,
};
