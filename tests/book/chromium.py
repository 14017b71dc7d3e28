#!/usr/bin/env python3
"""Opens a book in headless Chromium at three widths: keys, languages, lit operands, no request, no console message.

    tui-transformer export water_class --book /tmp/book
    python3 tests/book/chromium.py /tmp/book/water_class.html

Only the standard library; Chromium speaks over a pipe (--remote-debugging-pipe).
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


class Browser:
    def __init__(self, width):
        to_r, self.to = os.pipe()
        self.frm, from_w = os.pipe()
        self.profile = tempfile.mkdtemp()
        name = next(n for n in ("chromium", "chromium-browser", "google-chrome") if shutil.which(n))

        def fds():
            os.dup2(to_r, 3)
            os.dup2(from_w, 4)

        self.process = subprocess.Popen(
            [name, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.profile}",
             f"--window-size={width},900", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=fds, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_r)
        os.close(from_w)
        self.buffer, self.id, self.session, self.events = b"", 0, None, []

    def send(self, method, **params):
        self.id += 1
        message = {"id": self.id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def read(self):
        while b"\0" not in self.buffer:
            part = os.read(self.frm, 1 << 16)
            if not part:
                raise RuntimeError("the browser ended")
            self.buffer += part
        one, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(one)

    def value(self, script):
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def key(self, key):
        code = {"ArrowRight": 39, "ArrowLeft": 37, "Escape": 27}.get(key, ord(key[0].upper()))
        text = key if len(key) == 1 else ""
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, text=text if kind == "keyDown" else "",
                      windowsVirtualKeyCode=code)

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


def check(page, width):
    b = Browser(width)
    try:
        target = b.send("Target.createTarget", url="about:blank")["targetId"]
        b.session = b.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            b.send(f"{domain}.enable")
        b.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
        url = page.resolve().as_uri()
        b.send("Page.navigate", url=url)
        b.value("new Promise(r => document.readyState === 'complete' ? r() : addEventListener('load', () => r()))")
        while not b.value("document.body && document.body.classList.contains('on')"):
            pass
        # The page is not wider than the window: tables scroll inside.
        assert b.value("document.documentElement.scrollWidth <= innerWidth + 1"), "wider than the window"
        # Languages.
        first = b.value("document.body.dataset.lang")
        shown = "[...document.querySelectorAll('h1 span')].filter(e => e.offsetParent).map(e => e.textContent).join()"
        before = b.value(shown)
        b.key("l")
        assert b.value("document.body.dataset.lang") != first
        assert b.value(shown) != before, "the title stays in one language"
        b.value("document.getElementById('language').click()")
        assert b.value("document.body.dataset.lang") == first
        # Keys.
        now = "[...document.querySelectorAll('section')].findIndex(s => s.classList.contains('now'))"
        for key, wanted in (("ArrowRight", 0), ("n", 1), ("ArrowRight", 2), ("p", 1), ("ArrowLeft", 0)):
            b.key(key)
            assert b.value(now) == wanted, (key, b.value(now))
        # A result lights its operands, and an operand leads to where it was made.
        result = b.value("document.querySelector('.d:has(a)').id").replace("d", "c", 1)
        b.value(f"document.getElementById('{result}').scrollIntoView({{block: 'center'}})")
        box = b.value(f"(r => [r.x + r.width / 2, r.y + r.height / 2])(document.getElementById('{result}').getBoundingClientRect())")
        b.send("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
        links = b.value(f"new Set([...document.querySelectorAll('#d{result[1:]} a')].map(a => a.hash)).size")
        assert b.value("document.querySelectorAll('.lit').length") == links > 0, "operands are lit"
        assert b.value("document.getElementById('bar').textContent.length") > 0
        to = b.value("document.querySelector('#bar a').hash")
        b.value("document.querySelector('#bar a').click()")
        b.value("new Promise(r => setTimeout(r, 100))")
        assert b.value("location.hash") == to
        where = b.value(f"(r => r.top >= 0 && r.top < innerHeight)(document.querySelector('{to}').getBoundingClientRect())")
        assert where, "the operand is on the screen"
        b.key("Escape")
        assert b.value("document.querySelectorAll('.lit').length") == 0
        wrong = [e for e in b.events if e.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")]
        assert not wrong, wrong
        asked = {e["params"]["request"]["url"] for e in b.events if e.get("method") == "Network.requestWillBeSent"}
        asked = {u for u in asked if u not in (url, "about:blank") and not u.startswith("data:")}
        assert not asked, asked
        print(f"{page.name} at {width}: good")
    finally:
        b.close()


if __name__ == "__main__":
    for width in (390, 820, 1440):
        check(pathlib.Path(sys.argv[1]), width)
