"""Can the promise be broken? This package sees a callable, a density or a probability vector, and a promise.

``profiles`` what two neighbouring outputs give away, exactly (of ``densities`` by ``quadrature``: ``divergences``;
against a promise: ``comparison``) · ``bounds`` from error counts to a lower bound on ε · ``attacks`` the Bayes-optimal
one, and those that only see draws · ``search`` the worst pair of data sets, and where records may lie · ``assertion``
all of it as one line of a test · ``results`` and ``figure`` what is found, as values and as a picture.

Proof and audit share no code: nothing here imports a mechanism, a model, a sampler or a release.
Names are loaded when first touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.on_demand import names_on_demand

if TYPE_CHECKING:
    from .assertion import NotPrivate, assert_private
    from .attacks import (
        NormaliserRatio,
        attack_draws,
        blackbox_lower_bound,
        log_normaliser_ratio,
        membership_attack,
        membership_score,
    )
    from .bounds import (
        SweepBound,
        check_rounds,
        clopper_pearson_upper,
        epsilon_lower_bound,
        gaussian_mu_lower_bound,
        renyi_lower_bound,
        rounds_needed,
        sweep_lower_bound,
    )
    from .figure import tradeoff_figure
    from .profiles import Profile, exact_profile, finite_profile
    from .results import AttackResult, AuditReport, Violation
    from .search import Ball, Box, Domain, Finite, Product, WorstPair, worst_pair

__all__ = [
    "AttackResult", "AuditReport", "Ball", "Box", "Domain", "Finite", "NormaliserRatio", "NotPrivate", "Product",
    "Profile", "SweepBound", "Violation", "WorstPair", "assert_private", "attack_draws", "blackbox_lower_bound",
    "check_rounds", "clopper_pearson_upper", "epsilon_lower_bound", "exact_profile", "finite_profile",
    "gaussian_mu_lower_bound", "log_normaliser_ratio", "membership_attack", "membership_score",
    "renyi_lower_bound", "rounds_needed", "sweep_lower_bound", "tradeoff_figure", "worst_pair",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = names_on_demand(__name__, {
        "profiles": ("Profile", "exact_profile", "finite_profile"),
        "bounds": (
            "SweepBound", "check_rounds", "clopper_pearson_upper", "epsilon_lower_bound", "gaussian_mu_lower_bound",
            "renyi_lower_bound", "rounds_needed", "sweep_lower_bound",
        ),
        "attacks": (
            "NormaliserRatio", "attack_draws", "blackbox_lower_bound", "log_normaliser_ratio", "membership_attack", "membership_score",
        ),
        "search": ("Ball", "Box", "Domain", "Finite", "Product", "WorstPair", "worst_pair"),
        "assertion": ("NotPrivate", "assert_private"),
        "results": ("AttackResult", "AuditReport", "Violation"),
        "figure": ("tradeoff_figure",),
    })  # fmt: skip
