/* Two threads, each of which stores a byte to every line of a buffer of 64-byte lines again and again: to one buffer, or each to its own. The
   time is from before the first thread is created until both have ended. The program is bound to two processors, its threads to none.
   The figure whose name ends with -together is the part of the time in which both ran: what both used of the processors, less the time itself.
   PINNED   each thread is bound to a processor
   TOUCHED  each page was stored to before the time begins
   CHANGING each store changes the byte: the published program stores 0 over 0
   TOGETHER the time begins when both threads are there */
#include "figures.h"
#include <sys/mman.h>

/* Published: 1 << 30. */
#ifndef STORES
#define STORES (1 << 25)
#endif
#define LINE 64

static volatile char *buffers[2];
static size_t size;
static pthread_barrier_t start;
static double began;

static void *store(void *which)
{
    long thread = (long)which;
    volatile char *buffer = buffers[thread];
    char value = 0;
#ifdef PINNED
    pin(thread);
#endif
#ifdef TOGETHER
    pthread_barrier_wait(&start);
    if (thread == 0)
        began = now_ns();
#endif
    for (long stores = 0; stores < STORES;) {
        for (size_t at = 0; at < size && stores < STORES; at += LINE, stores++)
            buffer[at] = value;
#ifdef CHANGING
        value = value + 2 + thread;
#endif
    }
    return NULL;
}

static volatile char *memory(void)
{
    char *made = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        fail("mmap", errno);
#ifdef TOUCHED
    memset(made, 1, size);
#endif
    return made;
}

static double used_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void measure(const char *name, const char *together, int is_shared)
{
    pthread_t threads[2];
    buffers[0] = memory();
    buffers[1] = is_shared ? buffers[0] : memory();
    pthread_barrier_init(&start, NULL, 2);
    double used = used_ns(), all = now_ns(), ended;
    began = all;
    for (long thread = 0; thread < 2; thread++) {
        int why = pthread_create(&threads[thread], NULL, store, (void *)thread);
        if (why)
            fail("pthread_create", why);
    }
    for (int thread = 0; thread < 2; thread++)
        pthread_join(threads[thread], NULL);
    ended = now_ns();
    say(name, (ended - began) / STORES);
    say(together, (used_ns() - used) / (ended - all) - 1);
    munmap((void *)buffers[0], size);
    if (!is_shared)
        munmap((void *)buffers[1], size);
}

int main(void)
{
    cpu_set_t all, two;
    int bound = 0;
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&two);
    for (int cpu = 0; cpu < CPU_SETSIZE && bound < 2; cpu++) {
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cpu, &two);
            bound++;
        }
    }
    if (bound < 2)
        fail("two threads need two processors, and there is one", ENOTSUP);
    sched_setaffinity(0, sizeof two, &two);
    size = 8 << 10;
    measure("unshared-8", "unshared-8-together", 0);
    measure("shared-8", "shared-8-together", 1);
    size = 16 << 20;
    measure("unshared-16384", "unshared-16384-together", 0);
    measure("shared-16384", "shared-16384-together", 1);
    return 0;
}
