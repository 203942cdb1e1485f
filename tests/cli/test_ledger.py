"""`privfit ledger`: budgets made once, shown as they are."""

import csv
import io
import json
import math
import shutil
import sqlite3
import unicodedata
from pathlib import Path

import numpy as np
import pytest

import privfit as pf
from privfit.privacy import Event
from privfit.privacy.parts import KNorm, Laplace, RandomBits, Selection
from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_create_makes_a_ledger_that_python_opens(run: Run) -> None:
    assert run("ledger", "budget.db", "--create", "--epsilon", 2, "--delta", 1e-6).exit_code == 0
    made = pf.Ledger("budget.db")
    assert (made.epsilon, made.delta) == (2.0, 1e-6)


def test_create_never_touches_an_existing_ledger(run: Run) -> None:
    pf.Ledger("budget.db", epsilon=1.0).charge(0.25)
    assert run("ledger", "budget.db", "--create", "--epsilon", 9).exit_code == 1
    kept = pf.Ledger("budget.db")
    assert (kept.epsilon, kept.spent) == (1.0, 0.25)


@pytest.mark.parametrize(
    "options",
    [
        ("--create",),
        ("--create", "--epsilon", "inf"),
        ("--create", "--epsilon", 0),
        ("--create", "--epsilon", 1, "--delta", 1),
        ("--epsilon", 1),
        (),
    ],
)
def test_refusals_make_no_file(run: Run, options: tuple[object, ...]) -> None:
    result = run("ledger", "budget.db", *options)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert not Path("budget.db").exists()


def test_entries_are_shown(run: Run) -> None:
    ledger = pf.Ledger("budget.db", epsilon=1.0)
    ledger.charge(0.25, mechanism="a count [red]by hand", dataset="visits")
    ledger.charge(0.125, mechanism="a mean")
    shown = run("ledger", "budget.db").stdout
    for fact in ("0.375", "0.625 is left", "visits", "[red]by", "a mean", "0.125"):
        assert fact in shown
    told = json.loads(run("ledger", "budget.db", "--json").stdout)
    assert told["spent"] == {"epsilon": 0.375, "delta": 0.0}
    assert told["remaining"] == {"epsilon": 0.625, "delta": 0.0}
    assert [entry["mechanism"] for entry in told["entries"]] == ["a count [red]by hand", "a mean"]
    assert not {"cost", "of_split"} & told["entries"][0]["event"].keys()  # what is made of what is stated


def test_a_ledger_without_limit_is_valid_json(run: Run) -> None:
    pf.Ledger("open.db", epsilon=math.inf).charge(0.5)
    told = json.loads(
        run("ledger", "open.db", "--json").stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON")
    )
    assert told["epsilon"] is None
    assert "no limit" in run("ledger", "open.db").stdout


