/* A virtual clock for programs that know nothing of it: preloaded, it answers in place of the
   system's. Time stands still until the conductor moves it. Who sleeps, or waits for a condition
   with a time, says until when in the shared file, and goes on when the conductor says so.
   poll() keeps real time, so that no message is lost to a jump. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

#define SHORT (SECOND / 50) /* sleeps up to this stay real */
#define ENDING (SECOND / 2) /* the same in slurmd, which waits so for the processes of a job to end */
#define NAP (SECOND / 2)    /* sleeps up to this are added up, and slept at once, */
#define MANY 100            /* in threads that have had so many of them */
#define LOOK (SECOND / 20)  /* real time after which a waiting thread looks by itself */

static struct shared *shared;
static int waker_runs, is_job, is_stepd, is_slurmd;
static int (*real_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static pid_t (*real_fork)(void);

static void reach(int32_t *top, int32_t used) { /* place `used` is taken: raise the top */
    int32_t was = __atomic_load_n(top, 5);
    while (was <= used && !__atomic_compare_exchange_n(top, &was, used + 1, 0, 5, 5)) {}
}

static void enrol(int32_t pid) {
    for (int i = 0; i < shared->top_pid; i++)
        if (shared->pids[i] == pid) return;
    for (int i = 0; i < SLOTS; i++) {
        int32_t none = 0;
        if (shared->pids[i]) continue;
        if (!__atomic_compare_exchange_n(&shared->pids[i], &none, pid, 0, 5, 5)) continue;
        reach(&shared->top_pid, i);
        return;
    }
    shared->full = 1;
}

static void forked(void) { /* in the child, which has none of its parent's threads */
    waker_runs = 0;
    if (shared) enrol(getpid());
}

static void end_without_owner(void) {
    if (kill(shared->owner, 0) && errno == ESRCH) kill(getpid(), SIGKILL);
}

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("HPCGYM_CLOCK");
    if (shared || !file) return;
    real_timedwait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real_timedwait) real_timedwait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    real_fork = dlsym(RTLD_NEXT, "fork");
    int fd = open(file, O_RDWR | O_CLOEXEC);
    if (fd < 0) _exit(1); /* the replay is over, and its folder gone */
    void *map = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED) _exit(1);
    shared = map;
    is_job = !strcmp(program_invocation_short_name, "sleep"); /* programs may change their names */
    is_slurmd = !strncmp(program_invocation_short_name, "slurmd", 6);
    is_stepd = !strncmp(program_invocation_short_name, "slurmstepd", 10);
    enrol(getpid());
    pthread_atfork(0, 0, forked);
    if (getppid() == shared->owner) prctl(PR_SET_PDEATHSIG, SIGKILL);
    end_without_owner();
}

static int64_t now(void) { return __atomic_load_n(&shared->now, 5); }

static int claim(int64_t deadline, int64_t length, enum kind kind, void *condition) {
    for (int i = 0; i < SLOTS; i++) {
        struct slot *slot = &shared->slots[i];
        int32_t none = 0;
        if (slot->pid) continue;
        if (!__atomic_compare_exchange_n(&slot->pid, &none, getpid(), 0, 5, 5)) continue;
        slot->over = slot->settled = 0;
        slot->parent = kind == JOB ? getppid() : 0;
        slot->deadline = deadline;
        slot->length = length;
        slot->condition = condition;
        slot->pinned = 1;
        slot->number = __atomic_add_fetch(&shared->waits, 1, 5);
        __atomic_store_n(&slot->kind, kind, 5);
        reach(&shared->top_slot, i);
        return i;
    }
    shared->full = 1;
    return -1;
}

static void drop(void *place) {
    int i = *(int *)place;
    if (i < 0) return;
    struct slot *slot = &shared->slots[i];
    uint32_t mine = 1; /* the waker may be about to use the condition */
    while (!__atomic_compare_exchange_n(&slot->pinned, &mine, 0, 0, 5, 5)) mine = 1;
    slot->condition = 0;
    __atomic_store_n(&slot->kind, NOTHING, 5);
    __atomic_store_n(&slot->pid, 0, 5);
}

static int is_over(int i) { return i < 0 || __atomic_load_n(&shared->slots[i].over, 5); }

static void wait_for_tick(uint32_t seen) {
    struct timespec second = {1, 0};
    syscall(SYS_futex, &shared->tick, FUTEX_WAIT, seen, &second, 0, 0);
    end_without_owner();
}

static void wait_until(int64_t deadline) {
    int64_t length = deadline - now();
    if (length <= 0) return;
    int i = claim(deadline, length, is_job ? JOB : WAIT, 0);
    if (is_job) __atomic_add_fetch(&shared->begun, 1, 5);
    pthread_cleanup_push(drop, &i);
    for (;;) {
        uint32_t tick = __atomic_load_n(&shared->tick, 5);
        if (is_over(i)) break;
        wait_for_tick(tick);
        pthread_testcancel();
    }
    pthread_cleanup_pop(0);
    if (is_job) __atomic_add_fetch(&shared->ended, 1, 5);
    drop(&i);
}

