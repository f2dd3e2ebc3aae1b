/* The clock that all processes of a replay share: a file, mapped into each of them. */
#include <stdint.h>

#define SLOTS 8192 /* of processes, and of threads that wait */
#define SECOND 1000000000LL /* all times are in nanoseconds */

/* What a thread waits for: a time, the end of a job (the program "sleep"), or real time. */
enum kind { NOTHING = 0, WAIT = 1, JOB = 2, REAL = 3 };

struct slot {
    int64_t deadline;    /* when the wait is over */
    int64_t length;      /* how long it was to be */
    uint64_t number;     /* of the wait: they are counted */
    void *condition;     /* that the thread waits on, in its own memory, or 0 */
    int32_t pid;         /* of the process; 0: the slot is free */
    int32_t kind;
    int32_t parent;      /* of the process that sleeps for a job */
    uint32_t settled;    /* 1: all have been asleep since the wait began */
    uint32_t over;       /* 1: the thread may go on */
    uint32_t pinned;     /* 1: held by who waits; 2: by the thread that wakes it */
};

struct shared {
    int64_t now;
    uint64_t waits;      /* so many were counted */
    int64_t begun;       /* jobs that have begun to run */
    int64_t ended;       /* jobs that have run */
    int32_t owner;       /* the process that moves the clock; without it all end */
    uint32_t tick;       /* changes whenever somebody may go on: a futex */
    uint32_t full;       /* 1: there were not enough slots */
    int32_t top_pid;     /* places from here on were never used */
    int32_t top_slot;
    int32_t pids[SLOTS]; /* of the processes; 0: free */
    struct slot slots[SLOTS];
};
