/* A thousand children that only pause, then a thousand threads: the time of one until the last is created, and the memory of one by what the
   machine's free memory has become less by.
   PINNED   the program is bound to a processor
   PAUSED   time and memory are taken when each of them pauses: a child that has not run yet has touched no page
   ACCOUNTS memory by the kernel's accounts (private pages, page tables, kernel stack), in which nothing else of the machine is */
#include "figures.h"
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define NUMBER 1000

/* How many pause, in memory that the children share. */
static atomic_int *paused;

/* KB in the lines of a file of /proc that begin with this name. */
static double kb(const char *file, const char *name)
{
    char line[256];
    double sum = 0;
    FILE *from = fopen(file, "r");
    if (!from)
        fail(file, errno);
    while (fgets(line, sizeof line, from))
        if (strncmp(line, name, strlen(name)) == 0)
            sum += strtod(line + strlen(name), NULL);
    fclose(from);
    return sum;
}

/* Of the machine; the population's own are the difference. */
static double stacks_kb(void) { return kb("/proc/meminfo", "KernelStack:"); }

static double own_kb(pid_t pid)
{
    char rollup[64], status[64];
    snprintf(rollup, sizeof rollup, "/proc/%d/smaps_rollup", pid);
    snprintf(status, sizeof status, "/proc/%d/status", pid);
    return kb(rollup, "Private_Dirty:") + kb(status, "VmPTE:");
}

static void rest(void)
{
    atomic_fetch_add(paused, 1);
    for (;;)
        pause();
}

static void *thread(void *unused)
{
    (void)unused;
    rest();
    return NULL;
}

static void wait_for_all(void)
{
#ifdef PAUSED
    while (atomic_load(paused) < NUMBER)
        usleep(100);
#endif
}

static void processes(void)
{
    static pid_t children[NUMBER];
    pid_t parent = getpid();
    int made = 0, why = 0;
    double free = kb("/proc/meminfo", "MemFree:"), stacks = stacks_kb(), began = now_ns();
    for (; made < NUMBER; made++) {
        pid_t child = fork();
        if (child == 0) {
            /* So that none is left where this program is killed. */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                _exit(1);
            rest();
        }
        if (child < 0) {
            why = errno;
            break;
        }
        children[made] = child;
    }
    if (!why) {
        wait_for_all();
        say("process-time", (now_ns() - began) / NUMBER / 1e3);
#ifdef ACCOUNTS
        (void)free;
        say("process-memory", own_kb(children[NUMBER / 2]) + (stacks_kb() - stacks) / NUMBER);
#else
        (void)stacks;
        say("process-memory", (free - kb("/proc/meminfo", "MemFree:")) / NUMBER);
#endif
    }
    for (int child = 0; child < made; child++)
        kill(children[child], SIGKILL);
    for (int child = 0; child < made; child++)
        waitpid(children[child], NULL, 0);
    if (why)
        fail("fork", why);
}

static void threads(void)
{
    pthread_t made;
#ifdef ACCOUNTS
    double before = own_kb(getpid());
#endif
    double stacks = stacks_kb(), free = kb("/proc/meminfo", "MemFree:"), began = now_ns();
    atomic_store(paused, 0);
    for (int n = 0; n < NUMBER; n++) {
        int why = pthread_create(&made, NULL, thread, NULL);
        if (why)
            fail("pthread_create", why);
    }
    wait_for_all();
    say("thread-time", (now_ns() - began) / NUMBER / 1e3);
#ifdef ACCOUNTS
    (void)free;
    say("thread-memory", (own_kb(getpid()) - before + stacks_kb() - stacks) / NUMBER);
#else
    (void)stacks;
    say("thread-memory", (free - kb("/proc/meminfo", "MemFree:")) / NUMBER);
#endif
}

int main(void)
{
#ifdef PINNED
    pin(0);
#endif
    setvbuf(stdout, NULL, _IOLBF, 0);
    paused = mmap(NULL, sizeof *paused, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (paused == MAP_FAILED)
        fail("mmap", errno);
    processes();
    threads();
    /* The threads end with the program. */
    return 0;
}
