"""Draw pictures of today's explorer for the README and for the landing page of the site.

``explorer.png`` in ``docs/pictures`` is the whole page. ``schedules-wide-light.png`` and its three
kin have only the schedules: of the width that the site gives them on a screen and on a phone, in
light and dark.

It drives Chromium by playwright, which are not in any extra: CONTRIBUTING.md says how they are
installed.

    python scripts/explorer_picture.py
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from hpcgym.explore.live import Server, Session
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
JOB = 4034
#: Width and height in pixels of the page, for each width of the site's text.
SIZES = {"wide": (736, 560), "phone": (350, 560)}
#: What the landing page does not show: all but the schedules and their curves.
HIDDEN = "header, nav, aside, details, #moment, #map, #detail { display: none !important; }"
ALONE = "#explorer { grid-template: 100vh / minmax(0, 1fr) !important; padding: 0 !important; }"
STAGE = "#stage { grid-area: 1 / 1 !important; padding: 0 !important; }"


def main() -> None:
    """Pick the job in the live app, wait until it is explained, and save what is seen."""
    from playwright.sync_api import sync_playwright

    workload = load_workload("KTH-SP2")
    session = Session({name: simulate(workload, name) for name in ("easy", "saf")}, [])
    with sync_playwright() as playwright, Server(session) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        address = f"{server.address}#job={JOB}"
        draw_page(browser, address)
        for size in SIZES:
            for scheme in ("light", "dark"):
                draw_schedules(browser, address, size, scheme)
        browser.close()
        server.shutdown()
        thread.join()


def draw_page(browser: Browser, address: str) -> None:
    """Save the whole page, with the jobs of the range in view."""
    tab = browser.new_page(viewport={"width": 1280, "height": 1080})
    tab.goto(address)
    tab.wait_for_selector("#why1 p")
    tab.click("#selected summary")
    tab.wait_for_selector("#groups tbody tr")
    tab.evaluate("document.getElementById('detail').scrollIntoView()")
    tab.evaluate("scrollTo(0, 0)")
    save(tab, "explorer")


def draw_schedules(browser: Browser, address: str, size: str, scheme: str) -> None:
    """Save the schedules alone, with two pixels of the file for each of the page."""
    width, height = SIZES[size]
    tab = browser.new_page(
        viewport={"width": width, "height": height},
        device_scale_factor=2,
        color_scheme="dark" if scheme == "dark" else "light",
        bypass_csp=True,  # the page refuses styles that are not its own
    )
    tab.goto(address)
    tab.wait_for_selector("#why1 p", state="attached")
    tab.add_style_tag(content=HIDDEN + ALONE + STAGE)
    save(tab, f"schedules-{size}-{scheme}")


def save(tab: Page, name: str) -> None:
    """Write what a tab shows, once it has drawn it."""
    tab.wait_for_timeout(1000)
    tab.screenshot(path=PICTURES / f"{name}.png")
    tab.close()


if __name__ == "__main__":
    main()
