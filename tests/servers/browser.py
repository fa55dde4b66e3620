"""A Chromium without a window, driven as people use one: by keys, clicks and what they then see.

It speaks the DevTools protocol over pipes (https://chromedevtools.github.io/devtools-protocol/),
so neither a driver nor a library is needed, and it ends with the tests, however they end.
"""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.servers.running import CannotStart, NotInstalled, newest

PROGRAM = "usr/bin/chromium"
ANSWER_S = 30.0  # The first answer comes when it has started.
SEEN_S = 10.0
HEIGHT = 900
READ_BYTES = 1 << 20
# Its descriptors 3 and 4 are those of the pipes.
START = 'exec "$@" 3<&"$COMMANDS" 4>&"$ANSWERS"'
FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # Its sandbox does not run as root; it only shows pages of ours.
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-breakpad",
    "--no-first-run",
    "--no-default-browser-check",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
KEYS = {  # What a page is told of a key: its code, and the text that it types, if any.
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "ArrowUp": (38, ""),
    "ArrowDown": (40, ""),
    "/": (191, "/"),
}
SHIFT = 8
GONE = ("Inspected target navigated", "context was destroyed", "Promise was collected")
# Of an element: the middle of what can be seen of it, after it has been scrolled to.
MIDDLE = """(element => {
  element.scrollIntoView({block: "center", behavior: "instant"});
  const {x, y, width, height} = element.getBoundingClientRect();
  return [x + width / 2, y + height / 2];
})(document.querySelector(%s))"""
# A value that comes true later. Its page may be gone by then, hence the loop around it.
LATER = """new Promise((seen, given_up) => {
  const ends = Date.now() + %d;
  const look = () => {
    const found = (() => { try { return %s; } catch { return null; } })();
    if (found) seen(found instanceof Node || found);
    else if (Date.now() > ends) given_up(new Error("did not come about"));
    else setTimeout(look, 10);
  };
  look();
})"""

# What axe finds: the rule, and each element that breaks it.
FLAWS = """%s;
axe.run(document, %s).then(found => found.violations.flatMap(
  rule => rule.nodes.map(node => `${rule.id}: ${node.html}`)))"""


class Failed(AssertionError):
    """Raised when the browser or the page refuses what it is told."""


