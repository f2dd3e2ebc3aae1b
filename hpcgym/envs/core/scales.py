"""What rewards are divided by: the slowdowns of a scheduler on the same jobs."""

from __future__ import annotations

from hpcgym.baselines.labels import scheduler_name
from hpcgym.envs.core.cutting import Episode
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.options import Options
from hpcgym.envs.core.surroundings import counted
from hpcgym.errors import HpcgymError
from hpcgym.schedule.within import metrics_within
from hpcgym.scheduler.site_rules import own_site_rules
from hpcgym.simulation.run import simulate
from hpcgym.workload.warm_start import decided


def scales_of(options: Options, episodes: Episodes, episode: Episode) -> list[float]:
    """Return what each reward of an episode is multiplied by, 1 without a reference.

    With one, it is jobs of the slice / sum of bounded slowdowns: the return is then minus the
    agent's sum over the reference's, both of the same jobs from the same beginning, under the same
    rules of the site.
    """
    jobs, scales = episodes.workload_of(episode), []
    rules = {rule: getattr(options.scheduler, rule) for rule in own_site_rules(options.scheduler)}
    for reference in options.rewards.references:
        if reference is None:
            scales.append(1.0)
            continue
        try:
            result = simulate(jobs, reference.but(**rules), cluster=options.cluster)
        except HpcgymError as error:
            raise HpcgymError(f"reward bsld/{scheduler_name(reference)}: {error}") from None
        metrics = metrics_within(result, *counted(episode))
        n = int(decided(jobs).sum()) if episode.last < 0 else episode.last - episode.first
        total = metrics["jobs"] * metrics["mean_bsld"]
        scales.append(n / total if metrics["jobs"] else 1.0)
    return scales
