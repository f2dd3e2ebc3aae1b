"""Random users, shares and orders by usage, as hpcgym takes them and as the slow order does."""

from __future__ import annotations

import math
from decimal import getcontext
from typing import Any

from drawing import assume
from drawing import strategies as st
from strategies import DEPTHS, predictions, with_few_looks, workloads

from hpcgym.reference.orders import weighted
from hpcgym.reference.shares import DIGITS, AccountTree, ByUsage
from hpcgym.scheduler.asked_for import without_idle_shares
from hpcgym.scheduler.policies import FairShare
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.model import Workload

getcontext().prec = DIGITS.prec
BUSY_W = 100.0
FACTORS = (-1.0, 50.0, 100.0, 200.0)  # powers of two, so that ties are exact in both
ABOVE: list[dict[Any, str]] = [
    {},
    {0: "a", 1: "a"},
    {0: "a", 1: "b", 2: "b", "a": "top"},
    {0: "a", -1: "b", "a": "top", "b": "top"},
]
SHARES: list[dict[Any, float]] = [{}, {0: 2.0}, {0: 0.5, 1: 4.0}]


class SlowOrder(ByUsage):
    """Leaves out cases in which the engine may round otherwise."""

    def begin(self, simulation: Any) -> None:
        super().begin(simulation)
        self.summed: dict[Any, Any] = {}  # who has had each score, at each time

    def doubt(self) -> None:
        assume(False)

    def score(self, job: Any, now: int) -> float:
        """Return it; sums of other thirds, say, that are equal may differ in doubles."""
        score = super().score(job, now)
        if self.accounts.in_a_tree and not isinstance(self.kind, str):
            other = self.summed.setdefault((now, score), job)
            if other.user != job.user and self.parts(other, now) != self.parts(job, now):
                self.doubt()
        return score

    def parts(self, job: Any, now: int) -> Any:
        """Return what a score is the sum of."""
        places = [self.place(what, job.user, now) for what in ("cpu", "energy")]
        return (*places, self.rest(job, now))


@st.composite
def with_power(draw: st.DrawFn, workload: Workload) -> Workload:
    """The workload with a power for some jobs."""
    power = draw(st.lists(st.sampled_from(FACTORS), min_size=len(workload), max_size=len(workload)))
    return workload.with_columns(power_w=power)


def watts_of(workload: Workload) -> list[float]:
    """What each processor of each job draws on a machine of BUSY_W."""
    return [BUSY_W if w < 0 else w for w in workload.power_w.tolist()]


@st.composite
def accounts(draw: st.DrawFn, workload: Workload) -> tuple[FairShare, AccountTree]:
    """Shares of users, as hpcgym and as the slow order take them."""
    # of what is long past too little is left to tell priorities from 1
    span = int(workload.submit_time[-1] - workload.submit_time[0] + workload.run_time.sum())
    given = {
        "shares": draw(st.sampled_from(SHARES)),
        "above": draw(st.sampled_from(ABOVE)),
        "half_life": draw(st.sampled_from([span // 20 + 1, span // 5 + 1, 604_800, None])),
        "in_a_tree": draw(st.booleans()),
        # the slow simulator adds up each period of each run: not a million of them
        "period": draw(st.sampled_from([0, 0, max(60, span // 50), span // 20 + 1, span // 5 + 1])),
    }
    given["damping"] = 1.0 if given["in_a_tree"] else draw(st.sampled_from([1.0, 0.25, 8.0]))
    fair = FairShare(
        given["half_life"] or math.inf,
        given["damping"],
        given["shares"],
        given["above"],
        "fair-tree" if given["in_a_tree"] else "classic",
        period_s=given["period"],
    )
    return fair, AccountTree({*workload.user_id.tolist()}, **given)


def fitting(orders: st.SearchStrategy[Any], fair: FairShare) -> st.SearchStrategy[Any]:
    """Those of some orders that go with the shares: places are not added up."""
    return orders.filter(lambda order: fair.formula == "classic" or order != "fs+efs")


@st.composite
def cases(draw: st.DrawFn) -> tuple[Workload, dict[str, Any], dict[str, Any]]:
    """A workload with power, and a scheduler by usage as hpcgym and as the oracle take it."""
    workload = draw(with_power(draw(workloads(max_jobs=30))))
    fair, slow = draw(accounts(workload))
    orders = [draw(order(slow, watts_of(workload))) for _ in range(2)]
    same = draw(st.booleans())
    other = draw(st.one_of(st.sampled_from(["fcfs", "sjbf"]), st.just("spf")))
    second = orders[0] if same else draw(st.sampled_from([orders[1], (other, other)]))
    first = draw(st.sampled_from([orders[0], orders[0], orders[0], ("fcfs", "fcfs")]))
    backfill = draw(st.sampled_from(["none", "easy", "easy", "conservative", *DEPTHS]))
    passes = ["per-timestamp"] if backfill in DEPTHS else ["per-timestamp", "per-event"]
    rules = {
        "backfill": backfill,
        "estimate": draw(
            st.one_of(st.sampled_from(["requested", "clairvoyant", "ave2"]), predictions(workload))
        ),
        "correction": draw(st.sampled_from(["requested", "incremental", "recursive-doubling"])),
        "threshold": draw(st.sampled_from([None, None, 0, 5, 2000])),
        "passes": draw(st.sampled_from(passes)),
    }
    rules["backfill"] = with_few_looks(backfill, workload)
    ours = rules | {"policy": first[0], "backfill_order": second[0], "fair_share": fair}
    return workload, heeded(ours), rules | {"policy": first[1], "backfill_order": second[1]}


def heeded(rules: dict[str, Any]) -> dict[str, Any]:
    """Return rules as ``simulate`` takes them: without shares at which none of them looks."""
    return rules | {"fair_share": without_idle_shares(Scheduler(**rules)).fair_share}


@st.composite
def order(draw: st.DrawFn, slow: AccountTree, watts: list[float]) -> tuple[Any, SlowOrder]:
    """An order as hpcgym and as the oracle take it."""
    names = {"fairshare": "cpu", "energy-fairshare": "energy", "fs+efs": "both"}
    if slow.in_a_tree:  # it has places, which are not added up
        del names["fs+efs"]
    name = draw(st.sampled_from([*names, "mixed", "mixed"]))
    if name != "mixed":
        return name, SlowOrder(names[name], slow, watts, BUSY_W)
    both = draw(st.sampled_from([(1.0, 1.0), (1.0, 0.0), (-0.5, 2.0), (0.0, 100.0)]))
    # 101 is prime: no whole number of seconds makes up for places in a tree, thirds of 1.5 say.
    # The last bit of a sum would decide such a tie, and the oracle does not have it.
    wait, size = draw(st.sampled_from([(0.0, 0.0), (0.0101, 0.0), (0.0, -0.25), (-0.0101, 0.25)]))
    time = draw(st.sampled_from([0.0, 0.0, -0.25]))
    if not wait and not size and not time and 0.0 in both:
        wait = 0.0101
    weights = {"fairshare": both[0], "energy_fairshare": both[1], "wait": wait, "processors": size}
    weights["requested"] = time
    rest = weighted((size, time, wait, 0, 0, 0))
    return weights, SlowOrder(both, slow, watts, BUSY_W, rest)