def test_another_file_is_not_a_ledger(run: Run) -> None:
    Path("notes.txt").write_text("not a ledger")
    result = run("ledger", "notes.txt", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"] == "LedgerError"
    assert Path("notes.txt").read_text() == "not a ledger"


def test_entries_that_protect_against_different_neighbours_are_pointed_out(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    book = pf.Ledger("budget.db", epsilon=2.0)
    book.charge(0.1, mechanism="made elsewhere")
    book.charge(Event("one", 0.2))
    alike = run("ledger", "budget.db").output
    assert "replace-one" in alike
    assert "different neighbours" not in alike
    book.charge(Event("other", 0.2, adjacency="add-remove", rows_per_person=12))
    mixed = run("ledger", "budget.db").output
    assert "add-remove, 12 rows a person" in mixed
    assert "different neighbours" in mixed


# -- forms -----------------------------------------------------------------------------------------


def filled() -> pf.Ledger:
    book = pf.Ledger("budget.db", epsilon=2.0, delta=1e-5, owner="clinic statistics")
    book.charge(
        0.1234567,
        1e-7,
        mechanism="a count",
        dataset="a-table-with-a-name-that-is-long-and-has-no-spaces-in-it-at-all.parquet",
    )
    book.with_note("readmission study, part two, with a comma").describing(
        model="LogisticRegression", target="readmitted"
    ).charge(Event("objective perturbation, 2 tables of columns chosen privately", 0.2, rows_per_person=12))
    return book


def test_a_table_fits_80_columns_and_cuts_nothing_off(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    filled()
    shown = run("ledger", "show", "budget.db").stdout
    table = shown[shown.index("#") :]
    assert max(map(len, table.splitlines())) <= 80
    assert "…" not in shown
    together = "".join(table.split())
    for fact in (
        "LogisticRegressionofreadmitted",
        "a-table-with-a-name-that-is-long-and-has-no-spaces-in-it-at-all.parquet",
        "studyparttwo",
    ):
        assert "".join(fact.split()).replace(",", "") in together.replace(",", "")
    assert "clinicstatistics" in together


def test_the_old_form_is_show(run: Run) -> None:
    filled()
    assert run("ledger", "budget.db").stdout == run("ledger", "show", "budget.db").stdout
    assert run("ledger", "--json", "budget.db").stdout == run("ledger", "show", "budget.db", "--format", "json").stdout
    assert run("ledger", "--help").exit_code == 0


def test_csv_has_a_line_for_every_entry(run: Run) -> None:
    book = filled()
    lines = list(csv.DictReader(io.StringIO(run("ledger", "budget.db", "--format", "csv").stdout)))
    assert [(line["id"], line["model"], line["note"], line["owner"]) for line in lines] == [
        ("1", "", "", "clinic statistics"),
        ("2", "LogisticRegression", "readmission study, part two, with a comma", "clinic statistics"),
    ]
    assert [line["hash"] for line in lines] == [entry.hash for entry in book.entries()]
    assert [(float(line["epsilon"]), line["rows_per_person"]) for line in lines] == [(0.1234567, "1"), (0.2, "12")]


@pytest.mark.parametrize("output", ["spent.csv", "spent.json"])
def test_export_writes_what_show_prints(run: Run, output: str) -> None:
    filled()
    assert run("ledger", "export", "budget.db", "-o", output).exit_code == 0
    form = output.removeprefix("spent.")
    assert (
        Path(output).read_text()
        == run("ledger", "budget.db", "--format", form).stdout
        == run("ledger", "export", "budget.db", "--format", form).stdout
    )


def test_export_does_not_overwrite_the_ledger(run: Run) -> None:
    before = filled().path.read_bytes()
    assert run("ledger", "export", "budget.db", "-o", "budget.db").exit_code == 1
    assert run("ledger", "export", "budget.db", "--format", "table").exit_code == 1
    assert Path("budget.db").read_bytes() == before


def test_the_newest_entries_can_be_asked_for(run: Run) -> None:
    filled()
    told = json.loads(run("ledger", "budget.db", "--json", "--last", 1).stdout)
    assert [entry["id"] for entry in told["entries"]] == [2]
    assert "newest 1 of 2 entries" in run("ledger", "budget.db", "--last", 1).stdout


# -- verify ----------------------------------------------------------------------------------------


def saved_model(book: pf.Ledger, name: str) -> None:
    table = np.linspace(-1, 1, 50).reshape(-1, 1)
    pf.LinearRegression(0.1, schema=pf.Schema.box(-1, 1, target=(-1, 1)), ledger=book).fit(table, table[:, 0]).save(
        name
    )


def test_verify_finds_a_ledger_in_order_and_tells_which_entry_paid_for_a_model(run: Run) -> None:
    saved_model(filled(), "model.json")
    result = run("ledger", "verify", "budget.db", "--against", "model.json")
    assert result.exit_code == 0
    assert "in order: 3 entries" in result.stdout
    assert "model.json was paid for by entry 3" in result.stdout
    told = json.loads(run("ledger", "verify", "budget.db", "--against", "model.json", "--json").stdout)
    assert told["verified"]["against"] == {"model.json": 3}


def test_verify_notices_an_older_backup_another_ledger_and_an_edit(run: Run) -> None:
    book = filled()
    shutil.copyfile("budget.db", "backup.db")
    saved_model(book, "model.json")
    result = run("ledger", "verify", "backup.db", "--against", "model.json")
    assert result.exit_code == 1
    assert "model.json" in result.stderr
    assert "older copy" in result.stderr
    assert run("ledger", "verify", "backup.db").exit_code == 0
    pf.Ledger("other.db", epsilon=1.0)
    assert "another ledger" in run("ledger", "verify", "other.db", "--against", "model.json").stderr
    connection = sqlite3.connect("budget.db")
    with connection:
        connection.execute("UPDATE entry SET note = 'nothing' WHERE id = 2")
    connection.close()
    edited = run("ledger", "verify", "budget.db", "--json")
    assert edited.exit_code == 1
    assert json.loads(edited.stdout)["error"] == "LedgerError"


@pytest.mark.parametrize(
    "text", ["{}", "not JSON", '{"report": {"receipt": {}}}', "[1]", '{"report": {"receipt": {"entry": 1}}}']
)
def test_a_file_without_a_receipt_is_refused(run: Run, text: str) -> None:
    filled()
    Path("model.json").write_text(text)
    result = run("ledger", "verify", "budget.db", "--against", "model.json")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")


def test_verify_says_that_old_entries_are_not_protected(run: Run) -> None:
    shutil.copyfile(Path(__file__).parents[1] / "fixtures" / "ledger-version-1.sqlite", "old.db")
    assert "Entries 1 to 24 were written before the file kept a chain" in run("ledger", "verify", "old.db").stdout
    pf.Ledger("old.db").charge(0.1)
    assert "Entries 1 to 24 were written before the file kept a chain" in run("ledger", "verify", "old.db").stdout


def test_a_note_of_a_fit_is_a_line_of_the_ledger(run: Run, folder: Path) -> None:
    fit = (
        "fit",
        "people.csv",
        "--schema",
        "linear.toml",
        "--model",
        "linear",
        "--epsilon",
        0.5,
        "-o",
        "model.json",
        "--note",
        "first try",
    )
    assert run(*fit, "--ledger", "budget.db", "--ledger-epsilon", 1).exit_code == 0
    (entry,) = pf.Ledger("budget.db").entries()
    assert (entry.note, entry.model, entry.target, entry.dataset) == (
        "first try",
        "LinearRegression",
        "income",
        "people.csv",
    )
    assert "--note was given without --ledger" in run(*fit).stderr


# -- texts that others wrote -----------------------------------------------------------------------

HOSTILE = "\x1b[2J\x9b31m\u202eevil\u2066\u2028\x7f\rforged,1,2\nnext\ttab"


def charged_with(note: str) -> None:
    pf.Ledger("budget.db", epsilon=1.0).charge(0.1, mechanism=note, dataset=note, note=note)


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_characters_that_a_terminal_obeys_are_shown_and_not_obeyed(run: Run, form: str) -> None:
    charged_with(HOSTILE)
    shown = run("ledger", "budget.db", "--format", form).stdout
    assert not {character for character in shown if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp")} - {
        "\n"
    }
    together = "".join(shown.split())
    assert "u202eevil" in together
    assert ("u001b" if form == "json" else "x1b") in together


def test_json_has_texts_as_they_are(run: Run) -> None:
    for note in (HOSTILE, "Größe 数 \u200d ok"):
        Path("budget.db").unlink(missing_ok=True)
        charged_with(note)
        (entry,) = json.loads(run("ledger", "budget.db", "--json").stdout)["entries"]
        assert entry["note"] == entry["mechanism"] == note
    assert "Größe" in run("ledger", "budget.db", "--json").stdout


def test_a_note_forges_no_line_of_a_csv(run: Run) -> None:
    charged_with("a\r2,2030-01-01,forged\n3,x")
    text = run("ledger", "export", "budget.db").stdout
    assert len(text.splitlines()) == 2
    (line,) = csv.DictReader(io.StringIO(text))
    assert (line["id"], line["note"]) == ("1", "a\\r2,2030-01-01,forged\\n3,x")


@pytest.mark.parametrize("note", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1"])
def test_no_text_of_a_csv_is_a_formula(run: Run, note: str) -> None:
    charged_with(note)
    (line,) = csv.DictReader(io.StringIO(run("ledger", "export", "budget.db").stdout))
    for cell in (line["note"], line["mechanism"], line["dataset"]):
        assert cell[0] in "'\\"
        assert cell.lstrip("'").startswith(note[0] if note[0].isprintable() else "\\")
    assert float(line["epsilon"]) == 0.1


def test_entries_with_a_purpose_that_cannot_be_printed_are_printed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such entries are refused; files may have some."""
    monkeypatch.setattr("privfit.privacy.ledger.ledger.checked_text", lambda name, value: value)
    pf.Ledger("budget.db", epsilon=1.0).charge(Event("m", 0.01, parts=(Laplace(size=1, purpose="\ud800"),)))
    for form in ("csv", "json", "table"):
        assert run("ledger", "budget.db", "--format", form).exit_code == 0
    for output in ("spent.csv", "spent.json"):
        assert run("ledger", "export", "budget.db", "-o", output).exit_code == 0
    (entry,) = json.loads(Path("spent.json").read_text())["entries"]
    assert entry["event"]["parts"][0]["purpose"] == "\ud800"


def test_exports_tell_noise_in_the_words_of_reports(run: Run) -> None:
    book = pf.Ledger("budget.db", epsilon=1.0)
    for parts in (
        (KNorm(norm="linf", size=2, scale=9.0), Laplace(size=1, scale=2.0)),
        (RandomBits(), Selection(rule="permute-and-flip", count=3)),
        (),
    ):
        book.charge(Event("m", 0.01, parts=parts))
    book.charge(0.1)
    lines = csv.DictReader(io.StringIO(run("ledger", "export", "budget.db").stdout))
    told = ["K-norm, L-infinity and discrete Laplace", "permute-and-flip", "", "unknown"]
    assert [line["noise"] for line in lines] == told


def test_a_total_above_all_floats_is_valid_json(run: Run) -> None:
    book = pf.Ledger("open.db", epsilon=math.inf)
    for _ in range(3):
        book.charge(1.7e308)
    for command in (("show", "open.db", "--json"), ("verify", "open.db", "--json")):
        told = json.loads(
            run("ledger", *command).stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON")
        )
        assert told["spent"] == {"epsilon": None, "delta": 0.0}
    assert "epsilon inf" in run("ledger", "open.db").stdout


def test_one_entry_is_not_entries(run: Run) -> None:
    pf.Ledger("budget.db", epsilon=1.0).charge(0.1)
    assert "in order: 1 entry, head" in run("ledger", "verify", "budget.db").stdout
    assert "newest 0 of 1 entry;" in run("ledger", "budget.db", "--last", 0).stdout


def test_a_receipt_with_a_number_that_no_entry_has_is_none(run: Run) -> None:
    filled()
    Path("model.json").write_text(json.dumps({"receipt": {"ledger": "a", "entry": 10**30, "head": "b"}}))
    result = run("ledger", "verify", "budget.db", "--against", "model.json")
    assert (result.exit_code, "no charge has written" in result.stderr) == (1, True)


# -- files beside the ledger -----------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
def test_no_result_is_written_where_sqlite_keeps_its_own_files(run: Run, folder: Path, ending: str) -> None:
    """A model was written as the ledger's journal, and removed by the next charge."""
    book = pf.Ledger("budget.db", epsilon=1.0)
    (folder / "link.db").symlink_to("budget.db")
    common = ("people.csv", "-s", "linear.toml", "-e", 0.5)
    for ledger in ("budget.db", "link.db", folder / "budget.db"):
        for command in (
            ("fit", *common, "-m", "linear", "-l", ledger, "-o", f"budget.db{ending}"),
            ("ledger", "export", ledger, "-o", f"budget.db{ending}"),
        ):
            result = run(*command)
            assert (result.exit_code, "uses itself" in result.stderr) == (1, True)
    assert book.entries() == []
    assert not Path(f"budget.db{ending}").exists()
