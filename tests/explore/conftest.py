"""Scripts of the page in Node, and pages in a browser: both are skipped without any."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from few_jobs import few_jobs

from hpcgym.explore.document import source
from hpcgym.explore.page import SCRIPTS
from hpcgym.simulation.run import simulate

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="module", autouse=True)
def _one_date() -> Iterator[None]:
    """Pages tell when they were written: they are compared with others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "0")
        yield


@pytest.fixture(scope="session")
def node() -> Callable[[list[str], str, Any], Any]:
    """What the body of a function returns in Node, after some files of the page, of ``given``."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("there is no Node to run the scripts of the page")

    def run(files: list[str], body: str, given: Any) -> Any:
        assert set(files) <= set(SCRIPTS)
        parts = "\n".join(source(f"{name}.js") for name in files)
        script = (
            f'"use strict";\n{parts}\nconst work = async (given) => {{ {body} }};\n'
            'work(JSON.parse(require("fs").readFileSync(0, "utf8")))'
            ".then((found) => process.stdout.write(JSON.stringify(found)));\n"
        )
        done = subprocess.run(
            [program, "-e", script], input=json.dumps(given), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Chromium by playwright; never where tests run for others, where it is not installed."""
    if os.environ.get("CI"):
        pytest.skip("browsers are not for CI")
    api = pytest.importorskip("playwright.sync_api", reason="there is no playwright")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Any]]:
    """A function that opens a page and waits until it is drawn; at the end there was no error."""
    contexts, errors = [], []

    def opened(address: str, **options: Any) -> Any:
        context = chromium.new_context(
            **{"viewport": {"width": 1400, "height": 850}, "accept_downloads": True, **options}
        )
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.goto(address)
        tab.wait_for_selector("body[data-ready]", state="attached")
        return tab

    yield opened
    for context in contexts:
        context.close()
    # the app says in words what is wrong with a rule; the browser logs its status too
    assert [text for text in errors if "status of 422" not in text] == []


@pytest.fixture(scope="session")
def made() -> Callable[..., Any]:
    """A function that simulates jobs given as (submit, run, processors)."""

    def simulated(jobs: list[tuple[int, int, int]], rule: str = "easy", **more: Any) -> Any:
        given = {"name": "made", "job_number": np.arange(1, len(jobs) + 1), **more}
        return simulate(few_jobs(8, *zip(*jobs, strict=True), **given), rule)

    return simulated
