"""``hpcgym tune``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import run, succeed

LOG = "lublin:jobs=1500,processors=32,seed=5,load=1.0"
SMALL = ("--search", "orders=saf,weights", "--search", "estimates=requested", "--search",
         "backfilling=easy", "--search", "backfill_orders=spf", "--budget", "20", "--executor",
         "serial")  # fmt: skip


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("tune") / "tuned"
    done = succeed("tune", LOG, "--output", folder, "--bound", "max_wait <= 60d", *SMALL)
    return folder, done.output


@pytest.mark.slow
def test_it_writes_a_scheduler_that_other_commands_take(tuned: tuple[Path, str]) -> None:
    folder, said = tuned
    assert said.count("weekly_bsld on later weeks: ") == 1
    scheduler = folder / "scheduler.toml"
    assert f"hpcgym simulate {LOG} --scheduler {scheduler} simulates it" in said
    assert not (folder / "search.checkpoint").exists()
    for command in (
        ("simulate", LOG, "--scheduler", scheduler),
        ("compare", LOG, "--scheduler", f"easy,{scheduler}"),
        ("evaluate", scheduler, "--workload", LOG, "--number", "3", "--jobs", "100"),
    ):
        assert succeed(*command).exit_code == 0


def test_a_folder_is_not_overwritten(tuned: tuple[Path, str]) -> None:
    folder, _ = tuned
    before = (folder / "scheduler.toml").read_text()
    said = run("tune", LOG, "--output", folder, *SMALL)
    assert "is there already: choose another folder" in said.output
    assert (folder / "scheduler.toml").read_text() == before


@pytest.mark.slow
def test_json_is_the_board(tmp_path: Path) -> None:
    done = succeed(
        "tune", LOG, "--output", tmp_path, "--bound", "none", "--against", "easy-sjbf", *SMALL,
        "--format", "json",
    )  # fmt: skip
    rows = json.loads(done.stdout)["rows"]
    assert [row["scheduler"] for row in rows] == ["tuned", "saf", "easy", "easy-sjbf"]
    assert rows[0]["tuned_percent"] == 0
    assert all(row["kept"] for row in rows)


SHARED = ("--cluster", "20x2x24", "--speedups", "generated", "--search", "orders=fcfs,filler",
          "--search", "partners=fill", "--search", "levers=none", "--budget", "5", "--executor",
          "serial")  # fmt: skip


@pytest.mark.slow
def test_jobs_that_share_nodes(tmp_path: Path) -> None:
    jobs = "codes:jobs=300,processes=256,arrivals=poisson,interval=2500"
    folder = tmp_path / "tuned"
    done = succeed("tune", jobs, "--output", folder, *SHARED)
    assert "against easy-co (fewer than five weeks: no interval)" in done.output
    tuned = folder / "scheduler.toml"
    simulate = ("simulate", jobs, "--cluster", "20x2x24", "--speedups", "generated")
    assert f"hpcgym {' '.join((*simulate, '--scheduler', str(tuned)))} simulates it" in done.output
    assert succeed(*simulate, "--scheduler", tuned).exit_code == 0
    drawn = ("lublin:jobs=300,processors=900,seed=1", "--codes", "1", "--format", "json")
    done = succeed("tune", *drawn, "--output", tmp_path / "other", *SHARED)
    assert [row["scheduler"] for row in json.loads(done.stdout)["rows"]][-1] == "easy"
