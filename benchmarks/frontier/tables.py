"""The tables: what is known, fronts, what was chosen early and reached late, and who pays."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.benchmarks.frontier.choice import (
    AIMS,
    AT_MOST,
    front_of,
    means_of,
    ratios_to_reference,
)
from hpcgym.benchmarks.frontier.rules import REFERENCE, Rule, named_rules
from hpcgym.benchmarks.frontier.simulations import RUN_TIMES_H, WIDTHS

if TYPE_CHECKING:
    import pandas as pd

HEADS = {
    "mean_bsld": "mean BSLD",
    "mean_wait_h": "mean wait h",
    "p99_wait_h": "99th percentile h",
    "max_wait_h": "longest wait h",
    "users_p90_wait_h": "90th percentile of users' mean waits h",
    "utilization": "utilisation",
}
NOBODY = "no rule keeps the bounds on all early parts"


def _head(aim: str) -> str:
    """Return what an aim is called without its unit."""
    return HEADS[aim].removesuffix(" h")


def named(logs: Mapping[str, pd.DataFrame], best: str | None) -> pd.DataFrame:
    """Return the named rules, and the chosen one, on the whole logs as they are."""
    import pandas as pd

    names = [rule.name for rule in named_rules()] + ([best] if best else [])
    tables = []
    for log, rows in logs.items():
        as_is = rows[(rows["part"] == "whole") & (rows["start_week"] == 0) & (rows["seed"] == 0)]
        table = as_is.set_index("rule").reindex(list(dict.fromkeys(names))).dropna(how="all")
        tables.append(_shown(table[list(HEADS)], log))
    return pd.concat(tables, ignore_index=True)


def over_logs(logs: Mapping[str, pd.DataFrame], part: str = "whole") -> pd.DataFrame:
    """Return for each rule what a part of each log has of each aim, divided by EASY's.

    Geometric means, and the greatest of the logs.
    """
    import pandas as pd

    found: dict[str, dict[str, float]] = {}
    tables = [ratios_to_reference(means_of(rows, part)) for rows in logs.values()]
    for rule, ratios in pd.concat(tables).groupby(level=0, sort=False):
        row = found.setdefault(str(rule), {})
        for aim in AIMS:
            row[f"{_head(aim)} / EASY's"] = float(np.exp(np.log(ratios[aim].to_numpy()).mean()))
        for aim in AIMS:
            row[f"{_head(aim)} / EASY's, greatest"] = float(ratios[aim].max())
    return pd.DataFrame.from_dict(found, orient="index").rename_axis("rule").reset_index()


def fronts(logs: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the rules of each log that no other beats in all aims, means over variants."""
    import pandas as pd

    return pd.concat(
        [_shown(front_of(means_of(rows, "whole"))[list(HEADS)], log) for log, rows in logs.items()],
        ignore_index=True,
    )


def _shown(table: pd.DataFrame, log: str) -> pd.DataFrame:
    """Return a table with heads for people, and the log in front."""
    shown = table.rename(columns=HEADS).reset_index()
    shown.insert(0, "log", log)
    return shown


def choices(found: pd.DataFrame, number: int = 10) -> pd.DataFrame:
    """Return the first rules of :func:`choice.chosen`, with heads for people."""
    table = found.head(number).reset_index()
    return table.rename(
        columns={f"{aim} / EASY's, greatest": f"{_head(aim)} / EASY's, greatest" for aim in AT_MOST}
    )


