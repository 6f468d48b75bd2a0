/* Creation of processes and threads, and switches between threads. */
#include "loops.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>

static void reap(pid_t child)
{
    int status = -1;
    must(child > 0);
    must(waitpid(child, &status, 0) == child && status == 0);
}

OPERATION(fork_and_wait)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    reap(child);
}

/* A function that calls vfork is never inlined. */
static APART void by_vfork(void)
{
    pid_t child = vfork();
    if (child == 0)
        _exit(0);
    reap(child);
}
OPERATION(vfork_and_wait) { by_vfork(); }

OPERATION(clone_and_wait)
{
    struct clone_args asked = { .exit_signal = SIGCHLD };
    long child = sys2(SYS_clone3, &asked, sizeof asked);
    if (child == 0)
        sys1(SYS_exit_group, 0);
    reap(child);
}

/* Until the call has returned: the child runs and is reaped between two of them. */
static double until_return(long *n)
{
    double began = now();
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    double took = now() - began;
    reap(child);
    *n = 1;
    return took;
}

static void *leave(void *nothing) { return nothing; }
OPERATION(thread_and_join)
{
    pthread_t thread;
    must(pthread_create(&thread, NULL, leave, NULL) == 0);
    must(pthread_join(thread, NULL) == 0);
}

static char *nothing[] = { 0 };
static char *alone[2], *chain[6], bare[4096];
static void name_program(void)
{
    if (!*leaver)
        skip("no program to start was named (--leaver)");
    snprintf(bare, sizeof bare, "%s-bare", leaver);
    alone[0] = (char *)leaver;
    for (int link = 0; link < 5; link++)
        chain[link] = (char *)leaver;
}

OPERATION(spawn_and_wait)
{
    pid_t child = -1;
    must(posix_spawn(&child, leaver, NULL, NULL, alone, nothing) == 0);
    reap(child);
}

OPERATION(fork_exec_wait)
{
    pid_t child = fork();
    if (child == 0) {
        execve(leaver, alone, nothing);
        _exit(1);
    }
    reap(child);
}

OPERATION(shell)
{
    char *command[] = { "sh", "-c", bare, NULL };
    pid_t child = fork();
    if (child == 0) {
        execve("/bin/sh", command, nothing);
        _exit(1);
    }
    reap(child);
}

static double executed(char **arguments)
{
    double began = now();
    pid_t child = vfork();
    if (child == 0) {
        execve(leaver, arguments, nothing);
        _exit(1);
    }
    reap(child);
    return now() - began;
}

/* A chain of five executions less one of one. */
static double four_executions(long *n)
{
    double five = executed(chain);
    *n = 4;
    return five - executed(alone);
}

/* Switches: a partner on this processor or on another one. */

static int there[2], back[2];
static uint64_t token = 1;

/* Each side has one call and one return in a trip: what they leave in the predictors of returns is found by the other's system calls. */
static APART long read_and_write(void)
{
    uint64_t mine;
    if (sys3(SYS_read, there[0], &mine, 8) != 8)
        return 0;
    long written = sys3(SYS_write, back[1], &mine, 8);
    return written == 8;
}

static void pass_on(void)
{
    while (read_and_write())
        ;
}

OPERATION(pass)
{
    must(sys3(SYS_write, there[1], &token, 8) == 8);
    must(sys3(SYS_read, back[0], &token, 8) == 8);
}

static void make_pipes(void) { must(pipe(there) == 0 && pipe(back) == 0); }
static void make_counters(void)
{
    must((there[0] = there[1] = eventfd(0, 0)) >= 0);
    must((back[0] = back[1] = eventfd(0, 0)) >= 0);
}

static void pipes_here(void) { make_pipes(), in_thread(home, pass_on); }
static void counters_here(void) { make_counters(), in_thread(home, pass_on); }
static void elsewhere(void (*body)(void))
{
    if (other < 0)
        skip("a second processor is needed");
    in_thread(other, body);
}
static void pipes_elsewhere(void) { make_pipes(), elsewhere(pass_on); }
static void counters_elsewhere(void) { make_counters(), elsewhere(pass_on); }

