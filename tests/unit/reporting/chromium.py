"""A headless Chromium spoken to over its debugging pipe: the DevTools protocol needs no package of its own."""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE = 120.0


def find_chromium():
    """Return the program, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page:
    """One open page: commands in, events kept."""

    def __init__(self, to_browser, from_browser):
        self._out, self._in, self._rest, self._count, self._session = to_browser, from_browser, b"", 0, None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _next(self):
        while b"\0" not in self._rest:
            part = os.read(self._in, 1 << 20)
            assert part, "Chromium ended"
            self._rest += part
        line, self._rest = self._rest.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, **params):
        """Send a command and return its result; events that come before it are kept."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def open(self, url, width, dark=False):
        """Load a page at a width, light or dark, and wait until it is there."""
        self.events.clear()
        phone = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=url)
        until = time.monotonic() + PATIENCE
        while self.js("document.readyState") != "complete" or self.js("location.href") == "about:blank":
            assert time.monotonic() < until, f"{url} does not load"
            time.sleep(0.05)

    def js(self, expression):
        """Return the value of an expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def complaints(self):
        """Return what the console said of errors and warnings, exceptions, and requests that left the page."""
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"]["text"])
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(str(params["args"]))
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "data:")):
                found.append(f"asks for {params['request']['url']}")
        return found

    def screenshot(self, height=844):
        """Return the top of the page as PNG."""
        width = self.js("innerWidth")
        clip = {"x": 0, "y": self.js("scrollY"), "width": width, "height": height, "scale": 1}
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"])


@contextmanager
def browser(profile):
    """Start Chromium with a new profile folder and yield its page; end it afterwards."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()

    process = subprocess.Popen(
        [
            "bash",
            "-c",
            f'exec "$0" "$@" 3<&{to_read} 4>&{from_write}',
            find_chromium(),
            *FLAGS,
            f"--user-data-dir={profile}",
            "about:blank",
        ],
        pass_fds=(to_read, from_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        os.close(to_read)
        os.close(from_write)
        yield Page(to_write, from_read)
    finally:
        process.terminate()
        process.wait(timeout=30)
        os.close(to_write)
        os.close(from_read)


def shoot(page, out, width=1000, height=1150):
    """Write the top of a page as PNG."""
    with tempfile.TemporaryDirectory() as profile, browser(profile) as opened:
        opened.open(page.resolve().as_uri(), width)
        out.write_bytes(opened.screenshot(height))


if __name__ == "__main__":
    shoot(Path(sys.argv[1]), Path(sys.argv[2]))
