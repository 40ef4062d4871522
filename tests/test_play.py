"""The windows of chapters/play, driven by mouse events on Agg as a reader drives them, and one in a real browser."""

import asyncio
import base64
import contextlib
import importlib.util
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import trails
from matplotlib import image
from matplotlib import pyplot as plt
from matplotlib.backend_bases import MouseEvent
from matplotlib.backends.backend_agg import FigureCanvasAgg

from chapters.play import WINDOWS, build
from chapters.play.__main__ import main
from chapters.play.from_chapter import from_chapter
from nano_simcse import geometry
from nano_simcse.layers import dropout, normalize
from nano_simcse.losses import info_nce
from nano_simcse.masks import Masks, row_labels

ROOT = Path(__file__).resolve().parents[1]
TAU, RATE = "temperature tau", "dropout rate p"


@pytest.fixture(autouse=True)
def agg(monkeypatch):
    """Every test works on Agg, which draws only where a test says so, and leaves no figure behind."""
    plt.switch_backend("agg")
    monkeypatch.setattr(FigureCanvasAgg, "draw_idle", lambda canvas: None)
    yield
    plt.close("all")


# ---- a reader's hand -------------------------------------------------------------------------------------------------


def mouse(window, kind, place):
    """One mouse event at a pixel of the canvas."""
    canvas = window.figure.canvas
    button = None if kind == "motion_notify_event" else 1
    canvas.callbacks.process(kind, MouseEvent(kind, canvas, *place, button=button))


def drag(window, start, end):
    """Press, move, release."""
    mouse(window, "button_press_event", start)
    mouse(window, "motion_notify_event", end)
    mouse(window, "button_release_event", end)


def click(window, label):
    place = middle(window, label)
    mouse(window, "button_press_event", place)
    mouse(window, "button_release_event", place)


def middle(window, name):
    return window.widget(name).ax.transAxes.transform((0.5, 0.5))


def slide(window, name, value):
    """Press in the middle of a slider, drag to one of its stops, let go."""
    knob = window.widget(name)
    at = int(np.argmin(np.abs(window.stops[name] - value)))
    assert window.stops[name][at] == value
    drag(window, middle(window, name), knob.ax.transData.transform((at, 0.5)))
    assert window.settings[name] == value


def number(window, name):
    return float(window.shown(name).split()[0])


# ---- every window ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WINDOWS)
def test_the_first_frame_is_saved_and_nothing_in_the_column_of_controls_overlaps(name, tmp_path, capsys):
    file = tmp_path / "new folder" / "frame.png"
    assert main([name, "--save", str(file)]) == 0
    assert capsys.readouterr().out == f"wrote {file}\n"
    height, width, _ = image.imread(file).shape
    assert width > 1200 and height > 600 and list(file.parent.iterdir()) == [file]
    figure = plt.gcf()
    figure.canvas.draw()
    labels = [text for axes in figure.axes if not axes.get_navigate() for text in axes.texts]  # of buttons and sliders
    boxes = [text.get_window_extent() for text in [*figure.texts, *labels] if text.get_text()]
    assert len(boxes) > 8
    for i, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 and figure.bbox.y0 <= box.y0
        assert not any(box.overlaps(other) for other in boxes[:i])


def test_twins_are_one_vector_at_rate_0_and_drift_apart_with_the_rate():
    window = build("twins")
    twins, chapter_width = from_chapter("ch02", "twins", "width")
    assert window.shown("cosine of the twins") == f"{twins(0.1, 0, chapter_width)[2]:.3f}" == "0.877"
    slide(window, RATE, 0.0)
    for units in ("768", "64"):
        click(window, units)
        for _ in range(3):
            click(window, "resample")
            assert window.shown("cosine of the twins") == "1.000"
            assert window.shown("kept in both") == f"{units} of {units}"
    slide(window, RATE, 0.5)
    seen = []
    for _ in range(4):
        click(window, "resample")
        draw = np.random.default_rng(window.seed)  # the package's dropout on the same draws
        vector, keep = draw.standard_normal(64), draw.random((2, 64)) >= 0.5
        views, _ = normalize(dropout(np.stack([vector, vector]), keep, 2.0)[0])
        assert number(window, "cosine of the twins") == pytest.approx(views[0] @ views[1], abs=5e-4)
        assert number(window, "kept in both") == keep.all(axis=0).sum()
        seen.append(number(window, "cosine of the twins"))
    assert 0.2 < min(seen) and max(seen) < 0.8 and len(set(seen)) == 4


