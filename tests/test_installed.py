"""The tool that tries what users install: what it reads, measures and reports. Its steps need the network."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from tests.test_tools import tool

ROOT = Path(__file__).parents[1]
installed = tool("installed")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_supported_versions_begin_with_the_oldest_that_installs() -> None:
    assert PROJECT["requires-python"] == f">={installed.supported()[0]}"
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in installed.supported()


def test_sizes_are_of_files_and_not_of_what_links_lead_to(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "data").write_bytes(bytes(2_000_000))
    (tmp_path / "link").symlink_to(tmp_path / "inner" / "data")
    assert installed.size_of(tmp_path) == 2.0


def test_quick_tests_exist() -> None:
    assert [name for name in installed.QUICK if not (ROOT / name).is_file()] == []


def test_versions_are_printed_of_everything_that_decides_results() -> None:
    needed = {name.split(">")[0] for name in PROJECT["dependencies"]}
    assert set(installed.NAMED) <= needed


def test_a_command_that_fails_says_which_and_why() -> None:
    with pytest.raises(installed.Failed, match="no such thing"):
        installed.run(sys.executable, "-c", "raise SystemExit('no such thing')")
    assert installed.run(sys.executable, "-c", "print(1)") == "1\n"


def test_a_step_that_fails_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(folder: Path) -> None:
        raise installed.Failed("broken")

    monkeypatch.setattr(installed, "STEPS", {"build": broken, "newest": lambda folder: print(folder.is_dir())})
    assert installed.main([]) == 1
    assert installed.main(["newest"]) == 0
    assert capsys.readouterr().out == "True\nTrue\n"


def test_a_python_that_is_named_is_tried_with_both_ends_and_one_that_does_not_start_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    tried = []
    monkeypatch.setattr(installed, "_tested", lambda folder, *told: tried.append(told))
    monkeypatch.setattr(installed, "resolved", lambda *told: dict.fromkeys(installed.NAMED, "1"))
    monkeypatch.setattr(installed.shutil, "which", lambda name: "false")  # starts, and is no Python
    installed.pythons(tmp_path, [sys.executable])
    assert tried == [(end, version, sys.executable) for end in ("lowest", "newest")]
    installed.pythons(tmp_path)
    assert len(tried) == 2
    assert capsys.readouterr().out.count("not run") == 2 * len(installed.supported())
    with pytest.raises(SystemExit):
        installed.main(["--python", "false"])
    assert "no Python of a supported version: 3.11" in capsys.readouterr().err


# -- the way of a newcomer -------------------------------------------------------------------------

newcomer = tool("newcomer")


def test_the_readme_leads_to_a_release_in_at_most_six_commands_without_python() -> None:
    typed = newcomer.commands((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(typed) + 1 <= newcomer.MOST_COMMANDS
    assert [one for one in typed if "python" in one] == []
    assert [one.split()[1] for one in typed[2:]] == ["schema", "fit", "report"]


def test_the_way_is_timed_as_far_as_it_went(tmp_path: Path) -> None:
    seconds, wrong = newcomer.typed(["sleep 0.2", "echo no >&2; false", "sleep 9"], tmp_path)
    assert len(seconds) == 1
    assert 0.2 <= seconds[0] < 5
    assert wrong == "no\n"
