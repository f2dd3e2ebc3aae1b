"""Unknown names in files of Slurm that are close to a known one: probably typing errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from hpcgym.errors import HpcgymWarning, warn_caller

if TYPE_CHECKING:
    from hpcgym.cluster.slurm.settings import OtherSetting

_ALIKE = 0.85  # least similarity of a name and what is meant by it

#: All names in SchedulerParameters (man page slurm.conf), followed or not.
_PARAMETERS = (
    "allow_zero_lic", "assoc_limit_stop", "batch_sched_delay", "bb_array_stage_cnt",
    "bf_allow_magnetic_slot", "bf_busy_nodes", "bf_continue", "bf_hetjob_immediate",
    "bf_hetjob_prio", "bf_interval", "bf_job_part_count_reserve", "bf_licenses",
    "bf_max_job_array_resv", "bf_max_job_assoc", "bf_max_job_part", "bf_max_job_start",
    "bf_max_job_test", "bf_max_job_user", "bf_max_job_user_part", "bf_max_time",
    "bf_min_age_reserve", "bf_min_prio_reserve", "bf_node_space_size", "bf_one_resv_per_job",
    "bf_resolution", "bf_running_job_reserve", "bf_topopt_enable", "bf_topopt_iterations",
    "bf_window", "bf_window_linear", "bf_yield_interval", "bf_yield_sleep", "build_queue_timeout",
    "correspond_after_task_cnt", "default_queue_depth", "defer", "defer_batch", "delay_boot",
    "disable_job_shrink", "disable_hetjob_steps", "enable_hetjob_steps", "enable_job_state_cache",
    "enable_user_top", "extra_constraints", "ignore_numa", "ignore_prefer_validation",
    "ignore_constraint_validation", "max_array_tasks", "max_depend_depth", "max_rpc_cnt",
    "max_sched_time", "max_script_size", "max_submit_line_size", "max_switch_wait",
    "no_backup_scheduling", "no_env_cache", "nohold_on_prolog_fail", "pack_serial_at_end",
    "partition_job_depth", "preempt_reorder_count", "preempt_strict_order",
    "preempt_youngest_first", "reduce_completing_frag", "requeue_on_resume_failure",
    "requeue_setup_env_fail", "salloc_wait_nodes", "sbatch_wait_nodes", "sched_interval",
    "sched_max_job_start", "sched_min_interval", "spec_cores_first", "step_retry_count",
    "step_retry_time", "time_min_as_soft_limit", "whole_hetjob",
)  # fmt: skip


def meant(name: str, known: Iterable[str]) -> str:
    """Return the known name closest to an unknown one; "" if it is known, or none is close."""
    names = {one.casefold(): one for one in known}
    if name.casefold() in names:
        return ""
    near = get_close_matches(name.casefold(), names, 1, _ALIKE)
    return names[near[0]] if near else ""


def warn_of_typos(settings: Iterable[OtherSetting], parameters: Mapping[str, str]) -> None:
    """Say which settings are probably other ones, mistyped.

    Parameters
    ----------
    settings : those that are not of the machine.
    parameters : ``SchedulerParameters`` by name.

    Warns
    -----
    HpcgymWarning : for each; it names file, line and what is probably meant.
    """
    found = [(one.where, one.key, one.near) for one in settings if one.near]
    places = [one.where for one in settings if one.is_called("schedulerparameters")]
    found += [
        (where, f"SchedulerParameters {name}", near)
        for where in places[-1:]
        for name in parameters
        if (near := meant(name, _PARAMETERS))
    ]
    for where, name, near in found:
        warn_caller(f"{where}: unknown setting {name}; did you mean {near}?", HpcgymWarning)