def test_quiz_gives_the_loss_that_trains():
    window = build("quiz")
    assert window.shown("right key") == window.shown("top of the softmax") == "k0"

    def batch(seed, n, noise=1.0):
        draw = np.random.default_rng(seed)
        queries = draw.standard_normal((n, 16))
        return queries, queries + noise * draw.standard_normal((n, 16))

    whole = "loss of all N questions"
    assert number(window, whole) == pytest.approx(info_nce(*batch(1, 8), 0.05)[0], abs=1e-6)
    slide(window, TAU, 1.0)
    slide(window, "candidates N", 5)
    assert number(window, whole) == pytest.approx(info_nce(*batch(1, 5), 1.0)[0], abs=1e-6)
    assert window.shown("a guess, ln N") == "1.609438"
    losses = []
    for question in (1, 2, 3, 4, 0):
        click(window, "next question")
        assert window.shown("question") == f"query {question}" and window.shown("right key") == f"k{question}"
        losses.append(number(window, "loss of this question"))
        assert np.exp(-losses[-1]) == pytest.approx(number(window, "p of the right key"), abs=2e-6)
    assert np.mean(losses) == pytest.approx(number(window, whole), abs=2e-6)
    click(window, "new batch")
    slide(window, "noise of a partner", 3.0)
    assert number(window, whole) == pytest.approx(info_nce(*batch(2, 5, 3.0), 1.0)[0], abs=1e-6)


def test_masks_are_the_package_s_masks_as_pictures():
    window = build("masks")
    words, width, mask_A, mask_B = from_chapter("ch02", "words", "sites", "mask_A", "mask_B")

    def pictures():
        for axes in window.panels:
            cells = np.array([int(text.get_text()) for text in axes.texts]).reshape(len(words), width)
            assert (axes.images[0].get_array() == cells).all()
            yield cells

    assert all((cells == mask).all() for cells, mask in zip(pictures(), (mask_A, mask_B), strict=True))
    assert number(window, "cells that differ") == (mask_A != mask_B).sum()
    click(window, "shared")
    assert window.shown("cells that differ") == "0" and (next(pictures()) == mask_A).all()
    click(window, "independent")
    slide(window, RATE, 0.5)
    click(window, "next step")
    click(window, "next sentence")
    assert window.shown("a kept unit is multiplied by") == "2.000"
    for view, cells in enumerate(pictures()):
        labels = row_labels([1], [view]) + np.arange(len(words), dtype=np.uint64)
        assert (cells == Masks(4, 1, 0.5).keep(0, labels, width)).all()
        assert number(window, f"kept in view {'AB'[view]}") == cells.sum() < cells.size
    click(window, "off")
    assert window.shown("kept in view B") == "128 of 128" and window.shown("a kept unit is multiplied by") == "1.000"


def test_trail_steps_runs_pauses_and_starts_over():
    window = build("trail")
    start = ("-2.4114", "1.2913")
    assert (window.shown("uniformity"), window.shown("alignment")) == start
    assert window.shown("training loss") == "none yet"
    click(window, "step")
    click(window, "step")
    again = trails.Trail("independent masks", rate=0.1, seed=0).run(20)
    assert window.shown("steps") == "20"
    assert (window.shown("uniformity"), window.shown("alignment")) == tuple(f"{x:.4f}" for x in again.measure())
    assert window.shown("training loss") == f"{again.losses[-1]:.4f}"
    assert window.shown("100 x Spearman") == f"{100 * again.score():.1f}"

    click(window, "no dropout")
    assert (window.shown("steps"), window.shown("uniformity")) == ("0", start[0])
    click(window, "run")
    assert window.running and window.widget("run").label.get_text() == "pause"
    ((tick, _, _),) = window.timer.callbacks
    for _ in range(8):
        tick()
    assert window.shown("steps") == "80"
    assert number(window, "alignment") > float(start[1]) and number(window, "uniformity") < float(start[0])
    click(window, "run")
    assert not window.running and window.widget("run").label.get_text() == "run"
    click(window, "run")
    window.walk.run(300)
    tick()
    assert window.running
    tick()
    assert window.shown("steps") == "400" and not window.running
    click(window, "reset")
    assert (window.shown("steps"), window.shown("uniformity"), window.shown("alignment")) == ("0", *start)

    click(window, "independent masks")  # its trail stood waiting
    assert window.shown("steps") == "20"
    slide(window, RATE, 0.5)
    assert window.shown("steps") == "0"
    click(window, "step")
    stronger = trails.Trail("independent masks", rate=0.5, seed=0).run(10)
    assert window.shown("alignment") == f"{stronger.measure()[1]:.4f}"


