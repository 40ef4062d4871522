"""A file is written whole or not at all, and the cache folder is where each system keeps such things."""

import stat
import sys
from pathlib import Path

import pytest

from nano_simcse.files import atomic_write, user_cache_folder


def test_success_replaces_the_file_and_leaves_nothing_else(tmp_path):
    target = tmp_path / "deep" / "model.json"
    for text in ("first", "second"):
        with atomic_write(target) as temporary:
            assert temporary.parent == target.parent and temporary.name.endswith("model.json")
            temporary.write_text(text, encoding="utf-8")
        assert target.read_text(encoding="utf-8") == text
    assert [path.name for path in target.parent.iterdir()] == ["model.json"]


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failure_keeps_the_old_file(tmp_path, failure):
    target = tmp_path / "model.json"
    target.write_text("old", encoding="utf-8")
    with pytest.raises(type(failure)), atomic_write(target) as temporary:
        temporary.write_text("half", encoding="utf-8")
        raise failure
    assert target.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_writer_that_removes_its_temporary_file_raises_and_leaves_nothing(tmp_path):
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "x") as temporary:
        temporary.unlink()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="rights are those of POSIX")
def test_rights_are_those_of_an_ordinary_file(tmp_path):
    (tmp_path / "ordinary").write_text("x", encoding="utf-8")
    with atomic_write(tmp_path / "written") as temporary:
        temporary.write_text("x", encoding="utf-8")
    ordinary, written = (stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ordinary", "written"))
    assert written == ordinary


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"NANO_SIMCSE_CACHE": "/own", "XDG_CACHE_HOME": "/xdg"}, "/own"),
        ("linux", {"XDG_CACHE_HOME": "/xdg", "LOCALAPPDATA": "/local"}, "/xdg/nano_simcse"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/nano_simcse"),
        ("darwin", {}, "/home/ada/Library/Caches/nano_simcse"),
        ("linux", {"NANO_SIMCSE_CACHE": ""}, "/home/ada/.cache/nano_simcse"),
    ],
)
def test_cache_folder(monkeypatch, platform, variables, expected):
    for name in ("NANO_SIMCSE_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr("os.path.expanduser", lambda path: path.replace("~", "/home/ada"))
    assert user_cache_folder() == Path(expected)
