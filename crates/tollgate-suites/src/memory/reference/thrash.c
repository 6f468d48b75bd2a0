/* The published loop of two writers (S. Takeuchi, "Cache thrashing on a Ryzen 1800X", 2017), each thread on a processor of its own, its
 * pages touched before, with changing values.
 *
 *   thrash KIB PAGE SHARED CPU CPU
 *
 * For each line that it reads it runs both threads from the first line of their buffer on, and prints the median of the first one's
 * stretches in ns a store, of those in which both ran.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define HUGE_PAGE (2L << 20)
#define STRETCH 2048L
#define STRETCHES 4000
#define LINE 64

static long size;
static char *buffer[2];
static int cpu[2];
static atomic_int ready, stop;
static atomic_long done[2];
static double took[STRETCHES];
static int kept;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static int upwards(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static char *mapped(const char *page)
{
    char *at = mmap(NULL, size + 2 * HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(3);
    at = (char *)(((intptr_t)at + HUGE_PAGE - 1) & -HUGE_PAGE);
    madvise(at, (size + HUGE_PAGE - 1) & -HUGE_PAGE, strcmp(page, "2m") ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    memset(at, 1, size);
    return at;
}

static void *store(void *which)
{
    long own = (long)which, at = 0;
    char *bytes = buffer[own], value = (char)own;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu[own], &set);
    sched_setaffinity(0, sizeof set, &set);
    ready++;
    while (ready < 2)
        ;
    for (long stretch = 0; !stop; stretch++) {
        long theirs = done[1 - own];
        double began = now();
        for (long store = 0; store < STRETCH; store++) {
            *(volatile char *)(bytes + at) = value += 2;
            at = at + LINE < size ? at + LINE : 0;
        }
        double ended = now();
        done[own] = stretch;
        if (own != 0)
            continue;
        /* The other one got on, and this one was not away. */
        if (done[1] > theirs && stretch > 16 && ended - began < STRETCH * 200.0)
            took[kept++] = (ended - began) / STRETCH;
        if (kept == STRETCHES || stretch == 20 * STRETCHES)
            stop = 1;
    }
    return NULL;
}

int main(int count, char **words)
{
    if (count < 6)
        return 2;
    size = atol(words[1]) << 10;
    cpu[0] = atoi(words[4]), cpu[1] = atoi(words[5]);
    buffer[0] = mapped(words[2]);
    buffer[1] = strcmp(words[3], "true") ? mapped(words[2]) : buffer[0];
    for (char line[8]; fgets(line, sizeof line, stdin);) {
        pthread_t threads[2];
        ready = stop = kept = 0;
        for (long own = 0; own < 2; own++)
            pthread_create(&threads[own], NULL, store, (void *)own);
        for (long own = 0; own < 2; own++)
            pthread_join(threads[own], NULL);
        qsort(took, kept, sizeof *took, upwards);
        printf("%.4f\n", kept > 0 ? took[kept / 2] : -1.0);
        fflush(stdout);
    }
    return 0;
}
