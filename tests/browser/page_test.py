#!/usr/bin/env python3
"""Opens reports in a real headless Chromium and looks at them, as a reader would.

usage: page_test.py THIMBLE [--shots FOLDER]

Needs chromium, chromium-driver and python3-selenium (`make test-page` installs them). Checked in the
light, in the dark and at a phone's width: the page draws itself, nothing is fetched, the console stays
empty, the pointer and the keyboard find tensors by name, nothing is wider than the screen. At 10,000
calls the processor time of a frame while the pointer moves is printed, and bounded; wall time is not, since
others may use the machine.
"""
import argparse
import base64
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

SCREENS = {  # name: width, height, colour scheme, is it a phone
    "light": (1280, 900, "light", False),
    "dark": (1280, 900, "dark", False),
    "phone": (390, 844, "light", True),
}
MOST_WORK_MS = 16  # of processor time: 60 frames a second


class Browser:
    def __init__(self):
        options = Options()
        for flag in ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)

    def screen(self, name):
        width, height, scheme, phone = SCREENS[name]
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=2, mobile=phone)

    def call(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def open(self, path):
        self.driver.get_log("performance")
        self.driver.get(path.resolve().as_uri())
        for _ in range(100):
            if self.js("return document.documentElement.dataset.ready") == "yes":
                break
            time.sleep(0.1)
        self.settle()

    def settle(self):
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));")

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def box(self, selector):
        return self.js("""const e = document.querySelector(arguments[0]);
                          e.scrollIntoView({block: "center"});
                          const b = e.getBoundingClientRect();
                          return [b.left, b.top, b.width, b.height];""", selector)

    def tip(self):
        return self.js("const t = document.getElementById('tip'); return t.hidden ? '' : t.innerText;")

    def key(self, name):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name)
        self.settle()

    def shot(self, path):
        height = self.js("return document.documentElement.scrollHeight")
        width = self.js("return innerWidth")
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                            clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 0.5})
        path.write_bytes(base64.b64decode(picture["data"]))


class Checks:
    def __init__(self):
        self.failed = []

    def __call__(self, holds, what):
        if not holds:
            self.failed.append(what)
            print(f"FAILED: {what}")


def run(thimble, *words):
    subprocess.run([thimble, *map(str, words)], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


# Whether a canvas shows more than two colours.
COLOURS = """
  const c = document.querySelector(arguments[0]);
  const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
  const seen = new Set();
  for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 200) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
  return seen.size;"""


# The share of blue (weights) in the lowest tenth of the address chart, at the middle of the step. The thousands of
# running statistics between them are grey.
BLUE = """
  const c = document.querySelector("#address-chart canvas"), ratio = devicePixelRatio;
  const ink = (name) => {
    const one = document.createElement("canvas").getContext("2d");
    one.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
    one.fillRect(0, 0, 1, 1);
    return one.getImageData(0, 0, 1, 1).data;
  };
  const far = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
  const bottom = c.height - 42 * ratio, height = Math.round(0.1 * bottom);
  const d = c.getContext("2d").getImageData(c.width / 2, bottom - height, 1, height).data;
  let blue = 0;
  for (let i = 0; i < d.length; i += 4) {
    if (far(d.slice(i, i + 3), ink("--weight")) < far(d.slice(i, i + 3), ink("--statistic"))) ++blue;
  }
  return blue / height;"""


def check_common(browser, check, where):
    log = [entry for entry in browser.driver.get_log("browser")]
    check(not log, f"{where}: an empty console, not {log}")
    fetched = []
    for entry in browser.driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            fetched.append(message["params"]["request"]["url"])
    check(all(url.startswith("file:") for url in fetched) and len(fetched) <= 1,
          f"{where}: nothing fetched, not {fetched}")
    wide = browser.js("return document.documentElement.scrollWidth - innerWidth")
    check(wide <= 0, f"{where}: nothing wider than the screen, not by {wide} pixels")


def check_report(browser, check, where, curves):
    for chart in ["memory", "address", "frontier", "time"]:
        seen = browser.js(COLOURS, f"#{chart}-chart canvas")
        check(seen > 2, f"{where}: the {chart} chart shows something")
    drawn = browser.js("return document.querySelectorAll('#curves canvas').length")
    check(drawn == 2 * curves, f"{where}: {curves} charts of training, not {drawn / 2}")
    for chart in ["memory", "address"]:
        left, top, width, height = browser.box(f"#{chart}-chart")
        browser.move(left + 0.5 * width, top + 0.85 * height - 20)  # weights lie lowest
        tip = browser.tip()
        check("why" in tip and "f32[" in tip, f"{where}: the pointer finds a tensor on {chart}, not {tip!r}")
    browser.move(1, 1)  # or charts that scroll under the pointer tell of it, not of the keyboard
    chosen = browser.js("return JSON.parse(document.getElementById('data').textContent).frontier.chosen.arena")
    browser.js("document.getElementById('frontier-chart').focus()")
    tips = []
    for _ in range(40):
        browser.key("ArrowRight")
        tips.append(browser.tip())
    check(any(f"{chosen:,}" in tip for tip in tips), f"{where}: the chosen plan is on the frontier")
    browser.js("document.getElementById('memory-chart').focus()")
    browser.key("ArrowRight")
    first = browser.tip()
    browser.key("ArrowDown")  # the largest may lie on top
    check("call" in first and browser.tip() != first, f"{where}: arrows go from tensor to tensor")
    check(browser.js("return document.getElementById('spoken').textContent") != "",
          f"{where}: what the keyboard finds is spoken")
    browser.key("Escape")
    check(browser.tip() == "", f"{where}: Escape ends the look")


def check_zoom_and_search(browser, check):
    before = browser.js(COLOURS, "#address-chart canvas")
    left, top, width, height = browser.box("#memory-chart")
    y = top + height / 2
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=left + 0.4 * width, y=y)
    browser.call("Input.dispatchMouseEvent", type="mousePressed", x=left + 0.4 * width, y=y, button="left")
    for at in (0.45, 0.5, 0.55):
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=left + at * width, y=y, button="left")
    browser.call("Input.dispatchMouseEvent", type="mouseReleased", x=left + 0.55 * width, y=y, button="left")
    browser.settle()
    browser.move(left + 0.2 * width, y)
    tip = browser.tip()
    call = int(tip.split("call ")[-1].split(" of")[0].replace(",", "")) if "call " in tip else 0
    calls = int(tip.split(" of ")[-1].split(":")[0].replace(",", "")) if " of " in tip else 1
    check(0.25 * calls < call < 0.6 * calls, f"dragging zooms in (call {call} of {calls} at a fifth of the width)")
    check(before > 2, "the address chart is there")
    browser.js("document.getElementById('zoom-all').click()")
    browser.js("""const s = document.getElementById('search'); s.value = 'conv recomputed';
                  s.dispatchEvent(new Event('input'));""")
    rows = browser.js("return [...document.querySelectorAll('#tensor-table tbody tr')].map((r) => r.innerText)")
    check(rows and all("recomputed" in row and "conv" in row for row in rows), "the search finds by fate and name")


