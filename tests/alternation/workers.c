/* Two processes that take turns on one processor, and how far equal operations of theirs lie apart.
 *
 * An independent measurement for tollgate's sessions: it shares no code with them. A process pair is two forked workers. In each
 * turn the coordinator wakes one of them and then the other, in an order that is drawn. A worker runs for each operation, in random
 * order, a warm-up batch and a timed one of about 50 us. Of a process pair the median of ln(other / base) over its turns counts, of
 * all pairs the median with the interval of the sign test (Conover, Practical Nonparametric Statistics, 3.4), corrected for the
 * number of operations.
 *
 *   cc -O2 -o workers workers.c -lm
 *   ./workers [--time SECONDS] [--turns N] [--cpu N] [--filter] [--profile] [--raw FILE]
 *
 * --filter puts the other worker under a seccomp filter that refuses 40 calls; --profile prints that filter as an OCI profile.
 * --raw writes a line for each process pair: operation, pair, ln(other / base), median cycles of the base, of the other.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
    perror(what);
    exit(2);
}

/* The filter. */

static const struct { const char *name; unsigned x86_64, i386; } refused[] = {
    {"acct", 163, 51}, {"add_key", 248, 286}, {"bpf", 321, 357}, {"clock_adjtime", 305, 343},
    {"clock_settime", 227, 264}, {"delete_module", 176, 129}, {"finit_module", 313, 350}, {"get_mempolicy",
    239, 275}, {"init_module", 175, 128}, {"ioperm", 173, 101}, {"iopl", 172, 110}, {"kcmp", 312, 349},
    {"kexec_load", 246, 283}, {"keyctl", 250, 288}, {"lookup_dcookie", 212, 253}, {"mbind", 237, 274},
    {"mount", 165, 21}, {"move_pages", 279, 317}, {"name_to_handle_at", 303, 341}, {"open_by_handle_at", 304,
    342}, {"perf_event_open", 298, 336}, {"personality", 135, 136}, {"pivot_root", 155, 217},
    {"process_vm_readv", 310, 347}, {"process_vm_writev", 311, 348}, {"ptrace", 101, 26}, {"quotactl", 179,
    131}, {"reboot", 169, 88}, {"request_key", 249, 287}, {"set_mempolicy", 238, 276}, {"setns", 308, 346},
    {"settimeofday", 164, 79}, {"swapoff", 168, 115}, {"swapon", 167, 87}, {"sysfs", 139, 135}, {"umount2",
    166, 52}, {"unshare", 272, 310}, {"uselib", 134, 86}, {"userfaultfd", 323, 374}, {"ustat", 136, 62},
};
#define REFUSED (sizeof refused / sizeof *refused)

static void print_profile(void)
{
    printf("{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"architectures\": [\"SCMP_ARCH_X86_64\", \"SCMP_ARCH_X86\"],\n"
           " \"syscalls\": [{\"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": 1, \"names\": [");
    for (size_t i = 0; i < REFUSED; i++)
        printf("%s\"%s\"", i ? ", " : "", refused[i].name);
    printf("]}]}\n");
}

static void install_filter(void)
{
    struct sock_filter code[4 * REFUSED + 16];
    unsigned short n = 0;
    const unsigned arch[2] = {AUDIT_ARCH_X86_64, AUDIT_ARCH_I386};
    for (int which = 0; which < 2; which++) {
        code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arch[which], 0, 2 * REFUSED + 2);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
        for (size_t i = 0; i < REFUSED; i++) {
            unsigned number = which ? refused[i].i386 : refused[i].x86_64;
            code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
            code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
        }
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
        die("seccomp");
}

/* The operations. */

static char *page;
static int file;
static volatile sig_atomic_t signals;
static char path[] = "/tmp/workers-XXXXXX";

static inline long call(long number, long a, long b, long c, long d)
{
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
}

static void unknown(uint64_t n)
{
    while (n--)
        call(-1, 0, 0, 0, 0);
}

