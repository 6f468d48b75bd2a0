/*
 * Lamport's fast mutual exclusion (ACM TOCS 5(1), 1987, algorithm 2) on processors with store buffers, for SPIN.
 *
 * Written by hand beside the machine of this crate, not from it: tests/spin_lamport.rs compares what the two find. The state is the
 * same, so that the states can be counted against each other: every process is one loop at one place, all of its state is in
 * these variables, and unused ones are zero.
 *
 * -DN=2 processes, -DP=2 processors, -DROUNDS=2; fences by -DFENCE_B_SET, -DFENCE_X, -DFENCE_Y, -DFENCE_B_CLEAR.
 */
#define SLOTS 8

/* Before which step a process is. A fence after a store is a step of its own. */
#define SET_B        0
#define SET_B_FENCE  1
#define SET_X        2
#define SET_X_FENCE  3
#define TEST_Y       4
#define GIVE_WAY     5
#define GIVE_FENCE   6
#define AWAIT_Y      7
#define SET_Y        8
#define SET_Y_FENCE  9
#define TEST_X      10
#define CLEAR_B     11
#define CLEAR_FENCE 12
#define AWAIT_ALL   13
#define TEST_Y_AGAIN 14
#define AWAIT_Y_LATE 15
#define INSIDE      16
#define FREE_Y      17
#define FREE_B      18
#define FREE_FENCE  19

#ifdef FENCE_B_SET
#define AFTER_SET_B SET_B_FENCE
#else
#define AFTER_SET_B SET_X
#endif
#ifdef FENCE_X
#define AFTER_SET_X SET_X_FENCE
#else
#define AFTER_SET_X TEST_Y
#endif
#ifdef FENCE_Y
#define AFTER_SET_Y SET_Y_FENCE
#else
#define AFTER_SET_Y TEST_X
#endif
#ifdef FENCE_B_CLEAR
#define AFTER_GIVE_WAY GIVE_FENCE
#define AFTER_CLEAR_B CLEAR_FENCE
#else
#define AFTER_GIVE_WAY AWAIT_Y
#define AFTER_CLEAR_B AWAIT_ALL
#endif

/* Addresses: x, y, b[0] .. b[N - 1]. */
#define X 0
#define Y 1
#define B 2

typedef Queue {
    byte length;
    byte owner;          /* whose stores these are; 0 when there are none */
    byte address[SLOTS]; /* the oldest first; 0 where there is none */
    byte value[SLOTS]
};

byte memory[N + 2];
byte at[N];
byte other[N];           /* for whom it waits in AWAIT_ALL */
byte left[N] = ROUNDS;
Queue queue[P];

/* Of no state: only within a step. */
hidden byte got;
hidden byte k;

#define ME _pid
#define HERE (_pid % P)
#define NUMBER (_pid + 1)
/* May this process go on, on its processor? */
#define RUNS (left[ME] > 0 && (queue[HERE].length == 0 || queue[HERE].owner == ME))
#define ROOM (queue[HERE].length < SLOTS)
#define DRAINED (queue[HERE].length == 0)

inline store(where, what) {
    queue[HERE].owner = ME;
    queue[HERE].address[queue[HERE].length] = where;
    queue[HERE].value[queue[HERE].length] = what;
    queue[HERE].length++
}

/* Into `got`: the newest store of this processor that waits, else memory. */
inline load(where) {
    got = memory[where];
    k = 0;
    do
    :: k < queue[HERE].length ->
        if
        :: queue[HERE].address[k] == where -> got = queue[HERE].value[k]
        :: else
        fi;
        k++
    :: else -> break
    od
}

inline enter() {
    at[ME] = INSIDE;
    k = 0;
    do
    :: k < N -> assert(k == ME || at[k] != INSIDE); k++
    :: else -> break
    od
}

inline end_of_round() {
    at[ME] = SET_B;
    left[ME]--
}

