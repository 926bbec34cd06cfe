# SPDX-License-Identifier: GPL-2.0-only
"""The report in Debian's Chromium: at two widths, light and dark, and as grey.

The screenshots are kept in out/screenshots.
"""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fake_result
import numpy as np
import pytest
from matplotlib import image
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from pagemint.report import page
from pagemint.results import reader

SHOTS = Path(__file__).parent.parent / "out/screenshots"
WIDTHS = (1280, 390)

LOOK = """
const box = (each) => { const r = each.getBoundingClientRect();
                        return [r.left, r.top, r.right, r.bottom]; };
const shown = (text) => ({text: text.textContent, box: box(text)});
return {
  width: document.documentElement.clientWidth,
  scrolled: document.documentElement.scrollWidth,
  scripts: document.scripts.length,
  fetched: performance.getEntriesByType("resource").length,
  paper: getComputedStyle(document.documentElement).backgroundColor,
  wide: [...document.querySelectorAll("body *")]
    .filter((each) => !each.closest(".scroll, svg"))
    .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
    .map((each) => each.outerHTML.slice(0, 80)),
  ids: [...document.querySelectorAll("[id]")].map((each) => each.id),
  plots: [...document.querySelectorAll(".plot")].map((plot) => ({
    name: plot.id,
    series: Number(plot.dataset.series),
    box: box(plot.querySelector("svg")),
    title: [...plot.querySelectorAll(".title text")].map((each) => each.textContent),
    units: [...plot.querySelectorAll(".unit text")].map((each) => each.textContent),
    legend: [...plot.querySelectorAll(".legend text")].map((each) => each.textContent),
    texts: [...plot.querySelectorAll("svg text")].map(shown),
    size: Math.min(...[...plot.querySelectorAll("svg text")]
      .map((each) => each.getBoundingClientRect().height)),
    paper: getComputedStyle(plot.querySelector("svg path")).fill,
    ink: getComputedStyle(plot.querySelector("svg text")).fill,
  })),
};
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    profile = tmp_path_factory.mktemp("profile")
    for argument in (
        "--headless=new",
        "--no-sandbox",  # root has none; the pages are our own
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--hide-scrollbars",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages to look at: one with every plot, one of two results, one emulated, one hostile."""
    both = ("safe", "plain")
    one = fake_result.text(
        sizes=(10**9, 10 * 10**9, 100 * 10**9),
        threads=(1, 2),
        returns=both,
        memory=True,
        folio=True,
    )
    first = fake_result.text()
    hostile = "<script>alert(1)</script><b onclick=alert(2)>" + "W" * 150
    made = {
        "one": [one],
        "two": [first, fake_result.text(seed=2, cpu="Intel(R) Xeon(R) 6972P")],
        "emulated": [fake_result.text(accel="tcg")],
        "hostile": [fake_result.text(cpu=hostile, workloads=(hostile[:80], "M" * 80))],
    }
    directory = tmp_path_factory.mktemp("pages")
    for name, texts in made.items():
        results = [reader.parse(text, f"{name}.json") for text in texts]
        (directory / f"{name}.html").write_text(page.make(results)[0])
    return {name: directory / f"{name}.html" for name in made}


def look_at(
    browser: webdriver.Chrome, file: Path, width: int, scheme: str, *, grey: bool = False
) -> dict[str, Any]:
    """Open a page, keep a screenshot of all of it, and return what can be seen on it."""

    def ask(command: str, **arguments: object) -> dict[str, Any]:
        answer: dict[str, Any] = browser.execute_cdp_cmd(command, arguments)
        return answer

    telephone = width < 600
    ask(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=2 if telephone else 1,
        mobile=telephone,
    )
    ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    ask("Emulation.setEmulatedVisionDeficiency", type="achromatopsia" if grey else "none")
    browser.get(file.as_uri())
    found: dict[str, Any] = browser.execute_script(LOOK)
    shot = ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
    SHOTS.mkdir(parents=True, exist_ok=True)
    name = f"{file.stem}-{width}-{'grey' if grey else scheme}.png"
    (SHOTS / name).write_bytes(base64.b64decode(shot["data"]))
    return found