static void own_pid(uint64_t n)
{
    while (n--)
        call(SYS_getpid, 0, 0, 0, 0);
}

static void compat(uint64_t n)
{
    while (n--) {
        long result;
        __asm__ volatile("int $0x80" : "=a"(result) : "a"(-1L) : "r8", "r9", "r10", "r11", "memory");
    }
}

static void vdso_clock(uint64_t n)
{
    struct timespec now;
    while (n--)
        clock_gettime(CLOCK_MONOTONIC, &now);
}

static void minor_fault(uint64_t n)
{
    while (n--) {
        madvise(page, 4096, MADV_DONTNEED);
        *(volatile char *)page = 1;
    }
}

static void on_signal(int number)
{
    signals += number != 0;
}

static void signal_self(uint64_t n)
{
    pid_t pid = getpid();
    while (n--)
        syscall(SYS_tgkill, pid, pid, SIGUSR1);
}

static void open_close(uint64_t n)
{
    while (n--) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            die(path);
        close(fd);
    }
}

static void cached_read(uint64_t n)
{
    char buffer[4096];
    while (n--)
        if (pread(file, buffer, sizeof buffer, 0) != sizeof buffer)
            die("pread");
}

static struct { const char *name; void (*run)(uint64_t); uint64_t count; } operations[] = {
    {"syscall", unknown, 0},
    {"getpid", own_pid, 0},
    {"int 0x80", compat, 0},
    {"vdso clock", vdso_clock, 0},
    {"minor fault", minor_fault, 0},
    {"signal", signal_self, 0},
    {"open+close", open_close, 0},
    {"pread", cached_read, 0},
};
#define OPERATIONS (sizeof operations / sizeof *operations)

static inline uint64_t cycles(void)
{
    unsigned low, high, cpu;
    __asm__ volatile("lfence\n\trdtscp\n\tlfence" : "=a"(low), "=d"(high), "=c"(cpu) : : "memory");
    return (uint64_t)high << 32 | low;
}

static uint64_t timed(size_t operation)
{
    uint64_t begin = cycles();
    operations[operation].run(operations[operation].count);
    return cycles() - begin;
}

/* Random numbers: xorshift64* (Vigna, 2016). */

static uint64_t state;

static uint64_t drawn(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717u;
}

/* The workers. */

struct answer { uint64_t cycles[OPERATIONS]; };

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        die("sched_setaffinity");
}

static void prepare(int cpu)
{
    pin(cpu);
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (page == MAP_FAILED || file < 0)
        die("prepare");
}

/* The file goes with the coordinator; the kernel ends the workers. */
static void on_end(int number)
{
    unlink(path);
    _exit(128 + number);
}

static void move_all(int fd, void *buffer, size_t size, int is_write)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = is_write ? write(fd, (char *)buffer + done, size - done)
                             : read(fd, (char *)buffer + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(is_write ? 2 : 0); /* The other end is gone: it has had enough. */
        done += (size_t)n;
    }
}

static void work(int from, int to, int cpu, int is_filtered)
{
    struct answer answer;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    prepare(cpu);
    if (is_filtered)
        install_filter();
    for (;;) {
        size_t order[OPERATIONS];
        move_all(from, &state, sizeof state, 0);
        for (size_t i = 0; i < OPERATIONS; i++)
            order[i] = i;
        for (size_t i = OPERATIONS - 1; i > 0; i--) {
            size_t j = drawn() % (i + 1), kept = order[i];
            order[i] = order[j];
            order[j] = kept;
        }
        memset(&answer, 0, sizeof answer);
        for (size_t i = 0; i < OPERATIONS; i++) {
            if (!operations[order[i]].count)
                continue;
            timed(order[i]);
            answer.cycles[order[i]] = timed(order[i]);
        }
        move_all(to, &answer, sizeof answer, 1);
    }
}

struct worker { pid_t pid; int to, from; };