class Browser:
    """One process of Chromium; each page in it is a visitor whom nobody knows yet."""

    def __init__(self) -> None:
        program = newest(PROGRAM)
        if (bash := shutil.which("bash")) is None:
            message = "there is no bash to start it with"
            raise NotInstalled(message)
        self._home = Path(tempfile.mkdtemp(prefix="chromium-"))
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        with (self._home / "browser.log").open("wb") as log:
            self._process = subprocess.Popen(
                [bash, "-c", START, "start", str(program), *FLAGS, f"--user-data-dir={self._home}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(commands, answers),
                start_new_session=True,
                env={
                    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
                    "HOME": str(self._home),
                    "LC_ALL": "C.UTF-8",
                    "COMMANDS": str(commands),
                    "ANSWERS": str(answers),
                },
            )
        os.close(commands)
        os.close(answers)
        self._number = 0
        self._read = b""
        self._pages: dict[str, Page] = {}
        try:
            self.call("Browser.getVersion", {})
        except Failed as error:
            self.close()
            raise CannotStart(str(error)) from error

    def close(self) -> None:
        """End it and remove what it wrote."""
        with suppress(Failed):
            self.call("Browser.close", {})
        os.close(self._commands)
        try:
            self._process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._answers)
        shutil.rmtree(self._home, ignore_errors=True)

    @contextmanager
    def page(
        self,
        width: int = 1280,
        height: int = HEIGHT,
        *,
        dark: bool = False,
        downloads: Path | None = None,
    ) -> Iterator["Page"]:
        """Open a page of this size; nothing is kept of it afterwards but its downloads."""
        visitor = self.call("Target.createBrowserContext", {})["browserContextId"]
        if downloads is not None:
            keep = {"behavior": "allow", "downloadPath": str(downloads)}
            self.call("Browser.setDownloadBehavior", {**keep, "browserContextId": visitor})
        blank = {"url": "about:blank", "browserContextId": visitor}
        target = self.call("Target.createTarget", blank)["targetId"]
        attached = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})
        page = self._pages[attached["sessionId"]] = Page(self, attached["sessionId"])
        page.prepare(width, height, dark=dark)
        try:
            yield page
        finally:
            self.call("Target.disposeBrowserContext", {"browserContextId": visitor})
            del self._pages[attached["sessionId"]]

    def call(self, method: str, given: dict[str, Any], session: str = "") -> dict[str, Any]:
        """Have a command done; what happens meanwhile is told to the pages."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": given}
        told = command | ({"sessionId": session} if session else {})
        try:
            os.write(self._commands, json.dumps(told).encode() + b"\0")
        except OSError as error:
            raise Failed(self._last_words(method)) from error
        ends_s = time.monotonic() + ANSWER_S
        while True:
            message = self.hear(ends_s, method)
            if message.get("id") == self._number:
                break
        if "error" in message:
            reason = f"{method}: {message['error']['message']}"
            raise Failed(reason)
        result: dict[str, Any] = message["result"]
        return result

    def hear(self, ends_s: float, reason: str) -> dict[str, Any]:
        """Return the next message, which a page has been told already if it is about one."""
        while b"\0" not in self._read:
            left_s = max(0.0, ends_s - time.monotonic())
            ready, _, _ = select.select([self._answers], [], [], left_s)
            data = os.read(self._answers, READ_BYTES) if ready else b""
            if not data:
                raise Failed(self._last_words(reason))
            self._read += data
        line, _, self._read = self._read.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        page = self._pages.get(message.get("sessionId", ""))
        if page is not None and "method" in message:
            page.note(message["method"], message["params"])
        return message

    def _last_words(self, method: str) -> str:
        said = (self._home / "browser.log").read_text(errors="replace")
        return f"no answer to {method}: {said[-2000:]}"


class Page:
    """What one visitor sees; `problems` and `requested` grow with what it does."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self._loads = 0
        self.problems: list[str] = []  # Errors, as the console shows them.
        self.requested: list[str] = []  # URLs, as they were asked for.

    def prepare(self, width: int, height: int, *, dark: bool) -> None:
        """Set the size and the scheme of colours, and listen."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def resize(self, width: int, height: int = HEIGHT) -> None:
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def slow_down(self, *, bytes_per_s: int, latency_ms: int, processor: int) -> None:
        """Load as over a network of this speed, and compute so many times slower."""
        speed = {"downloadThroughput": bytes_per_s, "uploadThroughput": bytes_per_s}
        self._call("Network.emulateNetworkConditions", offline=False, latency=latency_ms, **speed)
        self._call("Network.setCacheDisabled", cacheDisabled=True)
        self._call("Emulation.setCPUThrottlingRate", rate=processor)

    def print_view(self) -> None:
        """Show the page as it would be printed."""
        self._call("Emulation.setEmulatedMedia", media="print")

    def pdf(self, *, lines_of_the_browser: bool) -> bytes:
        """Print the page, on the paper that it asks for."""
        told = {"displayHeaderFooter": lines_of_the_browser, "preferCSSPageSize": True}
        return b64decode(self._call("Page.printToPDF", **told)["data"])

    def picture(self) -> bytes:
        """Return what is seen of the page, as PNG."""
        return b64decode(self._call("Page.captureScreenshot")["data"])

    def open(self, url: str) -> None:
        """Go to a URL and wait until all that its page names has been loaded."""
        before, ends_s = self._loads, time.monotonic() + ANSWER_S
        opened = self._call("Page.navigate", url=url)
        assert "errorText" not in opened, (url, opened)
        is_new = "loaderId" in opened  # Another part of the same page is there at once.
        while is_new and self._loads == before:
            self._browser.hear(ends_s, f"open {url}")

    def value(self, expression: str) -> Any:
        """Return what an expression of JavaScript is now; a promise is waited for."""
        found = self._call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
            userGesture=True,
        )
        if "exceptionDetails" in found:
            reason = f"{expression}: {found['exceptionDetails']['exception']['description']}"
            raise Failed(reason)
        return found["result"].get("value")

    def flaws(self, axe: str, *rules: str) -> list[str]:
        """Return what axe finds that not everybody can use, by these rules, else by all."""
        only = {"runOnly": rules} if rules else {}
        found: list[str] = self.value(FLAWS % (axe, json.dumps(only)))
        return found

    def until(self, expression: str) -> Any:
        """Wait until an expression is true, on this page or one that it leads to; return it."""
        ends_s = time.monotonic() + SEEN_S
        while True:
            left_ms = max(0, int((ends_s - time.monotonic()) * 1000))
            try:
                return self.value(LATER % (left_ms, expression))
            except Failed as error:
                if not left_ms or not any(each in str(error) for each in GONE):
                    message = f"{expression} at {self.value('location.href')}: {error}"
                    raise Failed(message) from error

    def text(self, selector: str) -> str:
        """Return the text that is shown of the first such element."""
        return str(self.until(f"document.querySelector({json.dumps(selector)})?.innerText"))

    def click(self, selector: str) -> None:
        """Click on the first such element, where it is seen, with the mouse."""
        named = json.dumps(selector)
        self.until(f"document.querySelector({named})?.checkVisibility()")
        x, y = self.value(MIDDLE % named)
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press and release a key."""
        code, text = KEYS[key]
        told = {"key": key, "windowsVirtualKeyCode": code, "modifiers": SHIFT if shift else 0}
        self._call("Input.dispatchKeyEvent", type="keyDown", **told, text=text)
        self._call("Input.dispatchKeyEvent", type="keyUp", **told)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self._call("Input.insertText", text=text)

    def note(self, method: str, given: dict[str, Any]) -> None:
        """Take in what the browser tells of this page."""
        match method:
            case "Page.loadEventFired":
                self._loads += 1
            case "Network.requestWillBeSent":
                self.requested.append(given["request"]["url"])
            case "Log.entryAdded" if given["entry"]["level"] == "error":
                entry = given["entry"]
                self.problems.append(f"{entry['text']} {entry.get('url', '')}")
            case "Runtime.consoleAPICalled" if given["type"] in {"error", "assert"}:
                said = [str(each.get("value", each.get("description"))) for each in given["args"]]
                self.problems.append(" ".join(said))
            case "Runtime.exceptionThrown":
                details = given["exceptionDetails"]
                shown = details.get("exception", {}).get("description", "")
                self.problems.append(f"{details['text']} {shown}")

    def _call(self, method: str, **given: Any) -> dict[str, Any]:
        return self._browser.call(method, given, self._session)
