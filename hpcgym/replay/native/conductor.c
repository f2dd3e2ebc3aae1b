/* The conductor: it moves the clock to the next time that somebody waits for, whenever all
   processes of the replay are asleep. Those whose time has come go on one after the other, in an
   order that is the same each time: jobs that end first. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

#define NEVER INT64_MAX
#define FINE (3 * SECOND)      /* so long after something happened every wait is heeded */
#define LONG (4 * SECOND)      /* waits from here on are always heeded while jobs wait */
#define PAUSE (SECOND / 10000) /* real time between two looks at the processes */
#define PATIENCE (SECOND / 4)  /* real time for which sleeps of real time count as work */
#define STUCK (120 * SECOND)   /* real time in which all must have fallen asleep */

enum answer { REACHED = 0, AGAIN = 1, STALLED = 2, FULL = 3, ENDS = 4 };

#define MOST_CPUS 1024

struct conductor {
    struct shared *shared;
    int32_t carriers[MOST_CPUS]; /* threads of the kernel that carry messages, when much is to do */
    int n_carriers;
    int64_t fine;      /* until then every wait is heeded */
    int64_t linger;    /* so long after a job came, began or ended long waits are heeded */
    int64_t lively;    /* until then they are */
    int64_t begun;     /* jobs, at the last step */
    int64_t submitted; /* jobs */
    int64_t restless;  /* real time since when all have not come to rest; 0: they have */
    int64_t awake;     /* real time at which somebody was last seen awake */
};

static int64_t real(void) {
    struct timespec at;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &at);
    return at.tv_sec * SECOND + at.tv_nsec;
}

static void pause_for(int64_t length) {
    struct timespec time = {0, length};
    syscall(SYS_nanosleep, &time, 0);
}

