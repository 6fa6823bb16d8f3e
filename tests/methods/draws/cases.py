"""The law of a draw from one data set, which simulations of many draws need."""

import numpy as np

from onedraw.methods.draws.law import _Average, loss_of


class OfRecords(_Average):
    """`moments_of` for one data set in place of the design."""

    def __init__(self, plan, design, data):
        self.plan, self.design, self.loss = plan, design, loss_of(plan, design)
        self.rows, self.truths = data.X, np.zeros((1, data.X.shape[1]))
        self.responses, self.masses = data.y[None, :, None], np.ones((1, len(data.y), 1))

    def law(self):
        """Mean and covariance of one of the plan's draws."""
        mean, _, drawing = self.of(self.plan, self.truths)
        return mean[0], drawing[0]
