"""A forked child without JAX's threads is refused before it is charged; every other child is served."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json, os, signal, warnings
import numpy as np
import onedraw as od

warnings.simplefilter("ignore")  # JAX warns of every fork
X = np.linspace(-1, 1, 120).reshape(-1, 2)
y = np.arange(60) % 2
od.Ledger.open("ledger.db", create=True).init("d", od.ApproxDP(50, 1e-3))

def regression(**more):
    return od.DPLogisticRegression(
        epsilon=1, bounds=([-1, -1], [1, 1]), classes=[0, 1], mechanism="gdp", missing="middle", ledger="ledger.db", dataset="d", **more
    ).fit(X, y)

def proportion():
    return od.DPProportion(epsilon=1, classes=[0, 1], ledger="ledger.db", dataset="d").fit(y)

def charges():
    return sum(event.kind == "reserved" for event in od.Ledger.open("ledger.db").events("d"))

def in_child(task):
    before = charges()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            said = type(task()).__name__
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {"code": code, "said": os.read(reader, 10_000).decode(), "charges": charges() - before}

found = {"before JAX": in_child(regression)}
regression()
found["after JAX"] = in_child(regression)
found["after JAX, closed form"] = in_child(proportion)
found["a child's child"] = in_child(lambda: print(json.dumps(in_child(regression)), flush=True))
print(json.dumps(found))
"""


@pytest.mark.finding("A5")
def test_a_fit_in_a_child_forked_after_jax_was_used_is_refused_before_the_charge(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr
    grandchild, found = map(json.loads, done.stdout.splitlines())
    for one in (found["after JAX"], grandchild):
        assert one["code"] == 0, one  # -14: it hung
        assert "WrongCall" in one["said"], one
        assert "spawn" in one["said"], one
        assert one["charges"] == 0, one
    assert found["before JAX"] == {"code": 0, "said": "DPLogisticRegression", "charges": 1}
    assert found["after JAX, closed form"] == {"code": 0, "said": "DPProportion", "charges": 1}