def test_temperature_has_the_row_s_loss_and_the_cost_of_a_wrong_label():
    window = build("temperature")
    assert window.shown("loss") == "0.026981" and window.shown("p of the positive") == "0.973379"
    assert window.shown("hardest : easiest push") == "1096.633158"
    click(window, "false negative")
    assert window.shown("loss").startswith("4.018") and window.shown("p of the positive") == "0.017985"
    rows = from_chapter("ch05", "as_rows", "PRESETS")
    for scene, tau in (("false negative", 1.0), ("chapter 1", 0.2), ("two candidates", 0.01)):
        click(window, scene)
        slide(window, TAU, tau)
        unit = rows[0](rows[1][scene])
        loss, backward = info_nce(np.array([[1.0, 0.0]]), unit[:1], tau, hard_negatives=unit[1:])
        assert number(window, "loss") == pytest.approx(float(loss), rel=1e-4)
        pull, push = (np.linalg.norm(g, axis=1) / np.sqrt(1 - x**2) for g, x in zip(
            backward()[1:], (unit[:1, 0], unit[1:, 0]), strict=True))  # fmt: skip
        assert number(window, "pull on the positive") == pytest.approx(pull[0], rel=1e-4)
        assert number(window, "push on the hardest") == pytest.approx(push.max(), rel=1e-4)
    assert window.shown("loss") == "1.5230e-08"  # two candidates at 0.01: no digit lost to cancellation


def test_cone_shows_offset_centring_and_each_repair():
    window = build("cone")
    pair = "cosine of the pair"
    assert window.shown(pair) == "0.834862"
    click(window, "centred")
    assert window.shown(pair) == "-1.000000"
    click(window, "not centred")
    slide(window, "offset of the pair", 3.0)
    assert number(window, pair) == pytest.approx((9 - 0.09) / (9 + 0.09), abs=1e-6)

    names = ("Sum of W W^T", "lambda1", "lambda2", "uniformity")
    (S,) = from_chapter("ch06", "S")
    for preset, row in (("raw cone", 0), ("+ centring", 4), ("+ whitening", 5), ("contrastive", 6)):
        click(window, preset)
        assert [number(window, name) for name in names] == pytest.approx(S[row, [0, 1, 2, 4]], abs=1e-6)
        points = np.array([line.get_xydata()[0] for line in window.panels[0, 1].lines if len(line.get_xdata()) == 1])
        assert geometry.effective_rank(points) == pytest.approx(number(window, "effective rank"), abs=1e-6)
        assert geometry.mean_pair_cosine(points) == pytest.approx(number(window, "mean cosine"), abs=1e-6)
        bars = [bar.get_height() for bar in window.panels[1, 0].patches]
        assert bars == pytest.approx(geometry.spectrum(points), abs=1e-6)
    click(window, "+ whitening")
    click(window, "as they are")
    assert window.shown("lambda1") == window.shown("lambda2") == "4.000000"
    click(window, "raw cone")
    click(window, "to length 1")
    slide(window, "degrees between the four points", 30)  # chapter 6's quarter turn
    assert window.shown("Sum of W W^T") == "11.196152" and window.shown("effective rank") == "1.815249"


