/* Memory, and cache lines that several processors share. */
#include "loops.h"
#ifdef __aarch64__
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif
#include <stdatomic.h>
#include <sys/mman.h>

#define LINE 64L

static char *set;
static long bytes;

static char *mapped(long length, int advice)
{
    long more = 2L << 20;
    char *at = mmap(NULL, length + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(at != MAP_FAILED);
    at = (char *)(((long)at + more - 1) & -more);
    madvise(at, length, advice);
    for (long offset = 0; offset < length; offset += PAGE)
        at[offset] = 1;
    return at;
}

static uint64_t drawn = 0x9e3779b97f4a7c15;
static uint64_t draw(void)
{
    drawn ^= drawn << 13, drawn ^= drawn >> 7, drawn ^= drawn << 17;
    return drawn;
}

/* Links the cells of a set, one in each stride, in one random cycle. */
static void **at;
static void link_cells(long count, long stride)
{
    uint32_t *order = calloc(count, sizeof *order);
    must(order != NULL);
    for (long cell = 0; cell < count; cell++)
        order[cell] = cell;
    for (long cell = count - 1; cell > 0; cell--) {
        long with = draw() % (cell + 1);
        uint32_t kept = order[cell];
        order[cell] = order[with], order[with] = kept;
    }
    /* Not all at the same line of a page. */
#define CELL(number) (void **)(set + order[(number) % count] * stride + (stride > LINE ? order[(number) % count] % 64 * LINE : 0))
    for (long cell = 0; cell < count; cell++)
        *CELL(cell) = CELL(cell + 1);
    at = CELL(0);
    free(order);
    for (long step = 0; step < 2 * count; step++)
        at = *(void **volatile *)at;
}

static void cycle(long kib, int advice)
{
    bytes = kib << 10;
    set = mapped(bytes, advice);
    link_cells(bytes / LINE, LINE);
}

static void cycle_16k(void) { cycle(16, MADV_NOHUGEPAGE); }
static void cycle_256k(void) { cycle(256, MADV_NOHUGEPAGE); }
static void cycle_4m(void) { cycle(4096, MADV_NOHUGEPAGE); }
static void cycle_16m(void) { cycle(16384, MADV_NOHUGEPAGE); }
static void cycle_128m(void) { cycle(131072, MADV_NOHUGEPAGE); }
static void cycle_128m_huge(void) { cycle(131072, MADV_HUGEPAGE); }

static void a_line_a_page(long pages)
{
    bytes = pages * PAGE;
    set = mapped(bytes, MADV_NOHUGEPAGE);
    link_cells(pages, PAGE);
}

static void pages_32(void) { a_line_a_page(32); }
static void pages_1024(void) { a_line_a_page(1024); }

/* A load takes less than a call, so the loop keeps its address in a register. */
static void follow_all(long n)
{
    void **here = at;
    while (n--)
        __asm__ volatile(ON("mov (%0), %0", "ldr %0, [%0]") : "+r"(here)::"memory");
    at = here;
}

/* Bandwidth: passes of 4 KiB through a set. */
static long offset;
static void set_16k(void) { bytes = 16 << 10, set = mapped(bytes, MADV_NOHUGEPAGE); }
static void set_4m(void) { bytes = 4 << 20, set = mapped(bytes, MADV_NOHUGEPAGE); }

INLINE char *next_chunk(void)
{
    char *chunk = set + offset;
    offset = offset + PAGE < bytes ? offset + PAGE : 0;
    return chunk;
}

#ifdef __aarch64__
#define VECTORS __attribute__((noinline))
typedef uint64x2_t vector;
#define ADD vaddq_u64
#define FILLED vdupq_n_u64
#define STORE(into, value) vst1q_u64((uint64_t *)(into), value)
#define BY "neon"
#else
#define VECTORS __attribute__((target("avx2"), noinline))
typedef __m256i vector;
#define ADD _mm256_add_epi64
#define FILLED _mm256_set1_epi64x
#define STORE(into, value) _mm256_store_si256(into, value)
#define BY "avx2"
#endif

static VECTORS void read_chunks(long n)
{
    vector a = { 0 }, b = a, c = a, d = a;
    while (n--) {
        const vector *from = (const vector *)next_chunk(), *end = from + PAGE / sizeof *from;
        for (; from != end; from += 8) {
            a = ADD(a, from[0]), b = ADD(b, from[1]);
            c = ADD(c, from[2]), d = ADD(d, from[3]);
            a = ADD(a, from[4]), b = ADD(b, from[5]);
            c = ADD(c, from[6]), d = ADD(d, from[7]);
        }
    }
    __asm__ volatile("" ::ON("x", "w")(a), ON("x", "w")(b), ON("x", "w")(c), ON("x", "w")(d));
}

static VECTORS void write_chunks(long n)
{
    vector value = FILLED(0x5a5a5a5a5a5a5a5a);
    while (n--) {
        vector *into = (vector *)next_chunk(), *end = into + PAGE / sizeof *into;
        for (; into != end; into += 8) {
            STORE(into, value), STORE(into + 1, value);
            STORE(into + 2, value), STORE(into + 3, value);
            STORE(into + 4, value), STORE(into + 5, value);
            STORE(into + 6, value), STORE(into + 7, value);
        }
        __asm__ volatile("" ::: "memory");
    }
}

/* Words of several processors. */
static _Alignas(256) _Atomic uint64_t words[32];
static _Atomic uint64_t *theirs;

/* On arm64 each acquires and releases, as a locked instruction does. */
#define EIGHT_OF(what) ON("", ".arch_extension lse\n\t") ".rept 8\n\t" what "\n\t.endr"
#define EIGHT(x86, arm64)                                                                                                          \
    __asm__ volatile(EIGHT_OF(ON(x86, arm64)) ::"r"(words), ON("d", "r")(0L), ON("a", "r")(ON(0L, 1L)) : "memory", ON("cc", "x9"))
OPERATION(eight_stores) { EIGHT("mov %1, (%0)", "str %1, [%0]"); }
OPERATION(eight_additions) { EIGHT("lock addq $1, (%0)", "ldaddal %2, x9, [%0]"); }
OPERATION(eight_exchanges)
{
    long value = 1;
    __asm__ volatile(EIGHT_OF(ON("xchg %0, (%1)", "swpal %0, %0, [%1]")) : "+r"(value) : "r"(words) : "memory");
}
OPERATION(eight_swaps)
{
    long expected = 0;
    __asm__ volatile(EIGHT_OF(ON("lock cmpxchg %2, (%1)", "casal %0, %2, [%1]"))
                     : ON("+a", "+r")(expected)
                     : "r"(words), ON("d", "r")(0L)
                     : "memory", "cc");
}

static void add_theirs(void)
{
    for (;;)
        __asm__ volatile(EIGHT_OF(ON("lock addq $1, (%0)", "ldaddal %1, x9, [%0]")) ::"r"(theirs), "r"(1L) : "memory", ON("cc", "x9"));
}

static void with_neighbour(long distance)
{
    if (other < 0)
        skip("a second processor is needed");
    theirs = words + distance / 8;
    in_thread(other, add_theirs);
    usleep(1000);
}

/* A partner that waits for its processor adds nothing. */
static uint64_t had;
static void count_theirs(long n) { (void)n, had = *theirs; }
static void check_theirs(long n) { is_lost |= *theirs - had < (uint64_t)n * 8 / 16; }
#define WITH_PARTNER .before = count_theirs, .after = check_theirs

static void neighbour_8(void) { with_neighbour(8); }
static void neighbour_64(void) { with_neighbour(64); }
static void neighbour_128(void) { with_neighbour(128); }

static void answer_stores(void)
{
    for (;;) {
        uint64_t value = atomic_load_explicit(words, memory_order_acquire);
        if (value & 1)
            atomic_store_explicit(words, value + 1, memory_order_release);
    }
}

static void with_partner(void)
{
    if (other < 0)
        skip("a second processor is needed");
    in_thread(other, answer_stores);
    usleep(1000);
}

OPERATION(hand_over)
{
    uint64_t value = atomic_load_explicit(words, memory_order_acquire);
    atomic_store_explicit(words, value + 1, memory_order_release);
    while (atomic_load_explicit(words, memory_order_acquire) != value + 2)
        ;
}

/* Changes of mappings. */
static char *page;
/* Between two pages that are not accessible: beside memory with the same protection it would be a part of one mapping, which each change
 * divides and joins again. */
static void one_page(void)
{
    char *three = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(three != MAP_FAILED);
    page = three + PAGE;
    must(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
    *page = 1;
}

OPERATION(protect_and_allow)
{
    must(sys3(SYS_mprotect, page, PAGE, PROT_READ) == 0);
    must(sys3(SYS_mprotect, page, PAGE, PROT_READ | PROT_WRITE) == 0);
}

OPERATION(touch_and_discard)
{
    *(volatile char *)page = 1;
    must(sys3(SYS_madvise, page, PAGE, MADV_DONTNEED) == 0);
}

OPERATION(map_touch_unmap)
{
    char *at = (char *)sys(SYS_mmap, 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must((long)at > 0);
    *(volatile char *)at = 1;
    must(sys2(SYS_munmap, at, PAGE) == 0);
}

#define CYCLE "all lines in one random cycle, which was followed before"
#define FOLLOWS(name, make) { name, CYCLE, follow_all, follow_all, .prepare = make, .is_user_code = 1, .is_chain = 1 }
#define EACH_8 .each = 8, .is_user_code = 1

const struct loop memory_loops[] = {
    FOLLOWS("memory/latency{kib=16,page=4k}", cycle_16k),
    FOLLOWS("memory/latency{kib=256,page=4k}", cycle_256k),
    FOLLOWS("memory/latency{kib=4096,page=4k}", cycle_4m),
    FOLLOWS("memory/latency{kib=16384,page=4k}", cycle_16m),
    FOLLOWS("memory/latency{kib=131072,page=4k}", cycle_128m),
    FOLLOWS("memory/latency{kib=131072,page=2m}", cycle_128m_huge),
    FOLLOWS("memory/tlb{page=4k,pages=32,stride_kib=4}", pages_32),
    FOLLOWS("memory/tlb{page=4k,pages=1024,stride_kib=4}", pages_1024),
    { "memory/bandwidth{by=" BY ",kib=16,op=read,page=4k,threads=1}", "the set, passed through before", read_chunks, read_chunks,
        .prepare = set_16k, .is_user_code = 1 },
    { "memory/bandwidth{by=" BY ",kib=16,op=write,page=4k,threads=1}", "the set, passed through before", write_chunks, write_chunks,
        .prepare = set_16k, .is_user_code = 1 },
    { "memory/bandwidth{by=" BY ",kib=4096,op=read,page=4k,threads=1}", "the set, passed through before", read_chunks, read_chunks,
        .prepare = set_4m, .is_user_code = 1 },
    ROW("memory/atomic{op=store,threads=1}", eight_stores, "the line, modified here", EACH_8),
    ROW("memory/atomic{op=add,threads=1}", eight_additions, "the line, modified here", EACH_8),
    ROW("memory/atomic{op=xchg,threads=1}", eight_exchanges, "the line, modified here", EACH_8),
    ROW("memory/atomic{op=cas,threads=1}", eight_swaps, "the line, modified here", EACH_8),
    ROW("memory/neighbour{distance=8}", eight_additions, "the line, modified by either", .prepare = neighbour_8, WITH_PARTNER, EACH_8),
    ROW("memory/neighbour{distance=64}", eight_additions, "the line, modified here", .prepare = neighbour_64, WITH_PARTNER, EACH_8),
    ROW("memory/neighbour{distance=128}", eight_additions, "the line, modified here", .prepare = neighbour_128, WITH_PARTNER, EACH_8),
    ROW("memory/pingpong{from=HOME,protocol=store,to=OTHER}", hand_over, "the line, modified by the other processor",
        .prepare = with_partner, .each = 2, .is_user_code = 1),
    ROW("memory/shootdown{call=mprotect,threads=0}", protect_and_allow, "a page that is present and written, a mapping of its own; one thread",
        .prepare = one_page),
    ROW("memory/shootdown{call=madvise,threads=0}", touch_and_discard, "the page that was given back last", .prepare = one_page),
    ROW("memory/shootdown{call=munmap,threads=0}", map_touch_unmap, "the page and the mapping's data that were given back last"),
    END,
};
