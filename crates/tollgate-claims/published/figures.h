/* What the programs of this directory share: a clock, pinning, and how a figure is said. Each program is written after the published
   description; no line is copied. Without a macro it does what was published. A macro makes one correction. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static inline double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

/* A line for each figure: its name and its value. */
static inline void say(const char *figure, double value) { printf("%s %.9g\n", figure, value); }

/* Ends the program with a sentence. */
static inline void fail(const char *what, int why)
{
    printf("%s: %s\n", what, strerror(why));
    exit(1);
}

/* Binds this thread to the n-th processor of those that the program may use. */
static inline void pin(int n)
{
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all) && n-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
        }
    }
}