def test_drag_moves_a_point_and_table_and_loss_follow():
    window = build("drag")
    plane, table = window.panels
    assert window.shown("InfoNCE loss") == "0.000644"
    slide(window, TAU, 1.0)
    assert window.shown("InfoNCE loss") == "0.510602"

    def pixels(x, y):
        plane.apply_aspect()
        return plane.transData.transform((x, y))

    drag(window, pixels(1, 0), pixels(-0.7, 0.9))  # circle 1 leaves for the other side
    drag(window, pixels(-1, -0.1), pixels(0.5, -1.2))  # square 3
    circles = np.array([[-0.7, 0.9], [0.0, 1.0], [-1.0, 0.2]])
    squares = np.array([[0.9, 0.3], [0.2, 1.0], [0.5, -1.2]])
    assert window.points == pytest.approx(np.stack([circles, squares]), abs=0.01)  # a mouse stands on whole pixels
    circles, squares = window.points
    cosines = (circles / np.linalg.norm(circles, axis=1, keepdims=True)) @ (
        squares / np.linalg.norm(squares, axis=1, keepdims=True)
    ).T
    rows = np.log(np.exp(cosines).sum(axis=1)) - np.diag(cosines)
    columns = np.log(np.exp(cosines).sum(axis=0)) - np.diag(cosines)
    assert [float(text.get_text()) for text in table.texts] == pytest.approx(cosines.ravel(), abs=5.1e-4)
    assert number(window, "InfoNCE loss") == pytest.approx(rows.mean(), abs=1e-6)
    assert [number(window, f"loss of circle {i}") for i in (1, 2, 3)] == pytest.approx(rows, abs=1e-6)
    click(window, "both directions")
    assert number(window, "InfoNCE loss") == pytest.approx((rows.mean() + columns.mean()) / 2, abs=1e-6)

    before = window.points.copy()
    drag(window, pixels(1.2, 1.2), pixels(0, 0.5))  # nothing stands there
    mouse(window, "motion_notify_event", pixels(0.3, 0.3))  # nothing is held
    assert (window.points == before).all()
    drag(window, pixels(0, 1), pixels(0, 0))  # the origin has no direction: the point stops on the way
    assert np.hypot(*window.points[0, 1]) >= 0.05
    click(window, "reset")
    assert (window.points == np.stack(from_chapter("ch11", "a3", "b3"))).all()


def test_a_chapter_is_asked_for_a_name_it_does_not_have():
    with pytest.raises(LookupError, match="ch00_token_edits defines no nonsense"):
        from_chapter("ch00", "nonsense")


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_lists_the_windows_and_names_the_nearest(capsys):
    assert main([]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(WINDOWS)
    for wrong, hint in (("twin", "did you mean twins?"), ("Coen", "did you mean cone?"), ("42", "there are quiz,")):
        assert main([wrong]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.startswith(f"play: no window '{wrong}'; {hint}") and err.count("\n") == 1


def test_what_cannot_be_done_is_one_sentence_and_status_2(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    cases = [
        (["cone", "--save", "cone.svg"], "does not end in .png"),
        (["cone", "--save", str(tmp_path / "file" / "x.png")], "cannot be written"),
        (["cone", "--browser", "--port", "0"], "port 0 is not between 1 and 65535"),
        (["cone", "--browser"], "--browser needs the package tornado"),
    ]
    for arguments, sentence in cases:
        found = sentence.startswith("port")
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, found=found: found or None)
        assert main(arguments) == 2
        err = capsys.readouterr().err
        assert sentence in err and err.count("\n") == 1


def test_without_a_display_and_without_a_browser_it_says_so():
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND")
    quiet = {k: v for k, v in os.environ.items() if k not in hidden} | {"MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, "-m", "chapters.play", "drag"], cwd=ROOT, env=quiet, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "no display" in done.stderr and "--browser" in done.stderr and done.stderr.count("\n") == 1


# ---- in a browser ----------------------------------------------------------------------------------------------------

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HEADLESS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-extensions --disable-dev-shm-usage --mute-audio "
    "--force-device-scale-factor=1 --window-size=1300,900 --remote-debugging-port=0"
).split()
PATIENCE = 60  # seconds: when to give up, not how long it takes


class Page:
    """One page of a running Chromium, spoken to through its debugging socket."""

    def __init__(self, socket):
        self.socket, self.calls = socket, 0

    async def ask(self, method, **parameters):
        self.calls += 1
        await self.socket.write_message(json.dumps({"id": self.calls, "method": method, "params": parameters}))
        while True:
            answer = json.loads(await self.socket.read_message())
            if answer.get("id") == self.calls:
                assert "error" not in answer, answer
                return answer["result"]

    async def value(self, script):
        return (await self.ask("Runtime.evaluate", expression=script, returnByValue=True))["result"].get("value")

    async def click(self, x, y):
        for kind, button in (("mouseMoved", "none"), ("mousePressed", "left"), ("mouseReleased", "left")):
            count = int(kind != "mouseMoved")
            await self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=count)
        await self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=899, button="none")

    async def picture(self):
        """What the window's canvas shows, (height, width, 3), or None before it is there."""
        found = await self.value("document.querySelector('canvas.mpl-canvas')?.toDataURL() ?? ''")
        return image.imread(io.BytesIO(base64.b64decode(found.partition(",")[2])))[..., :3] if found else None

    async def shows(self, expected):
        """Wait until the canvas shows the expected picture, to within rounding of a few pixels."""
        for _ in range(10 * PATIENCE):
            seen = await self.picture()
            if seen is not None and seen.shape == expected.shape and np.mean(np.abs(seen - expected) > 0.02) < 1e-3:
                return
            await asyncio.sleep(0.1)
        raise AssertionError("the browser never showed the expected picture")


