/* Locks that no other thread wants. */
#include "loops.h"
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/sem.h>

static _Alignas(128) int word;
static int thread;

/* Each store of x86-64 is a release. */
#define FREE() ON((void)(*(volatile int *)&word = 0), __atomic_store_n(&word, 0, __ATOMIC_RELEASE))

OPERATION(by_exchange)
{
    int taken = 1;
    __asm__ volatile(ON("xchg %0, (%1)", ".arch_extension lse; swpa %w0, %w0, [%1]") : "+r"(taken) : "r"(&word) : "memory");
    must(taken == 0);
    FREE();
}

/* What the word was. arm64 has an exclusive load and store: check compiles with -mno-outline-atomics. */
#ifdef __aarch64__
#define SWAP(was, into, order) __atomic_compare_exchange_n(&word, &was, into, 0, order, __ATOMIC_RELAXED)
#else
#define SWAP(was, into, order) __asm__ volatile("lock cmpxchg %2, (%1)" : "+a"(was) : "r"(&word), "r"(into) : "memory", "cc")
#endif

OPERATION(by_swap)
{
    int was = 0;
    SWAP(was, 1, __ATOMIC_ACQUIRE);
    must(was == 0);
    FREE();
}

static void find_thread(void) { thread = gettid(); }

OPERATION(by_trylock_pi)
{
    must(sys2(SYS_futex, &word, FUTEX_TRYLOCK_PI | FUTEX_PRIVATE_FLAG) == 0);
    int was = thread;
    SWAP(was, 0, __ATOMIC_RELEASE);
    must(was == thread);
}

static int counter;
static uint64_t one = 1;
static void make_counter(void) { must((counter = eventfd(1, EFD_SEMAPHORE | EFD_NONBLOCK)) >= 0); }

OPERATION(by_eventfd)
{
    must(sys3(SYS_read, counter, &one, 8) == 8);
    must(sys3(SYS_write, counter, &one, 8) == 8);
}

static int semaphores = -1;
static struct sembuf take = { 0, -1, IPC_NOWAIT }, give = { 0, 1, IPC_NOWAIT };

/* A set outlives its process, so that it is there for a stretch only. */
static void make_semaphores(long n)
{
    (void)n;
    must((semaphores = semget(IPC_PRIVATE, 1, 0600)) >= 0);
    must(semctl(semaphores, 0, SETVAL, 1) == 0);
}

static void end_semaphores(long n)
{
    (void)n;
    must(semctl(semaphores, 0, IPC_RMID) == 0);
}

OPERATION(by_semop)
{
    must(sys3(SYS_semop, semaphores, &take, 1) == 0);
    must(sys3(SYS_semop, semaphores, &give, 1) == 0);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
OPERATION(by_mutex)
{
    must(pthread_mutex_trylock(&mutex) == 0);
    must(pthread_mutex_unlock(&mutex) == 0);
}

static sem_t semaphore;
static void make_semaphore(void) { must(sem_init(&semaphore, 0, 1) == 0); }
OPERATION(by_semaphore)
{
    must(sem_trywait(&semaphore) == 0);
    must(sem_post(&semaphore) == 0);
}

#define OWN "the lock's line, modified here"

const struct loop lock_loops[] = {
    ROW("locks/uncontended{by=xchg}", by_exchange, OWN, .is_user_code = 1),
    ROW("locks/uncontended{by=cmpxchg}", by_swap, OWN, .is_user_code = 1),
    ROW("locks/uncontended{by=futex-trylock-pi}", by_trylock_pi, OWN, .prepare = find_thread, .is_user_code = 1),
    ROW("locks/uncontended{by=eventfd}", by_eventfd, "a file that one thread has open", .prepare = make_counter, .is_user_code = 1),
    ROW("locks/uncontended{by=semop}", by_semop, "the set's data in the caches", .before = make_semaphores, .after = end_semaphores,
        .is_user_code = 1),
    ROW("locks/uncontended{by=pthread-trylock}", by_mutex, OWN, .is_user_code = 1),
    ROW("locks/uncontended{by=sem-trywait}", by_semaphore, OWN, .prepare = make_semaphore, .is_user_code = 1),
    END,
};
