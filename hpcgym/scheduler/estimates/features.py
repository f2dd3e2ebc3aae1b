"""What a prediction of a job's run time may look at: table 7.2 of Glesser 2016."""

from __future__ import annotations

#: Name -> what it is, when the job is submitted. Features of users are of their ended jobs, and 0
#: as long as there are none, unless it says otherwise. The order is that of the table.
JOB_FEATURES = {
    "requested": "requested time [s]",
    "last": "run time of the user's last job [s]",
    "last2": "run time of the last but one [s]",
    "last3": "run time of the last but two [s]",
    "ave2": "mean run time of the user's last two jobs, or of the one that there is [s]",
    "ave3": "mean run time of the last three, or of those that there are [s]",
    "ave_all": "mean run time of all jobs of the user [s]",
    "processors": "processors requested",
    "user_processors": "mean of the processors that the user's jobs requested",
    "relative_processors": "processors / user_processors",
    "running_processors": "mean of the processors of the user's running jobs",
    "running_jobs": "number of the user's running jobs",
    "longest_running": "how long the first started of them has run [s]",
    "total_running": "the sum of how long they have run [s]",
    "occupied": "sum of their processors",
    "break_time": "time since a job of the user ended [s]",
    "day_cos": "cosine of the time of day, 2 pi a day from the trace's time 0",
    "day_sin": "sine of the same",
    "week_cos": "cosine of the time of the week, 2 pi a week from the trace's time 0",
    "week_sin": "sine of the same",
}

#: What else predictors in Python are told: numbers as in the log, and how long the job has run [s]
#: when a prediction that was too short is to be made anew; 0 at submission.
JOB_FACTS = ("user", "group", "code", "queue", "job", "elapsed")
