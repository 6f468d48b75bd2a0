/* Times reference loops: one case a process, pinned to one processor.
 *
 *   loops --list
 *   loops [--time SECONDS] [--cpu N] [--other N] [--dir DIRECTORY] [--leaver PROGRAM] CASE
 *
 * Prints a line with tabs: the case; the median over stretches of nanoseconds an operation, with a call and a return around each; the
 * same inline; 0 or 1: which of both is compared; stretches; operations in each; the median of the canary; what a stretch finds. Or
 * `case skipped why`.
 *
 * A stretch is some hundred microseconds of operations between two readings of the clock. Those of both forms take turns, after a
 * tenth of the time as a warm-up. The time of the same loop around nothing is subtracted. The canary is the plainest system call, some
 * microseconds of it before each stretch: where another thread of the core is busy it takes a tenth to a half more, as all else does.
 */
#include "loops.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define STRETCH 150e3 /* nanoseconds */
#define MOST_STRETCHES 20000

extern const struct loop entry_loops[], trap_loops[], memory_loops[], lock_loops[], process_loops[], ipc_loops[], scaling_loops[],
    file_loops[];
static const struct loop *const tables[] = {
    entry_loops, trap_loops, memory_loops, lock_loops, process_loops, ipc_loops, scaling_loops, file_loops,
};
#define TABLES (sizeof tables / sizeof *tables)

const char *directory = ".", *leaver = "";
int home = -1, other = -1, is_lost;
static const struct loop *chosen;

void die(const char *what)
{
    fprintf(stderr, "%s: %s (%s)\n", chosen ? chosen->name : "loops", what, strerror(errno));
    _exit(2);
}

void skip(const char *why)
{
    printf("%s\tskipped\t%s\n", chosen->name, why);
    fflush(stdout);
    _exit(0);
}

void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    must(sched_setaffinity(0, sizeof set, &set) == 0);
}

double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

/* The last processor that is allowed is the loop's, as tollgate chooses it. */
static void find_processors(void)
{
    cpu_set_t set;
    must(sched_getaffinity(0, sizeof set, &set) == 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set)) {
            if (home >= 0 && other < 0)
                other = home;
            home = cpu;
        }
}

struct body {
    int cpu;
    void (*body)(void);
};

static void *run(void *argument)
{
    struct body own = *(struct body *)argument;
    free(argument);
    pin(own.cpu);
    own.body();
    return NULL;
}

void in_thread(int cpu, void (*body)(void))
{
    struct body *own = malloc(sizeof *own);
    must(own != NULL);
    *own = (struct body){ cpu, body };
    pthread_t thread;
    must((errno = pthread_create(&thread, NULL, run, own)) == 0);
}

void in_child(int cpu, void (*body)(void))
{
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin(cpu);
        body();
        _exit(0);
    }
}

static void sleep_on(void)
{
    for (;;)
        pause();
}

void become_threaded(void) { in_thread(home, sleep_on); }

OPERATION(nothing) {}

/* Nanoseconds of a stretch. */
static double stretch(const struct loop *loop, void (*form)(long), long n)
{
    if (loop->before)
        loop->before(n);
    double began = now();
    form(n);
    double took = now() - began;
    if (loop->after)
        loop->after(n);
    return took;
}

/* Nanoseconds of an operation, less those of the loop around it. */
static double operation(const struct loop *loop, void (*form)(long), void (*empty)(long), long n)
{
    double took = stretch(loop, form, n);
    if (!loop->is_chain) {
        double began = now();
        empty(n);
        took -= now() - began;
    }
    return took / n;
}

/* Operations that take about the time of a stretch. */
static long length(const struct loop *loop)
{
    long most = loop->most > 0 ? loop->most : 1L << 24, n = 1;
    while (n < most && stretch(loop, loop->calls, n) < STRETCH / 2)
        n = n * 2 < most ? n * 2 : most;
    return n;
}

static int upwards(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static double median(double *values, long count)
{
    qsort(values, count, sizeof *values, upwards);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double called[MOST_STRETCHES], inlined[MOST_STRETCHES], canaries[MOST_STRETCHES];

/* Nanoseconds of a system call that the kernel refuses. */
static double canary(void)
{
    enum { CALLS = 64 };
    double began = now();
    for (int at = 0; at < CALLS; at++)
        sys_bare(-1);
    return (now() - began) / CALLS;
}

static void measure(const struct loop *loop, double seconds)
{
    if (loop->prepare)
        loop->prepare();
    long n = 1, count = 0;
    double each = loop->each > 0 ? loop->each : 1;
    if (!loop->itself)
        n = length(loop);
    double began = now(), warm = began + seconds * 1e8, end = began + seconds * 1e9, last = began + 10e9;
    while (count < 3 || (now() < end && count < MOST_STRETCHES)) {
        if (now() > last)
            skip("the other processor was busy");
        is_lost = 0;
        canaries[count] = canary();
        if (loop->itself) {
            inlined[count] = called[count] = loop->itself(&n) / n / each;
        } else {
            called[count] = operation(loop, loop->calls, nothing_calls, n) / each;
            inlined[count] = operation(loop, loop->straight, nothing_inline, n) / each;
        }
        if (!is_lost && (now() > warm || count > 0 || loop->most == 1))
            count++;
    }
    printf("%s\t%.5g\t%.5g\t%d\t%ld\t%ld\t%.5g\t%s\n", loop->name, median(called, count), median(inlined, count), loop->is_user_code,
           count, n, median(canaries, count), loop->state);
}

static const struct loop *find(const char *name)
{
    for (size_t table = 0; table < TABLES; table++)
        for (const struct loop *loop = tables[table]; loop->name; loop++)
            if (strcmp(loop->name, name) == 0)
                return loop;
    fprintf(stderr, "%s: there is no such loop; --list says which there are\n", name);
    exit(2);
}

static void list(void)
{
    for (size_t table = 0; table < TABLES; table++)
        for (const struct loop *loop = tables[table]; loop->name; loop++)
            printf("%s\t%s\n", loop->name, loop->state);
}

int main(int count, char **arguments)
{
    double seconds = 0.3;
    find_processors();
    for (int at = 1; at < count; at++) {
        const char *word = arguments[at], *value = at + 1 < count ? arguments[at + 1] : "";
        if (strcmp(word, "--list") == 0) {
            list();
            return 0;
        }
        if (strncmp(word, "--", 2) != 0) {
            chosen = find(word);
            break;
        }
        at++;
        if (strcmp(word, "--time") == 0)
            seconds = atof(value);
        else if (strcmp(word, "--cpu") == 0)
            home = atoi(value);
        else if (strcmp(word, "--other") == 0)
            other = atoi(value);
        else if (strcmp(word, "--dir") == 0)
            directory = value;
        else if (strcmp(word, "--leaver") == 0)
            leaver = value;
    }
    if (!chosen) {
        fprintf(stderr, "loops: no case is named; --list says which there are\n");
        return 2;
    }
    pin(home);
    /* The process that measures has run on this processor alone: on others the kernel would look for its pages in their TLBs. */
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        measure(chosen, seconds);
        fflush(stdout);
        /* Threads may still wait for a message. */
        _exit(0);
    }
    int status;
    must(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
