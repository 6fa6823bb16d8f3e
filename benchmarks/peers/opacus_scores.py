"""DP-SGD by Opacus 1.6.0 of a linear predictor on the six data sets, (ε, δ) with δ = 1e-5.

    python3.11 -m venv build/peers/opacus
    build/peers/opacus/bin/pip install torch==2.13.0
    build/peers/opacus/bin/pip install opacus==1.6.0
    build/peers/opacus/bin/python benchmarks/peers/opacus_scores.py > benchmarks/results/peers_opacus.json

Fixed settings, the same for all data sets and not tuned on any: 30 epochs, expected batch 128 (Poisson sampling), clip 1,
SGD with momentum 0.9 and learning rate 0.1, cross-entropy or squared error of responses scaled to [−1, 1]. Its neighbours
are add/remove-one, a weaker promise than replace-one at the same ε. ``--replace-one`` (to peers_opacus_replace.json) spends
ε/2 and δ/(1 + e^{ε/2}) instead: replacing is removing and adding, so that together they promise (ε, δ) for replace-one.
"""

from __future__ import annotations

import json
import math
import sys
import warnings

import numpy as np
import torch
from opacus import PrivacyEngine
from tables import DELTA, EPSILONS, quality, scaled, splits, tables

warnings.simplefilter("ignore")
EPOCHS, BATCH, CLIP, RATE, MOMENTUM = 30, 128, 1.0, 0.1, 0.9


def fitted(X: np.ndarray, y: np.ndarray, *, classes: bool, budget: tuple[float, float], seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    model = torch.nn.Linear(X.shape[1], 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    data = torch.utils.data.TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))
    loader = torch.utils.data.DataLoader(data, batch_size=min(BATCH, len(y)))
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    loss = torch.nn.BCEWithLogitsLoss() if classes else torch.nn.MSELoss()
    private, optimizer, loader = PrivacyEngine(accountant="rdp").make_private_with_epsilon(
        module=model, optimizer=optimizer, data_loader=loader, target_epsilon=budget[0], target_delta=budget[1],
        epochs=EPOCHS, max_grad_norm=CLIP,
    )  # fmt: skip
    for _ in range(EPOCHS):
        for rows, responses in loader:
            optimizer.zero_grad()
            loss(private(rows)[:, 0], responses).backward()
            optimizer.step()
    return model


def main() -> None:
    replace_one = "--replace-one" in sys.argv
    torch.set_num_threads(1)
    found = []
    for table in tables():
        X, classes = scaled(table).astype(np.float32), table.response is None
        low, high = table.response or (-1.0, 1.0)
        middle, half = (low + high) / 2, (high - low) / 2
        for epsilon in EPSILONS:
            budget = (epsilon / 2, DELTA / (1 + math.exp(epsilon / 2))) if replace_one else (epsilon, DELTA)
            scores = []
            for seed, train, test in splits(table):
                y = (table.y[train] - middle) / half
                model = fitted(X[train], y, classes=classes, budget=budget, seed=seed)
                with torch.no_grad():
                    predicted = model(torch.tensor(X[test]))[:, 0].numpy().astype(float)
                if not classes:
                    predicted = np.clip(middle + half * predicted, low, high)
                scores.append(quality(table, test, predicted))
            found.append({"table": table.name, "epsilon": epsilon, "scores": scores})
            print(table.name, epsilon, np.mean(scores), file=sys.stderr)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