def on_agg(window):
    """The same window's picture, drawn here."""
    window.figure.canvas.draw()
    return np.asarray(window.figure.canvas.buffer_rgba())[..., :3] / 255


@contextlib.contextmanager
def running(command, sign, **options):
    """A program and the first line of its output that holds sign; ended with the block."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    try:
        yield next((line for line in process.stdout if sign in line), "")
    finally:
        timer.cancel()
        process.kill()
        process.communicate()


def free_port():
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        return server.getsockname()[1]


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium here to open a window in")
def test_a_window_in_the_browser_shows_the_same_picture_and_follows_a_click(tmp_path):
    websocket = pytest.importorskip("tornado.websocket", reason="the browser needs tornado (extra play)")
    port = free_port()
    serve = [sys.executable, "-u", "-m", "chapters.play", "temperature", "--browser", "--no-open", "--port", str(port)]
    browse = [CHROMIUM, *HEADLESS, f"--user-data-dir={tmp_path}"]
    window = build("temperature")

    async def visit(address, debugging):
        with urllib.request.urlopen(f"http://{debugging}/json/list", timeout=PATIENCE) as answer:
            pages = [page for page in json.load(answer) if page["type"] == "page"]
        page = Page(await websocket.websocket_connect(pages[0]["webSocketDebuggerUrl"], max_message_size=1 << 26))
        await page.ask("Page.navigate", url=address)
        await page.shows(on_agg(window))
        assert window.shown("loss") == "0.026981"

        left, top = await page.value(
            "(r => [r.left, r.top])(document.querySelector('canvas.mpl-canvas').getBoundingClientRect())"
        )
        x, y = middle(window, "false negative")
        await page.click(left + x, top + window.figure.bbox.height - y)
        before = on_agg(window)
        click(window, "false negative")
        assert np.mean(np.abs(on_agg(window) - before) > 0.02) > 0.01
        await page.shows(on_agg(window))
        assert window.shown("loss").startswith("4.018")

    with running(serve, "To view figure", cwd=ROOT, env=os.environ | {"PYTHONUTF8": "1"}) as line:
        address = line.split()[-1]
        assert address == f"http://127.0.0.1:{port}"
        with pytest.raises(OSError):  # on Linux all of 127.0.0.0/8 is this machine: nobody listens elsewhere
            socket.create_connection(("127.0.0.2", port), timeout=PATIENCE)
        with running(browse, "DevTools listening") as line:
            asyncio.run(asyncio.wait_for(visit(address, line.split("/")[2]), PATIENCE))