/* --- The time ---------------------------------------------------------------------------------- */

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!shared) begin();
    if (!shared || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID)
        return syscall(SYS_clock_gettime, clock, time);
    int64_t at = now();
    time->tv_sec = at / SECOND;
    time->tv_nsec = at % SECOND;
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec at;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &at);
    *time = (struct timeval){at.tv_sec, at.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *place) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    if (place) *place = at.tv_sec;
    return at.tv_sec;
}

/* --- Sleeping ---------------------------------------------------------------------------------- */

static int sleep_for(int64_t length, struct timespec *rest) {
    static __thread int64_t owed; /* of naps: slurmctld looks around ten times to each second */
    static __thread int naps;
    int is_real = length <= (is_slurmd ? ENDING : SHORT);
    if (rest) *rest = (struct timespec){0, 0};
    if (!is_real && length <= NAP && ++naps > MANY) {
        owed += length;
        if (owed < SECOND) return 0;
        length = owed;
        owed = 0;
    }
    if (!is_real) {
        wait_until(now() + length);
        return 0;
    }
    int i = claim(now(), length, REAL, 0); /* the conductor waits for it */
    struct timespec time = {0, length};
    int failed = syscall(SYS_nanosleep, &time, rest);
    drop(&i);
    return failed;
}

int nanosleep(const struct timespec *time, struct timespec *rest) {
    if (!shared) begin();
    if (!shared) return syscall(SYS_nanosleep, time, rest);
    return sleep_for(time->tv_sec * SECOND + time->tv_nsec, rest);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *rest) {
    if (!shared) begin();
    if (!shared) return syscall(SYS_clock_nanosleep, clock, flags, time, rest);
    int64_t length = time->tv_sec * SECOND + time->tv_nsec;
    if (!(flags & TIMER_ABSTIME)) return sleep_for(length, rest);
    wait_until(length);
    return 0;
}

unsigned sleep(unsigned seconds) {
    struct timespec time = {seconds, 0};
    nanosleep(&time, 0);
    return 0;
}

int usleep(useconds_t micros) {
    struct timespec time = {micros / 1000000, micros % 1000000 * 1000};
    return nanosleep(&time, 0);
}

/* --- Conditions -------------------------------------------------------------------------------- */

/* A thread of each process that has waited for a condition: it signals those that are over. */
static void *wake(void *nothing) {
    (void)nothing;
    for (;;) {
        uint32_t tick = __atomic_load_n(&shared->tick, 5);
        for (int i = 0; i < shared->top_slot; i++) {
            struct slot *slot = &shared->slots[i];
            uint32_t free = 1;
            if (slot->pid != getpid() || slot->over != 1 || !slot->condition) continue;
            if (!__atomic_compare_exchange_n(&slot->pinned, &free, 2, 0, 5, 5)) continue;
            if (slot->pid == getpid() && slot->over == 1 && slot->condition)
                pthread_cond_broadcast(slot->condition);
            __atomic_store_n(&slot->pinned, 1, 5);
        }
        wait_for_tick(tick);
    }
    return 0;
}

static void run_waker(void) {
    int none = 0;
    if (!__atomic_compare_exchange_n(&waker_runs, &none, 1, 0, 5, 5)) return;
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the program's own threads */
    if (!pthread_create(&thread, 0, wake, 0)) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, 0);
}

/* Whether slurmctld's plugin of accounts calls: each ten seconds it looks for a database, and there
   is none. */
static int is_of_accounts(void *caller) {
    Dl_info of;
    return dladdr(caller, &of) && of.dli_fname && strstr(of.dli_fname, "accounting_storage");
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
    if (!shared) begin();
    if (!shared) return real_timedwait(condition, mutex, until);
    int64_t deadline = until->tv_sec * SECOND + until->tv_nsec;
    if (deadline <= now()) return ETIMEDOUT;
    /* it looks at its job each second, and so many that run would take all real time */
    if (is_stepd || is_of_accounts(__builtin_return_address(0)))
        return pthread_cond_wait(condition, mutex);
    run_waker();
    int result = ETIMEDOUT, i = claim(deadline, deadline - now(), WAIT, condition);
    pthread_cleanup_push(drop, &i);
    while (!is_over(i)) {
        struct timespec look;
        syscall(SYS_clock_gettime, CLOCK_REALTIME, &look);
        int64_t at = look.tv_sec * SECOND + look.tv_nsec + LOOK;
        look = (struct timespec){at / SECOND, at % SECOND};
        result = real_timedwait(condition, mutex, &look);
        if (result != ETIMEDOUT) break;
    }
    pthread_cleanup_pop(0);
    if (is_over(i)) result = ETIMEDOUT;
    drop(&i);
    return result;
}

pid_t fork(void) { /* the child is known before its parent can fall asleep */
    if (!real_fork) real_fork = dlsym(RTLD_NEXT, "fork");
    pid_t pid = real_fork();
    if (shared && pid > 0) enrol(pid);
    return pid;
}
