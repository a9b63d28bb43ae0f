"""What an audit says: the terms of its identity at every step, the bound, and broken laws."""

from dataclasses import dataclass, fields

import polars as pl
import torch
from jaxtyping import Float
from torch import Tensor

PerStep = Float[Tensor, "steps R"]
SLACK = 1e3
"""Rounding errors of sums are at most this many units in the last place of the largest term."""


@dataclass(frozen=True)
class Terms:
    """The terms of the identity, one row per step and one column per replicate, in float64."""

    rate: PerStep
    loss: PerStep
    """What the run said, so that this is audited too."""
    comparator: PerStep
    convexity: PerStep
    linearisation: PerStep
    gradient: PerStep
    """||s_t / alpha||^2 of the step s_t before projection: ||g_t||^2 in gradient descent."""
    update: PerStep
    """<s_t / alpha - g_t, W* - W_t>: 0 in gradient descent."""
    distance: PerStep
    """d_t^2."""
    after: PerStep
    """d_{t+1}^2."""
    projection: PerStep
    """||W_t - s_t - W*||^2 - d_{t+1}^2."""
    value_error: PerStep
    """|the run's loss - the loss at x~|."""
    gradient_error: PerStep
    """||the run's gradient - that of the loss at x~||, over the longest gradient so far."""
    update_error: PerStep
    """The largest |W_{t+1} - P(W_t - s_t)| of a weight, over what rounding may do to it."""
    eps: float
    """The unit roundoff of the run's floating type."""

    @property
    def residual(self) -> PerStep:
        """What the two sides of the identity differ by: rounding, or a bug."""
        right = (
            self.comparator - self.convexity - self.linearisation + self.rate / 2 * self.gradient
        )
        moved = (self.distance - self.after - self.projection) / (2 * self.rate)
        return self.loss - (right + self.update + moved)

    @property
    def rounding(self) -> PerStep:
        """How large rounding may make a residual."""
        largest = self.distance / (2 * self.rate) + self.loss.abs() + self.comparator.abs() + 1
        return SLACK * self.eps * largest


@dataclass(frozen=True)
class Violation:
    """A step of a replicate at which a law of the audit broke, and by how much."""

    step: int
    replicate: int
    law: str
    amount: float

    def __str__(self) -> str:
        return (
            f"step {self.step}, replicate {self.replicate}: {self.law} broken by {self.amount:.3g}"
        )


@dataclass(frozen=True)
class Report:
    """A run's audit. The regret inequality is `loss <= bound`, with means weighted by the rates."""

    terms: Terms
    violations: list[Violation]

    @property
    def ok(self) -> bool:
        return not self.violations

    @property
    def loss(self) -> Float[Tensor, " R"]:
        """mean_t L_A(W_t)"""
        return self._mean(self.terms.loss)

    @property
    def parts(self) -> dict[str, Float[Tensor, " R"]]:
        """The terms of the bound on the mean loss, in the order of the inequality.

        `update` is there only where another optimiser than gradient descent was declared.
        """
        terms = self.terms
        found = {
            "comparator": self._mean(terms.comparator),
            "distance": terms.distance[0] / (2 * terms.rate.sum(0)),
            "gradient": self._mean(terms.rate * terms.gradient) / 2,
            "linearisation": -self._mean(terms.linearisation),
        }
        return found | ({"update": self._mean(terms.update)} if bool(terms.update.any()) else {})

    @property
    def bound(self) -> Float[Tensor, " R"]:
        return torch.stack(list(self.parts.values())).sum(0)

    def table(self) -> pl.DataFrame:
        """One row per step and replicate: all terms, the running mean loss and its bound so far."""
        terms = self.terms
        steps, replicates = terms.loss.shape
        total = terms.rate.cumsum(0)
        means = {
            name: (terms.rate * value).cumsum(0) / total
            for name, value in {
                "mean_loss": terms.loss,
                "comparator_part": terms.comparator,
                "gradient_part": terms.rate * terms.gradient / 2,
                "linearisation_part": -terms.linearisation,
                "update_part": terms.update,
            }.items()
        }
        means["distance_part"] = terms.distance[:1] / (2 * total)
        means["bound"] = sum(value for name, value in means.items() if name != "mean_loss")  # type: ignore[assignment]
        names = [one.name for one in fields(terms) if one.name != "eps"]
        columns = {name: getattr(terms, name) for name in names} | means
        return pl.DataFrame(
            {
                "step": torch.arange(steps).repeat_interleave(replicates).numpy(),
                "replicate": torch.arange(replicates).repeat(steps).numpy(),
                **{name: value.double().flatten().numpy() for name, value in columns.items()},
            }
        )

    def __str__(self) -> str:
        parts = " + ".join(f"{name} {float(v.mean()):.4g}" for name, v in self.parts.items())
        runs = f", mean of {len(self.loss)} networks" if len(self.loss) > 1 else ""
        line = (
            f"mean loss {float(self.loss.mean()):.4g} <= {float(self.bound.mean()):.4g} = {parts} "
            f"({len(self.terms.loss)} steps{runs})"
        )
        found = "no violation" if self.ok else f"BUG: {len(self.violations)} violations; first: "
        return f"{line}; {found}{'' if self.ok else self.violations[0]}"

    def _mean(self, values: PerStep) -> Float[Tensor, " R"]:
        return (self.terms.rate * values).sum(0) / self.terms.rate.sum(0)


def violations(terms: Terms, declared: str, projected: bool) -> list[Violation]:
    """The first few steps at which each law breaks beyond rounding, in the order of the steps.

    Args:
        terms: of the run.
        declared: the update that was declared, in words.
        projected: whether a projection was.
    """
    allowed = terms.rounding
    laws = {
        "the identity of the audit": terms.residual.abs() - allowed,
        "the loss's convexity": -terms.convexity - allowed,
        "the loss at the attacked inputs": terms.value_error
        - SLACK * terms.eps * (1 + terms.loss.abs()),
        "the gradient of the loss at the attacked inputs": terms.gradient_error - SLACK * terms.eps,
        f"{declared} (another step, momentum, a penalty, another projection?)": terms.update_error
        - 1,
    }
    if projected:
        gain = terms.projection / (2 * terms.rate)
        laws["that projections come no farther from W* (is W* in the set?)"] = -gain - allowed
    found = []
    for law, excess in laws.items():
        # Not "excess > 0", so that NaN is a violation too.
        broken = ~(excess <= 0)
        for step, replicate in broken.nonzero()[:20].tolist():
            found.append(Violation(step, replicate, law, float(excess[step, replicate])))
    return sorted(found, key=lambda one: one.step)
