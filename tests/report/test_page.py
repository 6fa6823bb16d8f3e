"""Writing a report: whole or not at all, never over another file unasked, and refused before anything else."""

import pytest

import onedraw as od
from onedraw import errors
from onedraw.errors import CannotWrite
from onedraw.release import files
from onedraw.report import page, report_html, write_report
from tests.report.cases import Page, outside_loads


def test_a_report_is_one_file_with_what_report_html_says(releases, tmp_path):
    path = write_report(releases["mean"], tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == report_html(releases["mean"])
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_an_existing_file_is_replaced_only_when_asked(releases, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("older")
    with pytest.raises(errors.CannotWrite, match="overwrite=True"):
        write_report(releases["mean"], path)
    assert path.read_text() == "older"
    write_report(releases["mean"], str(path), overwrite=True)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("name", ["missing/report.html", "."])
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_read(name, tmp_path):
    with pytest.raises(errors.CannotWrite):
        write_report("not even a release", tmp_path / name, overwrite=True)


def test_a_folder_without_permission_is_refused_before_anything_is_read(tmp_path, monkeypatch):
    """As root every folder can be written, so the refusal of the operating system is played."""

    def forbidden(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files.tempfile, "TemporaryFile", forbidden)
    with pytest.raises(errors.CannotWrite, match="cannot be written"):
        write_report("not even a release", tmp_path / "report.html")


def test_a_failure_while_writing_leaves_nothing_behind(releases, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(page.os, "fsync", full)
    with pytest.raises(errors.CannotWrite, match="No space left"):
        write_report(releases["mean"], tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_a_plan_is_a_page_to_sign_that_loads_nothing(planned, tmp_path):
    text = planned.report(tmp_path / "plan.html").read_text()
    page = Page(text)
    assert outside_loads(text) == []
    assert "<a>" not in text
    assert "18 to 98" in page.text
    assert "chosen without looking at the private records" in page.text
    assert planned.fingerprint in page.text
    assert "age, ward=b, intercept" in page.text
    assert "are beyond this range: their coefficients hardly exist" in page.text
    with pytest.raises(CannotWrite, match="exists already"):
        planned.report(tmp_path / "plan.html")


def test_an_inferred_schema_must_be_answered_for(planned):
    schema = planned.asked.schema.to_dict() | {"inferred_from": "public.csv"}
    page = Page(od.report.plan_html(od.plan(schema, "cost", "linear", epsilon=2.0, n=3000)))
    assert "inferred from public.csv: must be public" in page.text