def held_out(logs: Mapping[str, pd.DataFrame], rules: Mapping[str, str | None]) -> pd.DataFrame:
    """Return what a rule for each log reaches on the late parts, against EASY.

    Values are means over the variants, with the least and the greatest of them.
    """
    import pandas as pd

    rows = []
    for log, all_rows in logs.items():
        best = rules[log]
        if best is None:
            continue
        late = all_rows[all_rows["part"] == "late"].set_index(["start_week", "seed"])
        ours, easy = late[late["rule"] == best], late[late["rule"] == REFERENCE]
        row: dict[str, Any] = {"log": log, "rule": best}
        for aim in AIMS:
            ratio = (ours[aim] / easy[aim]).to_numpy()
            row[f"{_head(aim)} / EASY's"] = float(ratio.mean())
            row[f"{_head(aim)}, least to greatest"] = f"{ratio.min():.2f} to {ratio.max():.2f}"
        rows.append(row)
    return pd.DataFrame(rows)


def who_pays(logs: Mapping[str, pd.DataFrame], best: str | None) -> pd.DataFrame:
    """Return mean waits [h] of classes of jobs under EASY, SAF and the chosen rule."""
    import pandas as pd

    rules = [REFERENCE, "saf", "saf-typical", *([best] if best else [])]
    rows = []
    for log, all_rows in logs.items():
        means: Any = means_of(all_rows, "whole")
        for name in (*RUN_TIMES_H, *WIDTHS):
            row: dict[str, Any] = {"log": log, "jobs": f"run {name}" if " h" in name else name}
            for rule in dict.fromkeys(rules):
                if rule in means.index:
                    row[f"wait h, {rule}"] = float(means.loc[rule, f"mean_wait_h, {name}"])
            rows.append(row)
    return pd.DataFrame(rows)


def extra_processors(logs: Mapping[str, pd.DataFrame], rules: Mapping[str, Rule]) -> pd.DataFrame:
    """Return each order with and without extra processors, means over variants of whole logs."""
    import pandas as pd

    rows = []
    for log, all_rows in logs.items():
        means: Any = means_of(all_rows, "whole")
        for order in _orders(rules):
            one = means.loc[Rule(order).name]
            other = means.loc[Rule(order, backfill="until-shadow").name]
            rows.append(
                {
                    "log": log,
                    "rule": order,
                    **{HEADS[aim]: float(one[aim]) for aim in AIMS},
                    **{f"{HEADS[aim]}, until shadow": float(other[aim]) for aim in AIMS},
                }
            )
    return pd.DataFrame(rows)


def levers(logs: Mapping[str, pd.DataFrame], rules: Mapping[str, Rule]) -> pd.DataFrame:
    """Return what threshold and hold do to each order: medians over the other rules, and logs.

    Ratios of a rule to the same rule without its threshold, or without its hold; ``rules`` are all
    by their names.
    """
    import pandas as pd

    rows = []
    means: list[Any] = [means_of(all_rows, "whole") for all_rows in logs.values()]
    for what, plain in (("threshold_h", None), ("share", 0.0)):
        usual: dict[str, Any] = {what: plain}
        values: list[Any] = sorted({getattr(rule, what) for rule in rules.values()} - {plain})
        for order, value in product(_orders(rules), values):
            pairs = [
                (rule.name, rule._replace(**usual).name)
                for rule in rules.values()
                if rule.order == order and getattr(rule, what) == value
            ]
            if not pairs:  # the oldest first has no threshold
                continue
            row: dict[str, Any] = {"order": order, "lever": _lever(what, value)}
            for aim in AIMS:
                ratios = [
                    table.loc[one, aim] / table.loc[other, aim]
                    for table in means
                    for one, other in pairs
                ]
                row[f"{_head(aim)} ratio"] = float(np.median(ratios))
            rows.append(row)
    return pd.DataFrame(rows)


def _orders(rules: Mapping[str, Rule]) -> list[str]:
    """Return the orders of some rules, each once."""
    return list(dict.fromkeys(rule.order for rule in rules.values()))


def _lever(what: str, value: float) -> str:
    """Return what one of the two levers is called."""
    return f"threshold {value} h" if what == "threshold_h" else f"hold {value:g}"


def relative(logs: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return for each log the aims of all rules divided by EASY's, means over variants."""
    return {log: ratios_to_reference(means_of(rows, "whole")) for log, rows in logs.items()}
