"""How fast ``hpcgym explore`` is: size of its page, steps of the wheel, from a slider to a picture.

It drives Chromium by playwright, which are not in any extra: CONTRIBUTING.md says how they are
installed.

    python benchmarks/explorer_speed.py KTH-SP2
"""

from __future__ import annotations

import argparse
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym.explore import write_page
from hpcgym.explore.live import Server, Session
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload

STEPS = 120  # of the wheel
#: Zoom in and out again at a pointer; from each event to the end of its frame [ms].
WHEEL = """async (steps) => {
  const pane = document.getElementById("gantt0").parentElement, box = pane.getBoundingClientRect();
  const at = { clientX: box.x + box.width / 3, clientY: box.y + 40, cancelable: true };
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  const spent = [];
  for (let i = 0; i < steps; i++) {
    await frame();
    const begin = performance.now();
    pane.dispatchEvent(new WheelEvent("wheel", { ...at, deltaY: i % 40 < 20 ? -150 : 150 }));
    await frame();
    spent.push(performance.now() - begin);
  }
  return spent;
}"""

#: Move a slider; from each event to the second frame after its answer [ms].
SLIDER = """async ([name, values]) => {
  const input = document.querySelector(`[name="${name}"]`), spent = [];
  for (const value of values) {
    const before = document.body.dataset.live, begin = performance.now();
    input.value = value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    while (document.body.dataset.live === before) await new Promise(requestAnimationFrame);
    spent.push(performance.now() - begin);
  }
  return spent;
}"""


def main() -> None:
    """Measure, and print a line for each figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("workload")
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_page(viewport={"width": 1400, "height": 850})
        workload = load_workload(given.workload)
        results = {name: simulate(workload, name) for name in ("easy", "saf")}
        for names in (["easy"], ["easy", "saf"]):
            file = Path(folder, f"{len(names)}.html")
            write_page({name: results[name] for name in names}, file)
            print(f"{' and '.join(names)}: {file.stat().st_size / 1e6:.2f} MB")
            wheel(tab, file)
        slider(tab, Session({"easy": results["easy"]}, []), workload.processors)


def wheel(tab: Any, file: Path) -> None:
    """Print how long steps of the wheel take."""
    tab.goto(file.absolute().as_uri())
    tab.wait_for_selector("body[data-ready]", state="attached")
    print("  ready after", round(tab.evaluate("performance.now()")), "ms")
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = page_seconds(session)
    show("wheel step to frame", tab.evaluate(WHEEL, STEPS))
    own = 1000 * (page_seconds(session) - before) / STEPS
    print(f"  {own:.0f} ms of processor time a step, whatever else runs")


def page_seconds(session: Any) -> float:
    """Return the processor time that the page's own thread has spent [s]."""
    found = session.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in found if one["name"] == "TaskDuration"))


def slider(tab: Any, session: Session, processors: int) -> None:
    """Print how long it takes from a slider to the picture."""
    with Server(session) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        tab.goto(server.address)
        tab.wait_for_selector("body[data-ready]", state="attached")
        show(
            "size to picture",
            tab.evaluate(SLIDER, ["processors", [*range(processors, processors + 30)]]),
        )
        show("threshold to picture", tab.evaluate(SLIDER, ["threshold", [*range(1, 31)]]))
        server.shutdown()
        thread.join()


def show(what: str, spent: list[float]) -> None:
    """Print the median and the 95 % of some times [ms]."""
    half, most = np.percentile(spent, [50, 95])
    print(f"  {what}: {half:.0f} ms, 95 % below {most:.0f} ms")


if __name__ == "__main__":
    main()
