"""What a message shows: its lines, and nothing that acts on a terminal."""

import pickle

import pytest

import onedraw as od
from onedraw.errors import InvalidSchema

TWO_MISTAKES = {
    "columns": {"age": {"kind": "number", "lower": 0, "missing": 0}, "sex": {"kind": "category", "missing": 1}}
}


@pytest.mark.finding("house 12", commit="8a7c0fb")
def test_two_mistakes_in_a_schema_are_two_lines():
    with pytest.raises(InvalidSchema) as caught:
        od.Schema.from_dict(TWO_MISTAKES)
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert "\\n" not in str(caught.value)
    assert "'age'" in lines[0]
    assert "'sex'" in lines[1]


@pytest.mark.finding("house 12", commit="8a7c0fb")
def test_a_line_end_in_one_mistake_does_not_make_a_line():
    forged = {"columns": {"age\nNothing is wrong": {"kind": "number", "lower": 0, "missing": 0}, "sex": {}}}
    with pytest.raises(InvalidSchema) as caught:
        od.Schema.from_dict(forged)
    lines = str(caught.value).splitlines()
    assert len(lines) > 1
    assert all(line.startswith("Column ") for line in lines)
    assert r"age\nNothing" in lines[0]


def test_an_error_sent_to_another_process_says_the_same():
    error = InvalidSchema("one\tline\x1b", "another")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "one\\tline\\x1b\nanother"
