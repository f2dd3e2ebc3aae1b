"""Draw the README's picture of the explorer from today's page: ``docs/pictures/explorer.png``.

It drives Chromium by playwright, which are not in any extra: CONTRIBUTING.md says how they are
installed.

    python scripts/explorer_picture.py
"""

from __future__ import annotations

import threading
from pathlib import Path

from hpcgym.explore.live import Server, Session
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "explorer.png"
JOB = 4034


def main() -> None:
    """Pick the job in the live app, wait until it is explained, and save what is seen."""
    from playwright.sync_api import sync_playwright

    workload = load_workload("KTH-SP2")
    session = Session({name: simulate(workload, name) for name in ("easy", "saf")}, [])
    with sync_playwright() as playwright, Server(session) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_page(viewport={"width": 1280, "height": 1080})
        tab.goto(f"{server.address}#job={JOB}")
        tab.wait_for_selector("#why1 p")
        tab.click("#selected summary")
        tab.wait_for_selector("#groups tbody tr")
        tab.evaluate("document.getElementById('detail').scrollIntoView()")
        tab.evaluate("scrollTo(0, 0)")
        tab.wait_for_timeout(1000)
        tab.screenshot(path=PICTURE)
        browser.close()
        server.shutdown()
        thread.join()


if __name__ == "__main__":
    main()