static struct worker start(int cpu, int is_filtered)
{
    int down[2], up[2];
    if (pipe2(down, O_CLOEXEC) || pipe2(up, O_CLOEXEC))
        die("pipe2");
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        close(down[1]);
        close(up[0]);
        work(down[0], up[1], cpu, is_filtered);
    }
    close(down[0]);
    close(up[1]);
    return (struct worker){pid, down[1], up[0]};
}

static struct answer turn(struct worker *worker, uint64_t seed)
{
    struct answer answer;
    if (write(worker->to, &seed, sizeof seed) != sizeof seed)
        die("a worker has ended");
    for (size_t done = 0; done < sizeof answer;) {
        ssize_t n = read(worker->from, (char *)&answer + done, sizeof answer - done);
        if (n <= 0)
            die("a worker has ended");
        done += (size_t)n;
    }
    return answer;
}

/* Both are let go before either is waited for: the later one holds copies of the pipes of the earlier. */
static void end(struct worker workers[2])
{
    for (int side = 0; side < 2; side++) {
        close(workers[side].to);
        close(workers[side].from);
    }
    for (int side = 0; side < 2; side++)
        waitpid(workers[side].pid, NULL, 0);
}

/* Counts for 50 us, in a process that is thrown away; 0 for int 0x80 where it does not work. */
static void calibrate(int cpu, double hertz)
{
    uint64_t *counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED)
        die("mmap");
    for (size_t i = 0; i < OPERATIONS; i++) {
        pid_t pid = fork();
        if (pid < 0)
            die("fork");
        if (pid == 0) {
            prepare(cpu);
            operations[i].count = 16;
            uint64_t least = UINT64_MAX;
            for (int again = 0; again < 50; again++) {
                uint64_t one = timed(i);
                least = one < least ? one : least;
            }
            double each = (double)least / 16.0;
            double count = 50e-6 * hertz / (each > 1.0 ? each : 1.0);
            counts[i] = count < 1.0 ? 1 : (uint64_t)count;
            _exit(0);
        }
        int status = -1;
        waitpid(pid, &status, 0);
        operations[i].count = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? counts[i] : 0;
    }
    munmap(counts, 4096);
}

/* Statistics. */

static int ascending(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, ascending);
    return n == 0 ? NAN : n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