active [N] proctype process() {
end:
    do
    :: d_step { RUNS && at[ME] == SET_B && ROOM -> store(B + ME, 1); at[ME] = AFTER_SET_B }
    :: d_step { RUNS && at[ME] == SET_B_FENCE && DRAINED -> at[ME] = SET_X }
    :: d_step { RUNS && at[ME] == SET_X && ROOM -> store(X, NUMBER); at[ME] = AFTER_SET_X }
    :: d_step { RUNS && at[ME] == SET_X_FENCE && DRAINED -> at[ME] = TEST_Y }
    :: d_step { RUNS && at[ME] == TEST_Y ->
        load(Y);
        if
        :: got == 0 -> at[ME] = SET_Y
        :: else -> at[ME] = GIVE_WAY
        fi }
    :: d_step { RUNS && at[ME] == GIVE_WAY && ROOM -> store(B + ME, 0); at[ME] = AFTER_GIVE_WAY }
    :: d_step { RUNS && at[ME] == GIVE_FENCE && DRAINED -> at[ME] = AWAIT_Y }
    :: d_step { RUNS && (at[ME] == AWAIT_Y || at[ME] == AWAIT_Y_LATE) ->
        load(Y);
        if
        :: got == 0 -> at[ME] = SET_B
        :: else
        fi }
    :: d_step { RUNS && at[ME] == SET_Y && ROOM -> store(Y, NUMBER); at[ME] = AFTER_SET_Y }
    :: d_step { RUNS && at[ME] == SET_Y_FENCE && DRAINED -> at[ME] = TEST_X }
    :: d_step { RUNS && at[ME] == TEST_X ->
        load(X);
        if
        :: got == NUMBER -> enter()
        :: else -> at[ME] = CLEAR_B
        fi }
    :: d_step { RUNS && at[ME] == CLEAR_B && ROOM -> store(B + ME, 0); at[ME] = AFTER_CLEAR_B }
    :: d_step { RUNS && at[ME] == CLEAR_FENCE && DRAINED -> at[ME] = AWAIT_ALL }
    :: d_step { RUNS && at[ME] == AWAIT_ALL ->
        load(B + other[ME]);
        if
        :: got == 0 && other[ME] == N - 1 -> other[ME] = 0; at[ME] = TEST_Y_AGAIN
        :: got == 0 && other[ME] < N - 1 -> other[ME]++
        :: else
        fi }
    :: d_step { RUNS && at[ME] == TEST_Y_AGAIN ->
        load(Y);
        if
        :: got == NUMBER -> enter()
        :: else -> at[ME] = AWAIT_Y_LATE
        fi }
    :: d_step { RUNS && at[ME] == INSIDE -> at[ME] = FREE_Y }
    :: d_step { RUNS && at[ME] == FREE_Y && ROOM -> store(Y, 0); at[ME] = FREE_B }
#ifdef FENCE_B_CLEAR
    :: d_step { RUNS && at[ME] == FREE_B && ROOM -> store(B + ME, 0); at[ME] = FREE_FENCE }
    :: d_step { RUNS && at[ME] == FREE_FENCE && DRAINED -> end_of_round() }
#else
    :: d_step { RUNS && at[ME] == FREE_B && ROOM -> store(B + ME, 0); end_of_round() }
#endif
    od
}

/* The oldest store of a processor reaches memory. */
active [P] proctype drain() {
end:
    do
    :: d_step { queue[_pid - N].length > 0 ->
        memory[queue[_pid - N].address[0]] = queue[_pid - N].value[0];
        queue[_pid - N].length--;
        k = 0;
        do
        :: k < SLOTS - 1 ->
            queue[_pid - N].address[k] = queue[_pid - N].address[k + 1];
            queue[_pid - N].value[k] = queue[_pid - N].value[k + 1];
            k++
        :: else -> break
        od;
        queue[_pid - N].address[SLOTS - 1] = 0;
        queue[_pid - N].value[SLOTS - 1] = 0;
        if
        :: queue[_pid - N].length == 0 -> queue[_pid - N].owner = 0
        :: else
        fi }
    od
}
