"""Which theorem makes a draw private. `calibrate` turns a model, a budget and n into a plan, without data."""

from .calibration import calibrate
from .exponential_family import Concentrated, Diffused, Direct, Scaling, posterior_promise
from .plan import Mechanism, Plan, Request, plan_from_dict

__all__ = [
    "Concentrated",
    "Diffused",
    "Direct",
    "Mechanism",
    "Plan",
    "Request",
    "Scaling",
    "calibrate",
    "plan_from_dict",
    "posterior_promise",
]
