"""The plan as a page to sign: all of it public, none of it loaded from anywhere."""

import pytest

import onedraw as od
from onedraw.errors import CannotWrite
from tests.report.report_pages import Page, outside_loads


def test_a_plan_is_a_page_to_sign_that_loads_nothing(planned, tmp_path):
    text = planned.report(tmp_path / "plan.html").read_text()
    page = Page(text)
    assert outside_loads(text) == []
    assert "<a>" not in text
    assert "18 to 98" in page.text
    assert "chosen without looking at the private records" in page.text
    assert planned.plan.digest in page.text
    assert "age, ward=b, intercept" in page.text
    assert "are beyond this range: their coefficients hardly exist" in page.text
    with pytest.raises(CannotWrite, match="exists already"):
        planned.report(tmp_path / "plan.html")


def test_an_inferred_schema_must_be_answered_for(planned):
    schema = planned.asked.schema.to_dict() | {"inferred_from": "public.csv"}
    page = Page(od.report.plan_html(od.plan(schema, "cost", "linear", epsilon=2.0, n=3000)))
    assert "inferred from public.csv: must be public" in page.text