def overlaps(a: list[float], b: list[float]) -> bool:
    """Whether two boxes have more in common than the margins of their letters."""
    across = min(a[2], b[2]) - max(a[0], b[0])
    down = min(a[3], b[3]) - max(a[1], b[1])
    return across > 2 and down > 0.35 * min(a[3] - a[1], b[3] - b[1])


def faults(found: dict[str, Any]) -> list[str]:
    """Return the faults that can be seen on a page."""
    wrong = [f"reaches beyond the page: {each}" for each in found["wide"]]
    if found["scrolled"] > found["width"]:
        wrong.append(f"the page is {found['scrolled']} wide, the window {found['width']}")
    if found["scripts"] or found["fetched"]:
        wrong.append("it has scripts, or fetched something")
    if len(set(found["ids"])) < len(found["ids"]):
        wrong.append("an id is there twice")
    for plot in found["plots"]:
        name = plot["name"]
        if not any(plot["title"]):
            wrong.append(f"{name} has no title")
        if not plot["units"] or not all("(" in unit for unit in plot["units"]):
            wrong.append(f"{name} has an axis without a unit: {plot['units']}")
        if plot["series"] > 1 and len(plot["legend"]) != plot["series"]:
            wrong.append(f"{name} has {plot['series']} series, its legend {plot['legend']}")
        if plot["size"] < 8:
            wrong.append(f"{name} has letters {plot['size']} high")
        left, top, right, bottom = plot["box"]
        for text in plot["texts"]:
            a, b, c, d = text["box"]
            if a < left - 1 or b < top - 1 or c > right + 1 or d > bottom + 1:
                wrong.append(f"{name}: {text['text']!r} is cut off")
        for number, text in enumerate(plot["texts"]):
            for other in plot["texts"][number + 1 :]:
                if overlaps(text["box"], other["box"]):
                    wrong.append(f"{name}: {text['text']!r} is over {other['text']!r}")
    return wrong


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["one", "two", "emulated", "hostile"])
def test_the_page_is_sound(
    name: str, width: int, scheme: str, browser: webdriver.Chrome, pages: dict[str, Path]
) -> None:
    found = look_at(browser, pages[name], width, scheme)
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]
    assert faults(found) == []
    assert bool(found["plots"]) == (name != "emulated")
    for plot in found["plots"]:
        assert plot["paper"] == found["paper"]
        assert plot["ink"] != found["paper"]
    assert found["paper"] == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(22, 26, 31)")


def _colours(picture: Path) -> float:
    """Return how much red, green and blue of a pixel differ at most: 0 to 1."""
    return float(np.ptp(image.imread(picture)[..., :3], axis=-1).max())


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_is_kept_as_grey(
    width: int, browser: webdriver.Chrome, pages: dict[str, Path]
) -> None:
    for grey in (False, True):
        look_at(browser, pages["one"], width, "light", grey=grey)
    assert _colours(SHOTS / f"one-{width}-light.png") > 0.2
    assert _colours(SHOTS / f"one-{width}-grey.png") < 0.02


@pytest.mark.parametrize(
    ("was", "becomes", "told"),
    [
        ('class="title"', 'class="other"', "has no title"),
        ("time (ms)", "time", "without a unit"),
        ('class="legend"', 'class="other"', "its legend"),
        ("</main>", "<div style='width: 1500px'>wide</div></main>", "the page is"),
        ("</main>", "<script></script></main>", "scripts"),
        ('font-size="8px"', 'font-size="40px"', "is over"),
    ],
)
def test_a_fault_is_seen(
    was: str,
    becomes: str,
    told: str,
    browser: webdriver.Chrome,
    pages: dict[str, Path],
    tmp_path: Path,
) -> None:
    text = pages["two"].read_text()
    assert was in text
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace(was, becomes))
    found = look_at(browser, broken, 1280, "light")
    (SHOTS / "broken-1280-light.png").unlink()
    assert told in "\n".join(faults(found))