/* The largest k with P(B < k) <= tail, B binomial of n and one half; 0 where there is none. */
static size_t sign_rank(size_t n, double tail)
{
    double below = 0;
    for (size_t k = 0; k < n / 2; k++) {
        below += exp(lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1) - (double)n * M_LN2);
        if (below > tail)
            return k;
    }
    return n / 2;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    double time_limit = 20;
    size_t turns = 40;
    int cpu = -1, is_filtered = 0;
    FILE *raw = NULL;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--filter"))
            is_filtered = 1;
        else if (!strcmp(argv[i], "--profile"))
            return print_profile(), 0;
        else if (!strcmp(argv[i], "--time") && value)
            time_limit = atof(argv[++i]);
        else if (!strcmp(argv[i], "--turns") && value)
            turns = strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--cpu") && value)
            cpu = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--raw") && value) {
            raw = fopen(argv[++i], "w");
            if (!raw)
                die(argv[i]);
        } else
            return fprintf(stderr, "workers: %s is no option\n", argv[i]), 2;
    }
    if (turns < 1 || turns > 100000 || !(time_limit > 0))
        return fprintf(stderr, "workers: --turns takes 1 to 100000, --time some seconds\n"), 2;

    cpu_set_t allowed, others;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        die("sched_getaffinity");
    if (cpu < 0)
        for (int i = 0; i < CPU_SETSIZE; i++)
            if (CPU_ISSET(i, &allowed))
                cpu = i; /* The last one. */
    others = allowed;
    CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others))
        sched_setaffinity(0, sizeof others, &others);

    char content[4096] = {1};
    int made = mkstemp(path);
    if (made < 0 || write(made, content, sizeof content) != sizeof content)
        die(path);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, on_end);
    signal(SIGTERM, on_end);
    signal(SIGHUP, on_end);
    state = (uint64_t)time(NULL) * 2654435761u ^ (uint64_t)getpid() ^ 88172645463325252u;

    double began = seconds();
    uint64_t ticks = cycles();
    while (seconds() - began < 0.1)
        ;
    double hertz = (double)(cycles() - ticks) / (seconds() - began);
    calibrate(cpu, hertz);

    size_t pairs = 0, room = 1 << 14;
    double *logs[OPERATIONS], *adds[OPERATIONS], *bases[OPERATIONS], *ones[3];
    for (size_t i = 0; i < OPERATIONS; i++) {
        logs[i] = malloc(room * sizeof(double));
        adds[i] = malloc(room * sizeof(double));
        bases[i] = malloc(room * sizeof(double));
        if (!logs[i] || !adds[i] || !bases[i])
            die("malloc");
    }
    struct answer *answers[2];
    for (int i = 0; i < 2; i++)
        if (!(answers[i] = malloc(turns * sizeof **answers)))
            die("malloc");
    for (int i = 0; i < 3; i++)
        if (!(ones[i] = malloc(turns * sizeof(double))))
            die("malloc");
    began = seconds();
    while (seconds() - began < time_limit && pairs < room) {
        struct worker workers[2];
        int started_first = (int)(drawn() >> 63);
        workers[started_first] = start(cpu, is_filtered && started_first);
        workers[!started_first] = start(cpu, is_filtered && !started_first);
        for (int side = 0; side < 2; side++)
            turn(&workers[side], drawn()); /* Its first turn touches everything, and is not kept. */
        for (size_t i = 0; i < turns; i++) {
            uint64_t seed = drawn() | 1;
            int first = (int)(drawn() >> 63);
            answers[first][i] = turn(&workers[first], seed);
            answers[!first][i] = turn(&workers[!first], seed);
        }
        end(workers);
        for (size_t op = 0; op < OPERATIONS; op++) {
            double count = (double)operations[op].count;
            if (!operations[op].count)
                continue;
            for (size_t i = 0; i < turns; i++) {
                double base = (double)answers[0][i].cycles[op], other = (double)answers[1][i].cycles[op];
                ones[0][i] = log(other / base);
                ones[1][i] = (other - base) / count;
                ones[2][i] = base / count;
            }
            logs[op][pairs] = median(ones[0], turns);
            adds[op][pairs] = median(ones[1], turns);
            bases[op][pairs] = median(ones[2], turns);
            if (raw)
                fprintf(raw, "%zu %zu %.9g %.9g %.9g\n", op, pairs, logs[op][pairs], bases[op][pairs], adds[op][pairs]);
        }
        pairs++;
    }
    unlink(path);

    printf("%zu process pairs of %zu turns, processor %d, %.2f GHz\n", pairs, turns, cpu, hertz / 1e9);
    printf("operation\tbase_ns\trange\tratio\tlow\thigh\tadds_cycles\n");
    size_t rank = sign_rank(pairs, 0.05 / OPERATIONS / 2);
    for (size_t op = 0; op < OPERATIONS; op++) {
        if (!operations[op].count) {
            printf("%s\tdoes not work here\n", operations[op].name);
            continue;
        }
        double ratio = exp(median(logs[op], pairs)), base = median(bases[op], pairs);
        double low = rank ? exp(logs[op][rank - 1]) : NAN, high = rank ? exp(logs[op][pairs - rank]) : NAN;
        printf("%s\t%.1f\t%.0f %%\t%.4f\t%.4f\t%.4f\t%.1f\n", operations[op].name, base / hertz * 1e9,
               100 * (bases[op][pairs - 1] - bases[op][0]) / base, ratio, low, high, median(adds[op], pairs));
    }
    if (raw && fclose(raw))
        die("--raw");
    return 0;
}
