/*
 * Figure 11 of Machida and Shinohara, "The Implementation of user level test-and-set on PS2 Linux" (Sony Research Forum
 * 2000), once more and in another language: an interpreter of its instructions, the kernel's return path and its handler.
 *
 * Each option below is one step of the machine and every variable that is not hidden belongs to its state, so that SPIN
 * stores as many states as there are.
 *
 * N processes take the lock R times each. K1 is 0 where the kernel leaves k1 alone, HANDLER what it does about a store
 * that faults: 0 nothing, 1 starts tst again, 2 goes on at the store.
 */
#ifndef N
#define N 2
#endif
#ifndef R
#define R 1
#endif
#ifndef K1
#define K1 1
#endif
#ifndef HANDLER
#define HANDLER 1
#endif

/* Phases of a process. */
#define OUTSIDE   0
#define INSIDE    1
#define CRITICAL  2
#define RELEASING 3
#define DONE      4
#define KILLED    5

/* Values of a register; 0 and 1 are themselves. */
#define LOCK  2
#define MAGIC 3

/* Operations. */
#define MOVE 0
#define LW   1
#define LI   2
#define BNE  3
#define SW   4
#define JR   5

#define CALLER 255
#define NO_PROCESS 255

byte phase[N], left[N] = R;
byte pc[N], next[N];
bool slot[N];
byte v0[N], a0[N], k1[N], t0[N];
byte lock, running;

hidden byte op, x, y, to, after;
hidden byte branch, fault, writes;
hidden byte holders, inside, i;

#define alive(p) (phase[p] < DONE)

/* The instruction at pc: what it does, its operands' values, and where a branch leads. */
inline fetch(p) {
    x = 0; y = 0; to = 0;
    if
    :: pc[p] == 0 -> op = MOVE; x = a0[p]              /* move k1,a0       */
    :: pc[p] == 1 -> op = LW; x = a0[p]                /* lw v0,(a0)       */
    :: pc[p] == 2 -> op = LI                           /* li t0,1          */
    :: pc[p] == 3 -> op = BNE; x = v0[p]; to = 8       /* bnez v0,1f       */
    :: pc[p] == 5 -> op = BNE; x = k1[p]; y = a0[p]    /* bne k1,a0,start  */
    :: pc[p] == 7 -> op = SW; x = k1[p]; y = t0[p]     /* sw t0,(k1)       */
    :: pc[p] == 8 -> op = JR                           /* 1: jr ra         */
    :: else -> op = 99                                 /* nop              */
    fi
}

/* Leaves tst() for another phase. */
inline leave(p, where) {
    phase[p] = where;
    pc[p] = 0; next[p] = 0; slot[p] = false;
    v0[p] = 0; a0[p] = 0; k1[p] = 0; t0[p] = 0;
    if :: where >= DONE -> running = NO_PROCESS :: else -> skip fi
}

inline go_on(p, where) {
    pc[p] = where; next[p] = where + 1; slot[p] = false;
    if :: K1 -> k1[p] = MAGIC :: else -> skip fi
}

/* Where it goes on after an exception. */
#define epc(p) (slot[p] -> pc[p] - 1 : pc[p])

inline serve(p) {
    if
    :: HANDLER == 1 && writes && x == MAGIC -> go_on(p, 0)
    :: HANDLER == 2 && writes && x == MAGIC -> to = epc(p); go_on(p, to)
    :: else -> leave(p, KILLED)
    fi
}

inline instruction(p) {
    fetch(p);
    branch = false; fault = false; writes = false;
    after = next[p] + 1;
    if
    :: op == MOVE -> k1[p] = x
    :: op == LW && x == LOCK -> v0[p] = lock
    :: op == LW && x != LOCK -> fault = true
    :: op == LI -> t0[p] = 1
    :: op == BNE -> branch = true; if :: x != y -> after = to :: else -> skip fi
    :: op == SW && x == LOCK -> lock = y
    :: op == SW && x != LOCK -> fault = true; writes = true
    :: op == JR -> branch = true; after = CALLER
    :: else -> skip
    fi;
    if
    :: fault -> serve(p)
    :: else -> pc[p] = next[p]; next[p] = after; slot[p] = branch
    fi;
    if
    :: phase[p] == INSIDE && pc[p] == CALLER && v0[p] == 0 -> leave(p, CRITICAL)
    :: phase[p] == INSIDE && pc[p] == CALLER && v0[p] != 0 -> leave(p, OUTSIDE)
    :: else -> skip
    fi
}

inline step(p) {
    if
    :: phase[p] == OUTSIDE -> phase[p] = INSIDE; a0[p] = LOCK; go_on(p, 0)
    :: phase[p] == INSIDE -> instruction(p)
    :: phase[p] == CRITICAL -> phase[p] = RELEASING
    :: phase[p] == RELEASING ->
        lock = 0;
        left[p] = left[p] - 1;
        if :: left[p] == 0 -> leave(p, DONE) :: else -> leave(p, OUTSIDE) fi
    fi
}

/* No process is killed, two do not hold the lock, and it is not taken without a holder. */
inline look() {
    holders = 0; inside = 0; i = 0;
    do
    :: i < N ->
        assert(phase[i] != KILLED);
        if
        :: phase[i] == CRITICAL || phase[i] == RELEASING -> holders++
        :: phase[i] == INSIDE -> inside++
        :: else -> skip
        fi;
        i++
    :: else -> break
    od;
    assert(holders <= 1);
    assert(!lock || holders + inside > 0)
}

inline interrupt(p, other) {
    if :: phase[p] == INSIDE -> to = epc(p); go_on(p, to) :: else -> skip fi;
    running = other
}

active [N] proctype process() {
end:
    do
    :: d_step { running == _pid -> step(_pid); look() }
    :: d_step { running == _pid && phase[_pid] == INSIDE -> interrupt(_pid, _pid) }
    :: d_step { running == _pid && _pid != 0 && alive(0) -> interrupt(_pid, 0) }
#if N > 1
    :: d_step { running == _pid && _pid != 1 && alive(1) -> interrupt(_pid, 1) }
#endif
#if N > 2
    :: d_step { running == _pid && _pid != 2 && alive(2) -> interrupt(_pid, 2) }
#endif
    :: d_step { running == NO_PROCESS && alive(_pid) -> running = _pid }
    od
}