static _Alignas(64) _Atomic uint32_t given;
static _Alignas(64) _Atomic uint32_t returned;
static uint32_t seen;

static APART long wait_and_wake(uint32_t number)
{
    while (given == number)
        sys4(SYS_futex, &given, FUTEX_WAIT_PRIVATE, number, 0);
    returned++;
    long woken = sys3(SYS_futex, &returned, FUTEX_WAKE_PRIVATE, 1);
    return woken >= 0;
}

static void give_back(void)
{
    for (uint32_t number = 0; wait_and_wake(number); number++)
        ;
}

OPERATION(wake_and_wait)
{
    given++;
    sys3(SYS_futex, &given, FUTEX_WAKE_PRIVATE, 1);
    while (returned == seen)
        sys4(SYS_futex, &returned, FUTEX_WAIT_PRIVATE, seen, 0);
    seen++;
}

static void futex_here(void) { in_thread(home, give_back), usleep(1000); }
static void futex_elsewhere(void) { elsewhere(give_back), usleep(1000); }

static APART long yield_once(void)
{
    long result = sys0(SYS_sched_yield);
    return result == 0;
}

static void yield_on(void)
{
    while (yield_once())
        ;
}
static void yield_here(void) { in_thread(home, yield_on); }
OPERATION(yield) { sys0(SYS_sched_yield); }

static void least_slack(void) { must(prctl(PR_SET_TIMERSLACK, 1) == 0); }
OPERATION(sleep_100us)
{
    struct timespec time = { 0, 100000 };
    must(sys4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, 0) == 0);
}

#define SMALL "a small program with the C library; the child on this processor, its pages given back by the last one"
#define SLEEPS "a partner that sleeps on the same processor"
#define SLEEPS_APART "a partner that sleeps on another processor, which is idle"

const struct loop process_loops[] = {
    ROW("processes/fork{dirty_mib=0,until=exited}", fork_and_wait, SMALL),
    { "processes/fork{dirty_mib=0,until=return}", SMALL, .itself = until_return },
    ROW("processes/vfork{dirty_mib=0,until=exited}", vfork_and_wait, SMALL),
    ROW("processes/clone3{dirty_mib=0,until=exited}", clone_and_wait, SMALL),
    ROW("processes/thread{dirty_mib=0,until=exited}", thread_and_join, "a stack that the C library kept from the last thread"),
    ROW("processes/posix-spawn{dirty_mib=0,image=static,until=exited}", spawn_and_wait, "the program in the page cache",
        .prepare = name_program),
    ROW("processes/fork-exec{dirty_mib=0,image=static,until=exited}", fork_exec_wait, "the program in the page cache",
        .prepare = name_program),
    { "processes/exec{image=static}", "the program in the page cache; a chain of five less one of one", .itself = four_executions,
        .prepare = name_program },
    ROW("processes/shell", shell, "the shell and the program, which has no C library, in the page cache", .prepare = name_program),
    ROW("processes/switch{by=yield,placement=same-cpu}", yield, "a partner that yields on the same processor", .prepare = yield_here,
        .each = 2),
    ROW("processes/switch{by=futex,placement=same-cpu}", wake_and_wait, SLEEPS, .prepare = futex_here, .each = 2),
    ROW("processes/switch{by=eventfd,placement=same-cpu}", pass, SLEEPS, .prepare = counters_here, .each = 2),
    ROW("processes/switch{by=pipe,placement=same-cpu}", pass, SLEEPS, .prepare = pipes_here, .each = 2),
    ROW("processes/switch{by=futex,placement=other-cpu}", wake_and_wait, SLEEPS_APART, .prepare = futex_elsewhere, .each = 2),
    ROW("processes/switch{by=eventfd,placement=other-cpu}", pass, SLEEPS_APART, .prepare = counters_elsewhere, .each = 2),
    ROW("processes/switch{by=pipe,placement=other-cpu}", pass, SLEEPS_APART, .prepare = pipes_elsewhere, .each = 2),
    ROW("processes/sleep{slack=1ns,us=100}", sleep_100us, "an idle processor", .prepare = least_slack),
    END,
};
