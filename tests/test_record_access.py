"""Above `data`, records are read by `Records.sum` and `read_as` alone; who reads them otherwise is named here, with the reason.

What is looked for are the ways to a record's cells: the batches and blocks of records, and the arrays X and y of encoded ones.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "src" / "onedraw"
BELOW = {"data", "privacy", "ledger"}

EXCEPTIONS = {
    # a chain holds all rows in memory (refused where they are not: release/release.py)
    "models/row_model.py": "where the rows of a chain are put together",
    "models/sums/gradient_sums.py": "the rows of a path of noisy gradients that are in memory, on the lattice",
    "models/convex/gibbs_target.py": "chains on Gibbs posteriors",
    "models/likelihood/beta_target.py": "chains on β-divergence posteriors",
    "samplers/chains.py": "chains on Gibbs posteriors",
    "samplers/preconditioner.py": "the proximal sampler",
    "samplers/perfect.py": "losses at every try, of a posterior that a chain could draw from as well",
    "samplers/laplace.py": "Hamiltonian chains",
    "baselines/dp_sgd.py": "random batches of records, held in memory as by a chain",
    "baselines/dp_sgld.py": "the same",
    # no release is made of these by anything but sums
    "models/batches.py": "a column of plain data as batches, which are then added up as blocks",
    "release/predictions.py": "predictions for new records: they are given back to who has these records, nothing is released",
    # the auditor replays a release on records of its own
    "audit/cases/declared.py": "the auditor",
    "methods/clipped_gradients/replay.py": "the auditor",
    "methods/fit/replay.py": "the auditor",
    "methods/measured/replay.py": "the auditor",
}

ARRAYS = ("X", "y")
HOLDERS = ("encoded", "summary")
WAYS = ("batches", "blocks", "arrays", "of_block")


def reads_records(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Attribute(attr=holder) | ast.Name(id=holder), attr=name) if holder in HOLDERS:
            return name in ARRAYS
        case ast.Attribute(value=ast.Call(func=ast.Attribute(attr="summarise" | "encode")), attr=name):
            return name in ARRAYS
        case ast.Attribute(value=ast.Name(id="block" | "records" | "data" | "rows"), attr=name):
            return name in WAYS
        case ast.Call(func=ast.Attribute(value=ast.Name(id="data" | "records"), attr="values")):
            return True
    return False


def readers(root: Path) -> set[str]:
    sources = {path.relative_to(root).as_posix(): path for path in root.rglob("*.py")}
    return {
        name
        for name, path in sources.items()
        if name.partition("/")[0] not in BELOW and any(map(reads_records, ast.walk(ast.parse(path.read_text()))))
    }


def test_nothing_above_the_data_reads_records_but_by_sums_and_those_named_here():
    assert readers(ROOT) == set(EXCEPTIONS)


def test_a_new_reader_would_be_noticed(tmp_path):
    ways = {
        "a": "for batch in records.batches(): pass",
        "b": "total = self.encoded.X.T @ self.encoded.X",
        "c": "columns = list(data.values('age'))",
        "d": "for block in rows: add(block.arrays)",
        "e": "y = model.summarise(data).y",
        "f": "X = summary.X",
    }
    (tmp_path / "models").mkdir()
    for name, line in ways.items():
        (tmp_path / "models" / f"{name}.py").write_text(line)
    (tmp_path / "models" / "fine.py").write_text("total = records.sum(statistic, *public).astype(float)")
    assert readers(tmp_path) == {f"models/{name}.py" for name in ways}