def check_theme(browser, check):
    paper = lambda: browser.js("return getComputedStyle(document.body).backgroundColor")
    before = paper()
    browser.js("document.getElementById('theme').click()")
    browser.settle()
    check(paper() != before, "the button turns light to dark")
    browser.js("document.getElementById('theme').click()")


def work_per_frame(browser, selector, moves=60):
    """Milliseconds of processor time that the page takes for a move of the pointer and the frame after it."""
    left, top, width, height = browser.box(selector)

    def busy():
        metrics = browser.call("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    browser.call("Performance.enable", timeDomain="threadTicks")
    before = busy()
    browser.driver.execute_async_script("""
      const [selector, left, top, width, height, moves, done] = arguments;
      const chart = document.querySelector(selector);
      function step(i) {
        if (i === moves) { done(); return; }
        chart.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, pointerType: "mouse",
          clientX: left + 80 + (width - 100) * i / moves, clientY: top + height * (0.35 + 0.5 * Math.abs(Math.sin(i))) }));
        requestAnimationFrame(() => setTimeout(() => step(i + 1)));
      }
      step(0);""", selector, left, top, width, height, moves)
    work = 1000 * (busy() - before) / moves
    browser.call("Performance.disable")
    return work


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("thimble")
    parser.add_argument("--shots", type=pathlib.Path)
    arguments = parser.parse_args()
    check = Checks()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        shots = arguments.shots or folder
        shots.mkdir(parents=True, exist_ok=True)
        for name, more in {"small": ["--microbatch", "24"], "whole": []}.items():
            run(arguments.thimble, "train", "wrn-10-1", "--data", "digits", "--batch", 48, "--steps", 120,
                "--eval-every", "30 steps", "--memory", "2.5MB" if name == "small" else "64MB", "--norm", "group",
                "--out", folder / name, *more)
        run(arguments.thimble, "report", folder / "small", "-o", folder / "run.html")
        run(arguments.thimble, "compare", folder / "small", folder / "whole", "-o", folder / "compare.html")
        run(arguments.thimble, "plan", "resnet-1001", "--device", "null", "--batch", 8, "--planner", "drop_cheap",
            "--save", folder / "large.json")
        run(arguments.thimble, "report", folder / "large.json", "--frontier", "off", "-o", folder / "large.html")

        browser = Browser()
        try:
            for screen in SCREENS:
                browser.screen(screen)
                browser.open(folder / "run.html")
                check_report(browser, check, screen, curves=4)
                check_common(browser, check, screen)
                browser.move(1, 1)
                browser.shot(shots / f"report-{screen}.png")
                browser.open(folder / "compare.html")
                rows = browser.js("return document.querySelectorAll('#run-table tbody tr').length")
                check(rows == 2, f"{screen}: two runs are compared, not {rows}")
                check_common(browser, check, f"compare, {screen}")
                browser.shot(shots / f"compare-{screen}.png")
            browser.screen("light")
            browser.open(folder / "run.html")
            check_zoom_and_search(browser, check)
            check_theme(browser, check)

            browser.open(folder / "large.html")
            calls = browser.js("""const d = JSON.parse(document.getElementById('data').textContent);
                                  return atob(d.calls.node.data).length / 4;""")
            check(calls >= 10000, f"a step of 10,000 calls at least, not {calls}")
            blue = browser.js(BLUE)
            check(blue > 0.9, f"weights are seen where they lie, between small tensors, not in {blue:.0%}")
            for chart in ["memory", "address"]:
                work = work_per_frame(browser, f"#{chart}-chart")
                print(f"{calls:.0f} calls, {chart}: {work:.1f} ms of processor time a frame")
                check(work < MOST_WORK_MS, f"{chart}: a frame of {MOST_WORK_MS} ms at most, not {work:.1f}")
            check_common(browser, check, "large")
            browser.move(1, 1)
            browser.shot(shots / "report-large.png")
        finally:
            browser.driver.quit()
    print("the page: ok" if not check.failed else f"the page: {len(check.failed)} failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
