"""The audit of a run: what projected gradient descent owes to any comparator, term by term.

For every network, attack, convex loss and comparator W* in the projection set, with x~ the attacked
inputs of step t, g_t the gradient, d_t = ||W_t - W*|| and e = f(W*, x~) - f(W_t, x~) - <grad f(W_t,
x~), W* - W_t> (convergence paper, section 4), each step obeys the identity

    loss_t = comparator_t - convexity_t - linearisation_t + alpha/2 ||g_t||^2
             + (d_t^2 - d_{t+1}^2 - projection_t) / (2 alpha)

where comparator = mean l(f(W*, x~), y), linearisation = mean l'(f(W_t, x~), y) e, and convexity (of
the loss) and projection (what it gained) are never negative. Summed over steps this is the regret
inequality behind Theorem 4.1. All terms come from the run itself, so a violation beyond rounding is
a bug: in the run, in the attack's bookkeeping, or in the claim that W* lies in the set.
"""

from dataclasses import dataclass, fields

import polars as pl
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from ..core.errors import AdvlabError
from ..losses import evaluating, value_and_slope
from ..training import Hook, Run, StepInfo
from .linearity import derivative_along

PerStep = Float[Tensor, "steps R"]
SLACK = 1e3
"""Rounding errors are at most this many units in the last place of the largest term."""


@dataclass(frozen=True)
class Terms:
    """The terms of the identity, one row per step and one column per replicate."""

    rate: PerStep
    loss: PerStep
    comparator: PerStep
    convexity: PerStep
    linearisation: PerStep
    gradient: PerStep
    """||g_t||^2."""
    distance: PerStep
    """d_t^2."""
    after: PerStep
    """d_{t+1}^2."""
    projection: PerStep

    @property
    def residual(self) -> PerStep:
        """What the two sides of the identity differ by: rounding, or a bug."""
        right = (
            self.comparator - self.convexity - self.linearisation + self.rate / 2 * self.gradient
        )
        right = right + (self.distance - self.after - self.projection) / (2 * self.rate)
        return self.loss - right

    @property
    def rounding(self) -> PerStep:
        """How large rounding may make a residual."""
        largest = self.distance / (2 * self.rate) + self.loss.abs() + self.comparator.abs() + 1
        return SLACK * torch.finfo(self.loss.dtype).eps * largest


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
        """The four terms of the bound on the mean loss, in the order of the inequality."""
        terms = self.terms
        return {
            "comparator": self._mean(terms.comparator),
            "distance": terms.distance[0] / (2 * terms.rate.sum(0)),
            "gradient": self._mean(terms.rate * terms.gradient) / 2,
            "linearisation": -self._mean(terms.linearisation),
        }

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
            }.items()
        }
        means["distance_part"] = terms.distance[:1] / (2 * total)
        means["bound"] = sum(value for name, value in means.items() if name != "mean_loss")  # type: ignore[assignment]
        columns = {one.name: getattr(terms, one.name) for one in fields(terms)} | means
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


