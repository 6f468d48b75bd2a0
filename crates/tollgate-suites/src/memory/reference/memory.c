/* Reference loops of memory, on the processors that it was started on.
 *
 *   memory latency KIB PAGE | tlb PAGES STRIDE_KIB PAGE | read KIB PAGE | write KIB PAGE | copy KIB PAGE
 *
 * For each line that it reads it goes through all that it works on until that is cached, then prints the median of some stretches in ns: of a dependent
 * load, or of 4 KiB that were read, written or copied.
 */
#define _GNU_SOURCE
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define HUGE_PAGE (2L << 20)
#define STRETCHES 21
#define LOADS 500
#define CHUNK 4096L
/* Cells of 16 MiB. */
#define LARGEST_CACHED (16L << 20 >> 6)

static char *set;
static long length;

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

static char *mapped(long bytes, const char *page)
{
    char *at = mmap(NULL, bytes + 2 * HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(3);
    at = (char *)(((intptr_t)at + HUGE_PAGE - 1) & -HUGE_PAGE);
    madvise(at, (bytes + HUGE_PAGE - 1) & -HUGE_PAGE, strcmp(page, "2m") ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    memset(at, 1, bytes);
    return at;
}

/* One cell in each stride, linked in one random cycle (Sattolo). */
static void *volatile *cell;
static long cells;
static void link_cells(long count, long stride)
{
    uint32_t *order = malloc(count * sizeof *order);
    uint64_t drawn = 0x9e3779b97f4a7c15;
    for (long at = 0; at < count; at++)
        order[at] = at;
    for (long at = count - 1; at > 0; at--) {
        drawn ^= drawn << 13, drawn ^= drawn >> 7, drawn ^= drawn << 17;
        long with = drawn % at;
        uint32_t kept = order[at];
        order[at] = order[with], order[with] = kept;
    }
    /* Not all on the same line of a page. */
#define CELL(at) (set + (at) * stride + (stride > 64 ? (at) * 11400714819323198485ull % (stride / 64) * 64 : 0))
    for (long at = 0; at < count; at++)
        *(void **)CELL((uint64_t)at) = CELL((uint64_t)order[at]);
    cell = (void *volatile *)CELL(0ull);
    cells = count;
    free(order);
}

static void follow(long loads)
{
    void *volatile *at = cell;
    while (loads--)
        at = *at;
    cell = at;
}

/* Passes, each stretch after the previous one. */
static char *other;
static long offset;
static __m256i value, sum;

static long next(void)
{
    long at = offset;
    offset = offset + CHUNK < length ? offset + CHUNK : 0;
    return at;
}

#define PASS(name, what)                                                   \
    static __attribute__((target("avx2"))) void name(long chunks)          \
    {                                                                      \
        for (; chunks > 0; chunks--) {                                     \
            long at = next();                                              \
            __m256i *here = (__m256i *)(set + at), *there = (__m256i *)(other + at); \
            (void)here, (void)there;                                       \
            for (long word = 0; word < CHUNK / 32; word += 4) {            \
                what(0) what(1) what(2) what(3)                            \
            }                                                              \
            __asm__ volatile("" ::: "memory");                             \
        }                                                                  \
    }
#define READ(n) sum = _mm256_add_epi64(sum, _mm256_load_si256(here + word + n));
#define WRITE(n) _mm256_store_si256(here + word + n, value);
#define COPY(n) _mm256_store_si256(there + word + n, _mm256_load_si256(here + word + n));
PASS(write_chunks, WRITE)
PASS(copy_chunks, COPY)

static __attribute__((target("avx2"))) void read_chunks(long chunks)
{
    __m256i a = sum, b = sum, c = sum, d = sum;
    for (; chunks > 0; chunks--) {
        const __m256i *from = (const __m256i *)(set + next()), *end = from + CHUNK / 32;
        for (; from != end; from += 8) {
            a = _mm256_add_epi64(a, from[0]), b = _mm256_add_epi64(b, from[1]);
            c = _mm256_add_epi64(c, from[2]), d = _mm256_add_epi64(d, from[3]);
            a = _mm256_add_epi64(a, from[4]), b = _mm256_add_epi64(b, from[5]);
            c = _mm256_add_epi64(c, from[6]), d = _mm256_add_epi64(d, from[7]);
        }
    }
    sum = _mm256_add_epi64(_mm256_add_epi64(a, b), _mm256_add_epi64(c, d));
}

int main(int count, char **words)
{
    if (count < 4)
        return 2;
    const char *what = words[1];
    void (*run)(long) = follow;
    long whole, stretch = LOADS;
    if (strcmp(what, "latency") == 0) {
        length = atol(words[2]) << 10;
        set = mapped(length, words[3]);
        link_cells(length / 64, 64);
        whole = cells;
    } else if (strcmp(what, "tlb") == 0 && count == 5) {
        long pages = atol(words[2]), stride = atol(words[3]) << 10;
        set = mapped(pages * stride, words[4]);
        link_cells(pages, stride);
        whole = cells;
    } else {
        int copies = strcmp(what, "copy") == 0;
        run = copies ? copy_chunks : strcmp(what, "write") == 0 ? write_chunks : read_chunks;
        /* The halves of a copy together are the set. */
        length = (atol(words[2]) << 10) / (copies ? 2 : 1);
        set = mapped(length, words[3]);
        other = copies ? mapped(length, words[3]) : set;
        value = _mm256_set1_epi64x(2);
        whole = length / CHUNK, stretch = 64;
    }
    for (char line[8]; fgets(line, sizeof line, stdin);) {
        double took[STRETCHES];
        /* A set becomes cached after several passes. One that exceeds the caches is followed once, which takes long enough. */
        int passes = run == follow && whole > LARGEST_CACHED ? 1 : 8;
        while (passes-- > 0)
            run(whole);
        for (int at = 0; at < STRETCHES; at++) {
            double began = now();
            run(stretch);
            took[at] = (now() - began) / stretch;
        }
        qsort(took, STRETCHES, sizeof *took, upwards);
        printf("%.4f\n", took[STRETCHES / 2]);
        fflush(stdout);
    }
    return _mm256_extract_epi8(sum, 0) == 77;
}
