"""The rules of hpcgym's schedules as programs to read: slow, obvious, and without the engine.

These modules define the rules. To try another rule, change it here and simulate with
``hpcgym.simulate(..., engine="reference")``. Everything is computed again at every pass, with lists
and loops. The engine, which is fast and compiled, shares no code with them but
:mod:`hpcgym.elementary`: tests run both on the same random jobs and demand identical schedules.

:mod:`~hpcgym.reference.pool` simulates processors that are all alike, by the rules below, each in
the module that names it; :mod:`~hpcgym.reference.nodes` simulates machines of nodes, by these rules
and its own.

Rules
-----
Jobs and time
 1. Jobs are numbered in submission order, ties in file order. All times are whole seconds.
 2. A job runs for p = min(run time, requested time p~), at least 1 s; cut at p~ it is killed.
 3. The estimate is fixed when the job is submitted, before it can start, and is at least 1 s.
    AVE2: (p of the user's last terminated job + p of the one before) // 2, at most p~; p~ while
    fewer than two have terminated; AVE(k) is of k jobs. "Last" is the order in which terminations
    are handled. Users are told apart by their number alone (-1, unknown, is one user). Only
    predictions given as a list, and twice p~, may exceed p~ at submission. A predictor learns each
    termination when it is handled, and predicts at the submission: `predictions`.
Order of the queue
 4. Primary order: highest score first, ties in submission order; scores are taken once a pass,
    at its time t. Every policy looks at the requested time p~, never at the prediction, or where
    there is a policy estimate, at that in place of p~. A learned policy estimate predicts at the
    submission, and again, before a pass, for each waiting job if a job of its user has terminated
    since; in per-timestamp passes after the predictions for the submissions.
 5. Six weights w over (q, p~, wait, p~/q, (wait + p~)/p~, p~ q) give the score a + wait / d, in
    double precision, with
    a = w0 q + w1 p~ + w3 (p~ / q) + w4 + w5 (p~ q), summed from left to right, and
    d = p~ / (w2 p~ + w4), or 1 / w2 where w4 = 0 (so that FCFS has exact ties whatever its weight);
    without the second term where w2 p~ + w4 = 0. Orders by what users have used, which changes
    when jobs terminate, are in `shares`. F1 to F4 have the submit time counted from the
    first submission of the whole log, at least 1 s.
 6. Threshold T: jobs with wait > T (strictly) come before all others, among themselves in
    submission order. It touches the primary order only, never the backfill order.
Events and passes
 7. A prediction expires when a running job reaches its predicted end before its own end: the
    prediction is corrected (rule 15) and nothing else happens; an expiry alone causes no pass.
 8. per-timestamp: at each time all expiries, all terminations in the order the jobs started, all
    submissions in file order; then one pass if anything terminated or was submitted.
 9. per-event: at each time all expiries, then each submission in file order, then each
    termination in the order the jobs started, each alone. A pass follows each termination. A
    pass follows a submission if the new job fits the free processors, and in any case under
    EASY and depth:K with another backfill order than that of submission (conservative has none),
    and under rules 24 to 29. A submission that a termination of this very time brings (rules 26 and
    28) comes after the pass of that termination, before the next. A pass that rule 25 or 27 asks
    for comes after all else of its time, if there has been none then.
10. Free processors = machine - processors of running jobs whose predicted end lies after now. In
    per-event passes a job that is to end now, as predicted, thus counts as gone already, in any
    pass of that time; one that ends now earlier than predicted holds its processors until its
    own termination is handled.
Backfilling
11. none: start jobs in primary order until one does not fit.
12. EASY: as none; the first that does not fit is the blocked head. Shadow time = the earliest
    predicted end of a running job at which the free processors, with all that is released until
    then (that time included), suffice for the head; extra = what is left over there. The other
    queued jobs, in backfill order, start if they fit the free processors and end by the shadow
    time by their prediction, or fit the extra processors (and then use them up). One sweep.
    Backfill order: "fcfs" submission order; "sjbf" shortest prediction first; or a policy's score
    order; ties always in submission order. If none is given: "fcfs" under the policy "fcfs", else
    "spf"; fair share has its own.
    until-shadow: as EASY with extra = 0, and now + predicted < T.
32. relax: as long as the head has waited less than this, the lesser of a job's prediction and of
    its candidate_estimate stands for the prediction in rule 12, but not in T. The latter is
    predicted as the policy estimate is, rule 4. Not with rules 25, 27 and 29.
13. conservative: each queued job holds a reservation for its whole predicted length, made when it
    is submitted, at the earliest time where it fits among running jobs (until their predicted
    ends) and all other reservations. A pass takes the queued jobs in primary order: lifts the
    reservation, makes it again at the earliest time from now on, and starts the job if that
    is now.
14. conservative, once a prediction has expired: the next pass first drops all reservations and
    then makes them again one by one in primary order, starting the jobs that can start. If a
    submission comes before that pass, all are dropped and made again in primary order first, the
    new job is placed last, and the pass that follows (if any) is an ordinary one.
22. depth:K: each pass drops all reservations. Queued jobs in primary
    order are given the earliest time from now on where they fit for their whole predicted length,
    beside running jobs and the reservations made so far; a job whose time is now starts, others
    have a reservation, until there are K. Then the other queued jobs, in backfill order: a job that
    can start now, beside all that, starts; the rest have none. Rule 16 holds of the first
    reservation.
    Under rule 21 a job starts now only if all it needs is free now; else its reservation takes all
    that it needs at the pass, for its whole predicted length.
23. slurm, per-timestamp passes only: a pass at an event starts jobs in primary order until one does
    not fit, or default_queue_depth and one more have been looked at. At multiples of sched_interval
    there is no such bound. If it has left jobs out for it, a pass follows at the next of these
    times, as at an event, unless there is an event before; it counts as one only if a job starts.
    With a bf_interval of -1 that is all, and no job has a reservation. A second kind of pass comes
    bf_interval after the last of its kind if anything has happened since, that very second
    included, or if jobs waited when that last one was due, before rule 27 and the pass at an event
    that it follows; else it comes at the next event, and the first with the first event. It follows
    a pass as at an event, also where there is no event. It drops all reservations and takes the
    first bf_max_job_test jobs in primary order; of the jobs of one user only the first
    bf_max_job_user count as such (0: all). A job that rule 24 passes over is one of the first, but
    does not count for its user. Each is given the earliest time as in rule 22, at which it also
    fits in the second in which it ends: it starts if that is now; it has a reservation if that is
    at most 60 bf_window from now, and fewer than bf_job_part_count_reserve (0: any number) have
    one; else nothing is kept of it. Rule 16 holds of the first of these that does not start, if it
    has one.
    In these profiles, and in rule 25, jobs that run when the pass begins end together: let F be the
    first of their predicted ends, raised to a multiple of 30 above it. Jobs that end by F + 30 end
    with the last of them; jobs that end after that, and by F + 60, with the last of them; then
    F + 120 and so on, twice as far each time; with bf_window_linear L (not 0) F + 30 + L,
    F + 30 + 2 L and so on. A job that starts in the pass ends as predicted. The times at which a
    reservation begins and ends in these profiles are rounded down to multiples of bf_resolution R,
    and it has R at least.
24. Quotas: a key for each job, or none, how much it asks for of some amount, such as 1 for jobs, or
    its processors, and how much the running jobs of one key may have together. A job that would be
    too much when its turn comes is passed over: it is no head, has no reservation, and rule 17 does
    not count it as waiting; one that asks for nothing is not. A running job counts until its
    termination is handled, also where rule 10 takes it for gone. Some jobs are spared: they count,
    and are never too much, nor under rule 28. Not with conservative.
25. Windows: a begin, an end and processors that are closed to jobs in [begin, end). All of them
    are known from the beginning, and stand in each profile beside running jobs and reservations. In
    rule 11 a job fits if it does so for its whole predicted length; EASY is depth:1, rule 22, and
    so is until-shadow, but a job that starts behind the head must end before the head is to start.
    A pass follows each end of a window at which jobs wait. Under rule 21 all that a job needs must
    be free, too, where it starts. Not with predictions that expire. Jobs that run at the beginning
    of an extract run on, also into a window, which then has what they leave of it.
26. Dependencies: some jobs follow one or several others. They are submitted when the last of these
    has terminated and a time to think is over, but not before a time of their own; rule 8 holds of
    that time, of which their submit is then, for their waits and scores too. The order of
    submission, also where "fcfs" means it, is that of these times, ties by number. Not with
    predictors in Python, or orders that look at when a job was submitted.
27. Preemption: jobs are in groups, or in none, and jobs of one group may stop those of some others.
    A group that can stop another, directly or through others, has a higher level. Each pass begins
    so: the levels from the highest down, except the lowest; in each the queued jobs in primary
    order. A job that fits starts. It also starts if it would fit without all running jobs that its
    group may stop: these are gone through, the higher level first, in a level the earlier start, at
    one time the lower number; each of them runs on if the job still fits beside those that run on
    so far; the others are stopped. If it would not fit, no later job of its group is tried so.
    Then comes the usual pass. A stopped job is queued again at once, in its old place, for its
    whole run, with the prediction of its submission; or, under cancel, it has ended. It has not
    terminated: nothing learns from it, and its policy estimate is predicted anew as for any waiting
    job. start, end, backfilled are of the last run. Not with conservative or hold. Jobs that rule
    24 passes over are passed over here. Under rule 25 a job fits if it does so for its whole
    predicted length; in these profiles rule 23 joins the ends of what would run beside it. Groups
    may be exempt for a time: no job may stop one of their jobs that has run for less. A pass
    follows the second in which a running job has run so long, if a queued job may stop its group.
    Per-event, all are exempt in the second in which a run begins or goes on, and in that in which
    it ends. Groups may have grace times: a job that is to be stopped then *leaves*. It runs on for
    its grace time, or up to its end if that comes no later; otherwise it is stopped then, among the
    terminations of that time. It is predicted to end by then, rules 7 and 15 too. Jobs that leave
    already are not gone through, and count as gone. If any of the jobs to be stopped has a grace
    time, those with one leave, the others run on, and the job does not start. If it would not fit
    beside those that leave already, it does not start, and no job is stopped. In both cases no
    later job of its group is tried so, and in the rest of the pass the jobs of groups of lower
    levels are passed over, as rule 24 does. A later pass tries it anew, like any other.
28. Quotas of submitted jobs: a key for each job, or none, and how many jobs of one key may be
    queued or running. A job that is to be submitted, by the log or by rule 26, waits outside the
    queue where it would be one too many of any of its keys. At each time, once all terminations
    have been handled, those outside are gone through in the order of the times at which they were
    to be submitted, ties by number; those of this very time are the last of them. A job that is not
    one too many, with those that have just come, is submitted. Its submit is then this time, as in
    rule 26; what rule 26 says of orders, and excludes, holds here too. But jobs that come in at one
    time do so in the order in which they were gone through. Suspended jobs
    count. A job that rule 27 cancels counts up to the next second, in which those outside are gone
    through again. Per-event, they are gone through after each pass of a time, and before its first
    termination; each submitted job has a pass of its own. Jobs that run or are queued at the
    beginning of an extract have been submitted, also where they are too many.
29. Suspension, rule 27 with another end: a stopped job has not ended, nor is it queued. It is
    suspended, and goes on later with what is left of its run and of its prediction; start is its
    first start. Where rule 27 says "the earlier start", the job that has run longer, all its pieces
    together, comes first. The processors of suspended jobs are taken. Only where rule 27 asks
    whether a job fits, those of jobs that its group may stop are free for it. Each level, the
    lowest too, begins with its suspended jobs, the longest run first, ties by number: one goes on
    if it fits beside all running jobs and the suspended ones that may stop it. In the usual pass,
    and in its profiles, each suspended job counts for each job, also for one that may stop it, from
    now until its expected end: what is left of its prediction, counted from the time when all jobs
    that run or are suspended and may stop it are expected to have ended. EASY is depth:1, rule 22,
    and until-shadow as in rule 25.
What orders may look at
30. The state is read once for each pass, after all events that come before it by rules 8 and 9, and
    before any job starts, stops or goes on in it; both orders of the pass, and the orders of rules
    14 and 27, use it. Jobs that are submitted now wait already. free: processors less
    those of running jobs, rule 10, over processors; free_1h: the same, less those of jobs that are
    predicted to end more than an hour from now; queued: jobs that wait; behind: the sum of their
    p~ q over processors; hour, weekday: of the time now; machine_size: processors of the machine;
    fits: whether what rule 21 says a job needs is free, and on nodes all its units have room,
    whatever rules 24 and 25 say; leaves: what is free less its q, over processors, else 0;
    user_running, user_waiting: jobs of its user that run, and wait; last_run, mean_run, spread_run:
    p of the last terminated job of its user, mean and standard deviation of p of the last five, or
    of those that there are; p~, p~ and 0 without any; known_runs: how many these are; in_use of an
    amount: what jobs that run ask for of it together. Suspended jobs neither run nor wait.
    A network has expressions as inputs, each less its center, over its scale. A sum of weighted
    inputs is of those of the job from the bias on, plus those that are the same for all jobs of a
    pass, from 0 on, and then each of the others. The score is such a sum from 0 on, the skip, plus
    those of hidden units, of which tanh is taken, times their outputs: every fourth of these is
    added up from 0 on, and then (first + second) + (third + fourth).
31. Quotas by time: as in rule 24, but a running job has what it asks for times what is left of its
    requested time, and a job is too much by what it asks for times its requested time; the bound is
    in minutes. A suspended job keeps what is left of its time. A pass follows at the second at
    which rule 24 would pass over a job of the queue no more, if it did at the last pass and nothing
    else happened since. Under slurm the time that jobs have run counts at multiples of calc_period
    only (0: never before they end). There a pass of the second kind follows then, as soon as after
    an event; and one as at an event, as rule 23 has it of jobs that were left out.
33. Budgets: quotas of what jobs have used, which does not come back as they end. What a job has run
    counts at multiples of calc_period under slurm, else of 300 s, from the next second on, and at
    once as it ends or is stopped: s seconds since it was counted last, or since it began or went
    on, count as s f^s times what it asks for, and in each second that follows a multiple use is
    multiplied by f = 1 - 0.693 / half-life, 1 without one; what counts as a job ends does so as if
    it had been used at the multiple before. Below 10^-9 s it is 0. Bounds are in minutes, and what
    has been used is cut to whole ones. Of use alone, a job is too much if the bound has been
    reached. Of use in all, what running or suspended jobs still may use, as far as they have been
    counted, is added, cut likewise, and what the job asks for times its requested time; it is too
    much if that exceeds the bound. A pass follows in the second after the next multiple, as rule 31
    has it of time alone, if a budget bars a job of the queue, and jobs of its key run, or what they
    used is being forgotten.
Corrections
15. requested: p~. incremental: the k-th time, the prediction at submission + the k-th of
    INCREMENTS, at most p~; p~ after the last. recursive-doubling: twice the running time so far,
    which may exceed p~ (bounding it at p~ does not meet the published values). predicted-again:
    a new prediction of the estimate at that moment, p~ if that has passed.
Jobs that are held back
21. hold of share, from_s, factor, erode_s, by: a job starts, as a head or before it, only if
    min(P, q + round(share P z / (1 + wait / erode_s))) processors are free, with P of the machine,
    z = ln(x / from_s) / ln(factor), at least 0 and at most 1, halves rounded to even, worked out at
    the pass, with the wait of then; x is p~, the policy estimate, or the square root of their
    product. The head's shadow time, and extra, are by what it needs now; whether a job behind it
    fits the extra processors, by its q. A pass follows each submission, per-event too.
An extract of a trace
18. A job that was submitted before the time B at which the extract begins has a state by the
    trace's record: terminated if it had ended, at B at the latest; running if it had started before
    B and ends after; else queued. It is left out if its wait was not recorded. Running jobs get
    their processors in the order of their starts; one for which too few are left is queued.
    Jobs submitted at B or later come as usual, up to the end of the extract, exclusive.
19. Predictions for all of them are made at B in the order of submission, from the jobs that have
    terminated and those that run then; predictions of running jobs then expire, at B too, as if
    they had been made when the jobs started. Nothing is reserved yet. Predictors have learned the
    terminated jobs in the order of their ends, with the features of their submission: from the jobs
    that had ended by then, and those that ran. Where predictions kill, running jobs are killed at
    them; an extract with a job that would have been killed before B is an error.
20. A pass is due at B: per-timestamp, after all that happens then; per-event, before.
Records
16. reserved_start: the first promise. EASY: the shadow time of the first pass that leaves the job
    as blocked head, even where nothing else is queued. Under a policy whose order changes as jobs
    wait (or are predicted anew) only a pass promises at whose beginning, after rule 27, a queued
    job could start: all that it needs is free (rule 30), and rule 24 does not pass it over. Another
    may be the head later. conservative: the reservation made at submission; -1 where there was
    none.
17. backfilled: started at a pass that left a job before it in the primary order waiting.
"""

from hpcgym.reference.jobs import Job, jobs_of, node_jobs_of
from hpcgym.reference.nodes import NodeSimulation, simulate_nodes
from hpcgym.reference.pool import PoolSimulation, simulate_pool

__all__ = [
    "Job",
    "NodeSimulation",
    "PoolSimulation",
    "jobs_of",
    "node_jobs_of",
    "simulate_nodes",
    "simulate_pool",
]
