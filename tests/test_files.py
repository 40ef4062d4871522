"""A file is written whole or not at all, and the cache folder is where each system keeps such things."""

import os
import stat
import sys
from pathlib import Path

import pytest

from nano_simcse.errors import InputError
from nano_simcse.files import atomic_write, new_folder, require_writable, staged, user_cache_folder


def test_success_replaces_the_file_and_leaves_nothing_else(tmp_path):
    target = tmp_path / "deep" / "model.json"
    for text in ("first", "second"):
        with atomic_write(target) as temporary:
            assert temporary.parent == target.parent and temporary.name.endswith(".json")
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


@pytest.mark.parametrize("name", ["x" * 240 + ".npy", "x." + "y" * 250, "\u4e2d" * 80 + ".safetensors"])
def test_any_name_that_the_system_allows_can_be_written(tmp_path, name):
    with atomic_write(tmp_path / name) as temporary:
        temporary.write_text("x", encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_the_file_behind_it_is_replaced(tmp_path, there):
    target, link = tmp_path / "elsewhere" / "model.json", tmp_path / "link.json"
    target.parent.mkdir()
    link.symlink_to(target)
    if there:
        target.write_text("old", encoding="utf-8")
    with atomic_write(link) as temporary:
        temporary.write_text("new", encoding="utf-8")
    assert link.is_symlink() and target.read_text(encoding="utf-8") == "new"
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
def test_a_pipe_is_refused_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match=r"it is a pipe or a device: .*pipe'"):
        with atomic_write(pipe):
            pytest.fail("the body ran")
    with pytest.raises(InputError, match=r"pipe' cannot be written \(it is a pipe or a device\); give another place"):
        require_writable(pipe)
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


@pytest.mark.skipif(sys.platform == "win32", reason="rights are those of POSIX")
def test_rights_are_those_of_an_ordinary_file(tmp_path):
    (tmp_path / "ordinary").write_text("x", encoding="utf-8")
    with atomic_write(tmp_path / "written") as temporary:
        temporary.write_text("x", encoding="utf-8")
    with atomic_write(tmp_path / "private") as temporary:
        temporary.write_text("x", encoding="utf-8")
        temporary.chmod(0o600)  # as the writer of safetensors does
    names = ("ordinary", "written", "private")
    ordinary, *written = (stat.S_IMODE((tmp_path / name).stat().st_mode) for name in names)
    assert written == [ordinary, ordinary]


def test_a_place_that_cannot_be_is_named_before_any_work(tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for place in (tmp_path / "file" / "new", tmp_path / "file" / "deeper" / "new"):
        with pytest.raises(InputError, match=r"file.*new' cannot be written \((Not a directory|File exists)\)"):
            with new_folder(place):
                pytest.fail("the body ran")
        with pytest.raises(InputError, match="new' cannot be written"):
            require_writable(place)
    with pytest.raises(InputError, match=r"cannot be written \(Is a directory\)"):
        require_writable(tmp_path)
    require_writable(tmp_path / "deep" / "picture.png")
    assert list((tmp_path / "deep").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_to_an_empty_folder_is_an_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    with new_folder(tmp_path / "link") as made:
        (made / "x").write_text("x", encoding="utf-8")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "empty" / "x").read_text(encoding="utf-8") == "x"


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


@pytest.mark.parametrize("fail_at", ["in the body", "never"])
def test_staged_files_take_their_places_together_or_not_at_all(tmp_path, fail_at):
    for name in ("a", "b", "known by", "other"):
        (tmp_path / name).write_text("old", encoding="utf-8")

    def fill():
        with staged(tmp_path, ("a", "b", "known by")) as made:
            (made / "a").write_text("new", encoding="utf-8")
            (made / "known by").write_text("new", encoding="utf-8")
            if fail_at == "in the body":
                raise OSError(28, "No space left on device", str(made / "b"))

    if fail_at == "never":
        fill()
    else:
        with pytest.raises(OSError, match=f"'{tmp_path / 'b'}'"):
            fill()
    found = {file.name: file.read_text(encoding="utf-8") for file in tmp_path.iterdir()}
    kept = {"a": "old", "b": "old", "known by": "old", "other": "old"}
    assert found == (kept if fail_at != "never" else {"a": "new", "known by": "new", "other": "old"})


def test_what_staged_files_are_known_by_is_missing_while_they_change_places(tmp_path, monkeypatch):
    """A process killed there leaves what nobody takes for whole."""
    for name in ("a", "known by"):
        (tmp_path / name).write_text("old", encoding="utf-8")
    seen, replace = [], os.replace

    def look(source, target):
        seen.append((Path(target).name, (tmp_path / "known by").exists()))
        replace(source, target)

    monkeypatch.setattr("nano_simcse.files.os.replace", look)
    with staged(tmp_path, ("a", "known by")) as made:
        for name in ("known by", "a"):
            (made / name).write_text("new", encoding="utf-8")
    assert seen == [("known by", True), ("a", False), ("a", False), ("known by", False)]  # out, then in


def test_through_a_link_the_temporary_name_has_the_suffix_that_was_given(tmp_path):
    (tmp_path / "x.npy").symlink_to(tmp_path / "data.bin")
    with atomic_write(tmp_path / "x.npy") as temporary:
        temporary.write_text("whole", encoding="utf-8")
        assert temporary.suffix == ".npy"
    assert (tmp_path / "data.bin").read_text(encoding="utf-8") == "whole"