static void find_carriers(struct conductor *self) {
    DIR *all = opendir("/proc");
    if (!all) return;
    for (struct dirent *one; (one = readdir(all)) && self->n_carriers < MOST_CPUS;) {
        char path[64], name[32] = "";
        snprintf(path, sizeof path, "/proc/%.12s/comm", one->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        if (read(fd, name, sizeof name - 1) > 0 && !strncmp(name, "ksoftirqd/", 10))
            self->carriers[self->n_carriers++] = atoi(one->d_name);
        close(fd);
    }
    closedir(all);
}

/* Makes the shared file; returns 0 if it cannot be made. */
struct conductor *conductor_open(const char *file, int64_t now) {
    int fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return 0;
    void *map = MAP_FAILED;
    if (!ftruncate(fd, sizeof(struct shared)))
        map = mmap(0, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    struct conductor *made = map == MAP_FAILED ? 0 : calloc(1, sizeof *made);
    if (!made) return 0;
    made->shared = map;
    made->shared->now = now;
    made->shared->owner = getpid();
    made->fine = NEVER;
    find_carriers(made);
    return made;
}

void conductor_close(struct conductor *self) {
    munmap(self->shared, sizeof(struct shared));
    free(self);
}

int64_t conductor_now(const struct conductor *self) { return self->shared->now; }
int64_t conductor_begun(const struct conductor *self) { return self->shared->begun; }
int64_t conductor_ended(const struct conductor *self) { return self->shared->ended; }

/* --- Is anybody awake? ------------------------------------------------------------------------- */

enum { ASLEEP, NAPS, AWAKE };

static ssize_t read_of(int tasks, const char *task, const char *name, char *text, size_t room) {
    char path[64];
    snprintf(path, sizeof path, "%.12s/%s", task, name);
    int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t size = read(fd, text, room - 1);
    close(fd);
    text[size > 0 ? size : 0] = 0;
    return size;
}

/* Whether a thread of a process is awake; `ran` changes with each thread that has run since. */
static int is_awake(int32_t pid, int *gone, uint64_t *ran) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    *gone = !tasks;
    if (!tasks) return 0;
    int found = 0;
    for (struct dirent *one; !found && (one = readdir(tasks));) {
        if (one->d_name[0] == '.') continue;
        if (read_of(dirfd(tasks), one->d_name, "stat", line, sizeof line) <= 0) continue;
        char *name_ends = strrchr(line, ')');
        found = name_ends && (name_ends[2] == 'R' || name_ends[2] == 'D');
        if (found || read_of(dirfd(tasks), one->d_name, "schedstat", line, sizeof line) <= 0)
            continue;
        uint64_t on_cpu = 0, waited = 0, times = 0;
        sscanf(line, "%lu %lu %lu", &on_cpu, &waited, &times);
        *ran = *ran * 31 + strtoul(one->d_name, 0, 10) * 7 + times * 3 + on_cpu;
    }
    closedir(tasks);
    return found;
}

static int is_dead(int32_t pid) { return kill(pid, 0) && errno == ESRCH; }

/* The processes of jobs that run: nothing wakes a job that sleeps, nor the process that waits for
   it. They are many, and to look at all of them would take most of the time. */
static unsigned char of_jobs[1 << 22]; /* by process id, of which Linux has no larger ones */
static int32_t marked[2 * SLOTS], n_marked;

static void mark_jobs(const struct shared *shared) {
    while (n_marked) of_jobs[marked[--n_marked]] = 0;
    for (int i = 0; i < shared->top_slot; i++) {
        const struct slot *slot = &shared->slots[i];
        if (slot->kind != JOB || slot->over || !slot->settled) continue;
        of_jobs[marked[n_marked++] = slot->pid] = 1;
        of_jobs[marked[n_marked++] = slot->parent] = 1;
    }
}

/* Whether somebody is awake, or was told to go on and has not yet, or sleeps for a while of real
   time. */
static int look(struct conductor *self, uint64_t *ran) {
    struct shared *shared = self->shared;
    int naps = 0;
    *ran = shared->waits;
    for (int i = 0; i < shared->top_slot; i++) {
        struct slot *slot = &shared->slots[i];
        int told = (slot->kind == WAIT || slot->kind == JOB) && slot->over;
        if (!slot->pid || (!told && slot->kind != REAL)) continue;
        if (is_dead(slot->pid)) { /* it was killed, and will not give its slot back */
            slot->kind = NOTHING;
            slot->pid = 0;
        } else if (told) {
            return AWAKE;
        } else {
            naps = 1;
        }
    }
    for (int i = 0, gone; i < self->n_carriers; i++)
        if (is_awake(self->carriers[i], &gone, ran)) return AWAKE;
    for (int i = 0; i < shared->top_pid; i++) {
        int gone;
        int32_t pid = shared->pids[i];
        if (!pid || of_jobs[pid]) continue;
        if (is_awake(pid, &gone, ran)) return AWAKE;
        if (gone) shared->pids[i] = 0;
    }
    return naps ? NAPS : ASLEEP;
}

/* Waits until all were asleep at two looks, and nobody has run between them, for at most `limit` of
   real time: then who called may be interrupted, and calls again. Who only naps, again and again,
   may wait for the time. */
static enum answer settle(struct conductor *self, int64_t limit) {
    uint64_t ran = 0, before = 0;
    int64_t begin = real();
    if (!self->restless) self->restless = self->awake = begin;
    mark_jobs(self->shared);
    for (int quiet = 0; quiet < 2;) {
        int found = look(self, &ran);
        int64_t at = real();
        if (found == AWAKE) self->awake = at;
        int asleep = found == ASLEEP || (found == NAPS && at - self->awake > PATIENCE);
        quiet = !asleep ? 0 : found == NAPS || !quiet || ran == before ? quiet + 1 : 1;
        before = ran;
        if (at - self->restless > STUCK) return STALLED;
        if (quiet < 2 && at - begin > limit) return AGAIN;
        if (quiet < 2) pause_for(PAUSE);
    }
    for (int i = 0; i < self->shared->top_slot; i++) self->shared->slots[i].settled = 1;
    self->restless = 0;
    return REACHED;
}

/* --- Moving the clock -------------------------------------------------------------------------- */

static int sleeps(const struct slot *slot) {
    return slot->pid && (slot->kind == WAIT || slot->kind == JOB) && !slot->over;
}

/* Returns who goes on first of those whose time has come: jobs, then waits by deadline. */
static struct slot *first_due(struct shared *shared) {
    struct slot *found = 0;
    for (int i = 0; i < shared->top_slot; i++) {
        struct slot *one = &shared->slots[i];
        if (!sleeps(one) || one->deadline > shared->now) continue;
        if (!found) { found = one; continue; }
        int job = one->kind == JOB, other = found->kind == JOB;
        if (job != other ? job : one->deadline != found->deadline ? one->deadline < found->deadline
                                                                   : one->number < found->number)
            found = one;
    }
    return found;
}

/* Lets all go on whose time has come, one after the other. */
static enum answer release(struct conductor *self, int64_t limit) {
    struct slot *slot;
    while ((slot = first_due(self->shared))) {
        __atomic_store_n(&slot->over, 1, 5);
        __atomic_add_fetch(&self->shared->tick, 1, 5);
        syscall(SYS_futex, &self->shared->tick, FUTEX_WAKE, INT_MAX, 0, 0, 0);
        enum answer found = settle(self, limit);
        if (found) return found;
    }
    return REACHED;
}

static void happens(struct conductor *self) {
    self->fine = self->shared->now + FINE;
    self->lively = self->shared->now + self->linger;
}

/* Moves the clock to the next wait, at most to `target`. Once nothing has happened for a while,
   waits of seconds, in which Slurm only looks around, are passed over; without a waiting job all
   but the ends of jobs are, once it has looked at its queue. Returns whether a job ends now. */
static int move(struct conductor *self, int64_t target) {
    struct shared *shared = self->shared;
    int64_t job = NEVER, any = NEVER, long_one = NEVER;
    for (int i = 0; i < shared->top_slot; i++) {
        struct slot *one = &shared->slots[i];
        if (!sleeps(one)) continue;
        int64_t at = one->deadline;
        if (one->kind == JOB && at < job) job = at;
        if (one->kind == WAIT && at < any) any = at;
        if (one->kind == WAIT && one->length >= LONG && at < long_one) long_one = at;
    }
    if (shared->begun != self->begun) self->lively = shared->now + self->linger;
    self->begun = shared->begun;
    int fine = shared->now < self->fine;
    int waiting = self->submitted > shared->begun || shared->now < self->lively;
    int64_t heeded = fine ? any : waiting ? long_one : NEVER;
    int64_t next = job < heeded ? job : heeded;
    if (next > target) next = target;
    if (next == NEVER) return 0; /* nobody waits */
    if (next > shared->now) __atomic_store_n(&shared->now, next, 5);
    if (self->fine != NEVER && next == job) happens(self);
    if (self->fine != NEVER && waiting && next == long_one) self->fine = next + FINE;
    return next == job;
}

/* Moves the clock to `target`, or until so many jobs have ended, or, if `before`, until a job is
   about to end: nobody has seen that time yet, and the answer is ENDS. For at most `limit` of real
   time. Returns an enum answer. */
int conductor_advance(struct conductor *self, int64_t target, int64_t ended, int before,
                      int64_t limit) {
    int64_t begin = real();
    enum answer found = settle(self, limit);
    if (!found) found = release(self, limit); /* who was due at the end of the last call */
    while (!found && self->shared->now < target && self->shared->ended < ended) {
        if (self->shared->full) return FULL;
        if (move(self, target) && before) return ENDS;
        found = release(self, limit);
        if (!found && real() - begin > limit) return AGAIN;
    }
    return found;
}

/* While a command runs: once all sleep, moves the clock to the next time that anybody waits for;
   for about `limit` of real time. */
int conductor_nudge(struct conductor *self, int64_t limit) {
    enum answer found = settle(self, limit);
    if (found) return found;
    int64_t fine = self->fine;
    self->fine = NEVER;
    move(self, NEVER);
    found = release(self, limit);
    self->fine = fine;
    return found;
}

/* Something happens now: `jobs` more are submitted. */
void conductor_happens(struct conductor *self, int64_t jobs) {
    self->submitted += jobs;
    happens(self);
}

/* Slurm looks at its queue so long after something has happened. */
void conductor_linger(struct conductor *self, int64_t length) { self->linger = length; }
