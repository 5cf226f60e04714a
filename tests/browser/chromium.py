# SPDX-License-Identifier: GPL-3.0-or-later
"""A headless Chromium that is spoken to over its debugging pipe: no driver program and no library is needed."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DEADLINE = 120.0


def found() -> str | None:
    """Return the browser's path; None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Chromium:
    """One browser with one page; keeps what the page said on the console and what it asked the network for."""

    def __init__(self) -> None:
        binary = found()
        if binary is None:
            raise RuntimeError("there is no Chromium")
        self._home = tempfile.mkdtemp(prefix="gpu-browser-")
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        given = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (theirs_in, theirs_out)]
        command = [
            binary,
            "--headless=new",
            "--remote-debugging-pipe",
            f"--user-data-dir={self._home}",
            "--no-first-run",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-extensions",
            "--disable-background-networking",
            "--disable-component-update",
            "--force-color-profile=srgb",
            "--hide-scrollbars",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            "about:blank",
        ]
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", f'exec "$@" 3<&{given[0]} 4>&{given[1]}', "bash", *command],
            pass_fds=given,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (theirs_in, theirs_out, *given):
            os.close(end)
        self._in, self._out, self._buffer, self._number = ours_in, ours_out, b"", 0
        self._session: str | None = None
        self.console: list[str] = []
        self.requests: list[str] = []
        pages = [one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page"]
        target = pages[0]["targetId"] if pages else self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; raise RuntimeError with what the browser says against it."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, address: str) -> None:
        """Open an address and wait until everything is loaded."""
        self.console.clear()
        self.requests.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        until = time.monotonic() + DEADLINE
        while self.run("document.readyState + location.href") != f"complete{address}":
            if time.monotonic() > until:
                raise RuntimeError(f"{address} was not loaded within {DEADLINE:.0f} s")
            time.sleep(0.05)

    def run(self, script: str) -> Any:
        """Return the value of a piece of JavaScript."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", "a script failed"))
        return answer["result"].get("value")

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        """Give the page another size, as a window or as a phone."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )

    def screenshot(self, path: pathlib.Path, *, whole: bool = False) -> None:
        """Write a picture of the window, or of the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self, path: pathlib.Path) -> None:
        """Print the page on A4."""
        answer = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=True,
                           preferCSSPageSize=False)
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        """End the browser and take its files away."""
        self._session = None
        try:
            self.call("Browser.close")
        except (RuntimeError, OSError):
            self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._home, ignore_errors=True)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _write, _error = select.select([self._in], [], [], DEADLINE)
            more = os.read(self._in, 1 << 20) if ready else b""
            if not more:
                raise RuntimeError("the browser does not answer" if not ready else "the browser ended")
            self._buffer += more
        line, _zero, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method"), message.get("params") or {})
        return message

    def _note(self, event: str | None, what: dict[str, Any]) -> None:
        if event == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(one.get("value")) for one in what["args"]))
        elif event == "Runtime.exceptionThrown":
            self.console.append(str(what["exceptionDetails"].get("exception", {}).get("description")))
        elif event == "Log.entryAdded":
            self.console.append(what["entry"]["text"])
        elif event == "Network.requestWillBeSent" and what["request"]["url"] != "about:blank":
            self.requests.append(what["request"]["url"])