class Audit(Hook):
    """A hook of `fit`: `fit(..., hooks=[audit])`, then `audit.report()`.

    The run must be gradient descent on the adversarial loss. Give the audit before hooks that
    change gradients.

    Args:
        comparator: a network of the same architecture, W* its trained weights; of a stack, a stack.
        projected: whether the run projects on a convex set that W* is in.
    """

    def __init__(self, comparator: nn.Module, *, projected: bool = False):
        self.comparator, self.projected = comparator, projected
        self._rows: list[dict[str, list[float]]] = []
        self._dtype = torch.float64
        self._before: dict[str, Tensor] | None = None

    def after_gradient(self, run: Run, info: StepInfo) -> None:
        weights, goal = _weights(run.model), _weights(self.comparator)
        _check_alike(weights, goal)
        with torch.no_grad():
            way = {name: goal[name] - value for name, value in weights.items()}
            distance = _squares(list(way.values()), run.replicates)
            self._close(distance)
            if not info.last:
                self._before = self._open(info, weights, goal, way, distance)

    def settings(self) -> object:
        return {"projected": self.projected}

    def state_dict(self) -> dict:
        names = self._rows[0] if self._rows else ()
        rows = {name: [row[name] for row in self._rows] for name in names}
        rows = {name: torch.tensor(values, dtype=torch.float64) for name, values in rows.items()}
        return {"rows": rows, "before": self._before, "dtype": str(self._dtype).split(".")[1]}

    def load_state_dict(self, state: dict) -> None:
        columns = {name: values.tolist() for name, values in state["rows"].items()}
        rows = zip(*columns.values(), strict=True)
        self._rows = [dict(zip(columns, row, strict=True)) for row in rows]
        self._before, self._dtype = state["before"], getattr(torch, state["dtype"])

    def report(self) -> Report:
        if not self._rows:
            raise AdvlabError("a run of at least one step that this audit watched", "none")
        terms = Terms(
            **{
                name: torch.tensor([row[name] for row in self._rows], dtype=self._dtype)
                for name in self._rows[0]
            }
        )
        return Report(terms, _violations(terms, self.projected))

    def _open(
        self,
        info: StepInfo,
        weights: dict[str, Tensor],
        goal: dict[str, Tensor],
        way: dict[str, Tensor],
        distance: Tensor,
    ) -> dict[str, Tensor]:
        """All of a step's terms but those that ask where it led."""
        context = info.context
        x, model = context.attacked(), context.model

        def outputs(w: dict[str, Tensor]) -> Tensor:
            return functional_call(model, w, (x,))  # type: ignore[arg-type]

        with evaluating(model):
            with torch.enable_grad():
                leaves = {name: w.requires_grad_() for name, w in weights.items()}
                f = outputs(leaves)
                change = derivative_along(f, list(leaves.values()), list(way.values()))
            there = outputs(goal)
        loss, slope = value_and_slope(context.loss, _flat(f).detach(), context.y)
        rise, change = _flat(there - f), _flat(change)
        goal_loss = context.loss(there, context.y)
        mean = context.per_replicate
        along = _along(info.grads, list(way.values()), context.replicates)
        gradient = _squares(info.grads, context.replicates)
        return {
            "rate": torch.full_like(distance, context.lr),
            # The run's own word for it, so that the identity audits that too.
            "loss": info.values,
            "comparator": mean(goal_loss),
            "convexity": mean(goal_loss - loss - slope * rise),
            "linearisation": mean(slope * (rise - change)),
            "gradient": gradient,
            "distance": distance,
            "unprojected": distance + 2 * context.lr * along + context.lr**2 * gradient,
        }

    def _close(self, distance: Tensor) -> None:
        """The step before led here."""
        if self._before is None:
            return
        unprojected = self._before.pop("unprojected")
        row = {**self._before, "after": distance, "projection": unprojected - distance}
        # As plain numbers: small tensors kept among large ones that are freed let the heap grow.
        self._rows.append({name: value.tolist() for name, value in row.items()})
        self._before, self._dtype = None, distance.dtype


def _violations(terms: Terms, projected: bool) -> list[Violation]:
    """The first few steps at which each law breaks beyond rounding, in the order of the steps."""
    allowed = terms.rounding
    gain = terms.projection / (2 * terms.rate)
    laws = {
        "the identity of the audit": terms.residual.abs() - allowed,
        "the loss's convexity": -terms.convexity - allowed,
    }
    if projected:
        laws["that projections come no farther from W* (is W* in the set?)"] = -gain - allowed
    else:
        laws["plain gradient descent (momentum, a penalty, a projection?)"] = gain.abs() - allowed
    found = []
    for law, excess in laws.items():
        # Not "excess > 0", so that NaN is a violation too.
        broken = ~(excess <= 0)
        for step, replicate in broken.nonzero()[:20].tolist():
            found.append(Violation(step, replicate, law, float(excess[step, replicate])))
    return sorted(found, key=lambda one: one.step)


def _weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: w.detach().clone() for name, w in model.named_parameters() if w.requires_grad}


def _check_alike(weights: dict[str, Tensor], goal: dict[str, Tensor]) -> None:
    shapes = [{name: tuple(w.shape) for name, w in part.items()} for part in (weights, goal)]
    if shapes[0] != shapes[1]:
        raise AdvlabError(f"a comparator with the run's weights, {shapes[0]}", shapes[1])


def _flat(outputs: Tensor) -> Tensor:
    if outputs.numel() != len(outputs):
        raise AdvlabError("one output per example", tuple(outputs.shape))
    return outputs.flatten()


def _squares(parts, replicates: int) -> Tensor:
    return _along(parts, parts, replicates)


def _along(first, second, replicates: int) -> Tensor:
    """Inner products over all arrays, one per replicate."""
    products = [(a * b).reshape(replicates, -1).sum(1) for a, b in zip(first, second, strict=True)]
    return torch.stack(products).sum(0)
