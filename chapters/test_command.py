"""The chapters' command line and their collection by pytest, on a scratch copy with chapters of its own."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

GOOD = """\"\"\"Chapter 90: good.\"\"\"

# %% Numbers
# Two rows.
from lesson import check, full, quoted

a = check(2.0, "2", "row 1")
check(3.0, "3", "row 2")
quoted("82.5", "reported", source="Table 3")
if full():
    check(4.0, "4", "long")

# %% More
b = a + 1
"""
BAD = """\"\"\"Chapter 91: bad.\"\"\"

# %% Numbers
from lesson import check

check(2.5, "2", "tau = 0.20: loss")
check(3.0, "3", "tau = 0.20: later")
"""
BROKEN = """\"\"\"Chapter 92: broken.\"\"\"

# %% Numbers
from lesson import check

check(2.0, "2", "first")
1 / 0
"""
MANY_CORES = """
import os, sys
import chapters
from lesson.command import main

if __name__ == "__main__":
    os.cpu_count = lambda: 3
    sys.exit(main([]))
"""


@pytest.fixture
def scratch(tmp_path):
    """A folder with the framework and whatever chapters a test writes."""
    folder = tmp_path / "chapters"
    folder.mkdir()
    for name in ("__init__.py", "__main__.py", "conftest.py"):
        shutil.copy(ROOT / "chapters" / name, folder)
    shutil.copytree(ROOT / "chapters" / "lesson", folder / "lesson", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "ch90_good.py").write_text(GOOD, encoding="utf-8")
    return folder


def call(scratch, *arguments, stdin=""):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=scratch.parent,
        env=_environment(),
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


def _environment():
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "NANO_SIMCSE")) and k != "PYTHONPATH"}
    return kept | {"PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def test_a_chapter_runs_as_script_as_module_and_by_the_runner(scratch):
    for arguments in (("chapters/ch90_good.py",), ("-m", "chapters.ch90_good"), ("-m", "chapters", "90")):
        code, out, _ = call(scratch, *arguments)
        assert code == 0 and "row 2" in out
        assert out.index("## Numbers\nTwo rows.\n") < out.index("row 1")
    code, out, err = call(scratch, "-m", "chapters")
    assert code == 0 and "2 of 2" in out and "row 2" not in out and "Two rows" not in out and err == ""
    code, out, _ = call(scratch, "-m", "chapters", "--list", "--full")
    assert code == 0 and "row 2" in out and "long" in out and "3 of 3" in out and "Two rows" not in out
    code, out, _ = call(scratch, "-m", "chapters", "--quiet")
    assert code == 0 and len(out.splitlines()) == 1


def test_a_failure_stops_neither_the_chapter_nor_the_others(scratch):
    (scratch / "ch89_broken.py").write_text(BROKEN, encoding="utf-8")
    (scratch / "ch91_bad.py").write_text(BAD, encoding="utf-8")
    code, out, _ = call(scratch, "-m", "chapters")
    assert code == 1
    assert "ZeroDivisionError" in out and "ch91_bad, line 6" in out and "4 of 5" in out and "2 FAILED" in out
    code, out, err = call(scratch, "chapters/ch91_bad.py")
    assert code == 1 and "CheckFailed" in err and "later" not in out


def test_an_unknown_chapter_is_one_sentence(scratch):
    code, out, err = call(scratch, "-m", "chapters", "ch90_god")
    assert (code, out) == (2, "")
    assert err == "chapters: no chapter 'ch90_god'; did you mean ch90_good?\n"


@pytest.mark.parametrize("answers, last", [("\nq\n", "bye"), ("", "bye"), ("\n\n\n", "ok"), ("c\n", "ok")])
def test_the_stepper_shows_code_and_values_and_leaves_cleanly(scratch, answers, last):
    code, out, err = call(scratch, "-m", "chapters", "90", "--step", stdin=answers)
    assert (code, err) == (0, "")
    assert out.split()[-1] == last
    assert "Chapter 90: good" in out
    if last == "ok":
        assert '   7  a = check(2.0, "2", "row 1")' in out
        assert out.index("values now") < out.index("a  2\n") < out.index("b  3\n")


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to one process there")
def test_ctrl_c_ends_the_stepper_with_130(scratch):
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "chapters", "90", "--step"],
        cwd=scratch.parent,
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        while process.stdout.read(1) != b"[":
            pass
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.decode().strip() == "stopped"


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to one process there")
def test_ctrl_c_ends_a_run_of_all_chapters_with_130(scratch):
    for number in (91, 92):
        text = f'"""Chapter {number}: endless."""\n\nimport time\nfrom pathlib import Path\n\n'
        text += f'Path("started{number}").touch()\ntime.sleep(3600)\n'
        (scratch / f"ch{number}_endless.py").write_text(text, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-c", MANY_CORES],
        cwd=scratch.parent,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        while not (scratch.parent / "started91").exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped" in err.decode()


def test_pytest_collects_every_check_by_name(scratch):
    (scratch / "ch91_bad.py").write_text(BAD, encoding="utf-8")
    (scratch / "ch92_broken.py").write_text(BROKEN, encoding="utf-8")
    pytest_call = ("-m", "pytest", "-p", "no:cacheprovider", "-q", "-rA")
    code, out, _ = call(scratch, *pytest_call, "chapters")
    assert code == 1
    assert "PASSED chapters/ch90_good.py::ch90_good: row 1" in out
    assert "PASSED chapters/ch91_bad.py::ch91_bad: tau = 0.20: later" in out
    assert "FAILED chapters/ch91_bad.py::ch91_bad: tau = 0.20: loss" in out
    assert "FAILED chapters/ch92_broken.py::ch92_broken: runs to its end" in out
    assert "2 failed, 6 passed" in out
    code, out, _ = call(scratch, *pytest_call, "chapters/ch90_good.py", "-k", "row 1")
    assert code == 0 and "1 passed, 2 deselected" in out
    code, out, _ = call(scratch, *pytest_call, "chapters/ch91_bad.py::ch91_bad: tau = 0.20: later")
    assert code == 0 and "1 passed" in out
