"""The audit of a run: what projected gradient descent owes to any comparator, term by term.

With x~ the attacked inputs of step t, g_t the gradient of the mean loss there, d_t = ||W_t - W*||,
s_t the step of the declared optimiser (alpha g_t for gradient descent) and e = f(W*, x~) - f(W_t,
x~) - <grad f(W_t, x~), W* - W_t> (convergence paper, section 4), every network, attack, convex loss
and comparator W* obeys the identity

    loss_t = comparator_t - convexity_t - linearisation_t + alpha/2 ||s_t/alpha||^2 + update_t
             + (d_t^2 - d_{t+1}^2 - projection_t) / (2 alpha)

where comparator = mean l(f(W*, x~), y), linearisation = mean <l'(f(W_t, x~), y), e>, update =
<s_t/alpha - g_t, W* - W_t>, and convexity (of the loss) and projection (what it gained, for W* in
the set) are never negative. Summed over steps this is the regret inequality behind Theorem 4.1. All
terms come from the run itself, so a violation beyond rounding is a bug.

Besides the identity the audit recomputes at each step the loss, the whole gradient, and

    W_{t+1} = P(W_t - s_t)

for the optimiser and the projection P that were declared, weight by weight, up to `ULPS` units in
the last place of the numbers that the weight is made of. So a step that is a share r too long is
found as soon as r |s_t| exceeds that for one of the weights, in float32 too. f is the network in
the mode in which it trains: BatchNorm with the statistics of the batch, Dropout with its mask.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..core.errors import AdvlabError
from ..losses import PerExample, resolve
from ..models import Stack
from ..training import Hook, Projection, Run, StepInfo
from ..training.run import OptimizerFactory
from .audit_report import Report as Report
from .audit_report import Terms, violations
from .audit_report import Violation as Violation
from .replay import Arrays, DeclaredUpdate, ForwardPass, weights_of, wide

ULPS = 32
"""How far, in units of the last place, rounding may take a weight from the declared update."""


class Recorder:
    """The audit of a training loop of one's own.

    The loop must descend the mean loss over the rows of the batch.

    Args:
        model: the network that trains, or a `Stack`; noted until `report` is called.
        comparator: a network of the same architecture, W* its trained weights.
        loss: a name or a function of outputs and labels, one value per example.
        optimizer: what the loop is meant to do: a class of `torch.optim` or a partial of it, not
            the loop's own optimiser. None is plain gradient descent.
        projection: the set around the model's weights now that the loop keeps to, if it does.

    Example:
        from advlab.attacks import PGD
        from advlab.losses import ModelLoss, cross_entropy
        from advlab.measure.audit import Recorder
        recorder = Recorder(model, goal, loss="cross_entropy")
        for x, y in batches:
            moved = PGD()(ModelLoss(model, y, cross_entropy), x, ball, rng=rng).x
            optimizer.zero_grad()
            loss = cross_entropy(model(moved), y).mean()
            loss.backward()
            recorder.step(moved, y, lr=0.1, value=loss)  # after backward, before the step
            optimizer.step()
        print(recorder.report())
    """

    def __init__(
        self,
        model: nn.Module,
        comparator: nn.Module,
        *,
        loss: str | PerExample = "cross_entropy",
        optimizer: OptimizerFactory | None = None,
        projection: Projection | None = None,
    ):
        self.model, self.loss = model, resolve(loss)
        self.replicates = model.replicates if isinstance(model, Stack) else 1
        place = next(model.parameters()).device
        self._goal = {name: w.to(place) for name, w in weights_of(comparator).items()}
        _check_alike(weights_of(model), self._goal)
        self._declared = _in_words(optimizer, projection)
        self._update = DeclaredUpdate(model, optimizer, projection)
        self._forward = ForwardPass(model)
        self.watch()
        self._rows: list[dict[str, list[float]]] = []
        self._pending: dict[str, Any] | None = None
        self._longest = torch.zeros(self.replicates, dtype=torch.float64)
        self._eps = torch.finfo(next(iter(self._goal.values())).dtype).eps

    def step(
        self,
        x: Tensor,
        y: Tensor,
        *,
        lr: float,
        value: Tensor | float | None = None,
        grads: Sequence[Tensor] | None = None,
    ) -> None:
        """Note a step, after its gradient is known and before the weights move.

        Args:
            x: the attacked inputs whose loss is descended.
            y: their labels.
            lr: alpha.
            value: the mean loss that the loop found (of a stack, one per replicate), if it is to be
                audited too.
            grads: the gradient in each trained array; `.grad` of the weights by default.
        """
        weights = self.arrive()
        if grads is None:
            trained = [w for w in self.model.parameters() if w.requires_grad]
            grads = [torch.zeros_like(w) if w.grad is None else w.grad for w in trained]
        noted = self._noted(x, y, weights, value, grads)
        with torch.no_grad():
            self._pending = self._terms(noted, weights, grads, lr)

    def arrive(self) -> Arrays:
        """The weights now, where the step noted last has led; it is closed by them."""
        weights = weights_of(self.model)
        if self._pending is None:
            return weights
        pending, self._pending = self._pending, None
        with torch.no_grad():
            distance = self._squares(self._way(weights))
            ratios = []
            for name, target in pending["target"].items():
                made_of = pending["made of"][name] + wide(weights[name]).abs()
                room = ULPS * self._eps * made_of + torch.finfo(torch.float64).tiny
                off = ((wide(weights[name]) - target).abs() / room).reshape(self.replicates, -1)
                ratios.append(off.amax(1))
        row = {
            **pending["terms"],
            "after": distance,
            "projection": pending["unprojected"] - distance,
            "update_error": torch.stack(ratios).amax(0),
        }
        # As plain numbers: small tensors kept among large ones that are freed let the heap grow.
        self._rows.append({name: value.tolist() for name, value in row.items()})
        return weights

    def watch(self) -> None:
        """Note forward passes of the model from now on."""
        self._forward.attach()

    def leave(self) -> None:
        """Note no forward pass any more."""
        self._forward.detach()

    def forget(self) -> None:
        """The step noted last was not taken after all."""
        self._pending = None

    def report(self) -> Report:
        """The audit of the steps so far; the last one is closed by the weights as they are now."""
        self.arrive()
        self.leave()
        if not self._rows:
            raise AdvlabError("a run of at least one step that this audit watched", "none")
        columns = {
            name: torch.tensor([row[name] for row in self._rows], dtype=torch.float64)
            for name in self._rows[0]
        }
        terms = Terms(**columns, eps=self._eps)
        found = violations(terms, self._declared, self._update.projection is not None)
        return Report(terms, self._astray() + found)

    def _noted(
        self,
        x: Tensor,
        y: Tensor,
        weights: Arrays,
        value: Tensor | float | None,
        grads: Sequence[Tensor],
    ) -> dict[str, Tensor]:
        """Loss, gradient and comparator at the attacked inputs, by a forward pass of our own."""

        def mean(values: Tensor) -> Tensor:
            return values.reshape(self.replicates, -1).mean(1)

        with torch.enable_grad():
            leaves = {name: w.clone().requires_grad_() for name, w in weights.items()}
            f = self._forward.outputs(leaves, x)
            values = mean(self.loss(f, y))
            own = torch.autograd.grad(values.sum(), list(leaves.values()), materialize_grads=True)
        with torch.no_grad():
            there = self._forward.outputs(self._goal, x)
            goal_loss = self.loss(there, y)
        loss, slope = _value_and_slope(self.loss, f.detach(), y)
        rise = (slope * (there - f.detach())).reshape(len(x), -1).sum(1)
        way = self._way(weights)
        along = self._inner(own, list(way.values()))
        wrong = [wide(mine) - wide(given) for mine, given in zip(own, grads, strict=True)]
        found = values.detach().cpu()
        said = found if value is None else torch.as_tensor(value).detach().cpu().reshape(-1)
        length = self._squares(own).sqrt()
        self._longest = torch.maximum(self._longest, length)
        return {
            "loss": wide(said),
            "comparator": wide(mean(goal_loss)),
            "convexity": wide(mean(goal_loss - loss - rise)),
            "linearisation": wide(mean(rise)) - along,
            "value_error": (said - found).double().abs(),
            "gradient_error": self._squares(wrong).sqrt()
            / self._longest.clamp(min=torch.finfo(torch.float64).tiny),
        }

    def _terms(
        self, noted: dict[str, Tensor], weights: Arrays, grads: Sequence[Tensor], lr: float
    ) -> dict[str, Any]:
        """All of a step's terms but those that ask where it led, and where it should lead."""
        way = self._way(weights)
        step = self._update.step(weights, grads, lr)
        steps, ways = list(step.values()), list(way.values())
        distance, length = self._squares(ways), self._squares(steps)
        beyond = [s / lr - wide(g) for s, g in zip(steps, grads, strict=True)]
        plain = self._update.plain
        update = torch.zeros_like(distance) if plain else self._inner(beyond, ways)
        target = self._update.projected({n: wide(w) - step[n] for n, w in weights.items()})
        start = self._update.start if self._update.projection is not None else {}
        made_of = {
            name: wide(w).abs()
            + step[name].abs()
            + (wide(start[name]).abs() if name in start else 0.0)
            for name, w in weights.items()
        }
        terms = {
            **noted,
            "rate": torch.full_like(distance, lr),
            "gradient": length / lr**2,
            "update": update,
            "distance": distance,
        }
        unprojected = distance + 2 * self._inner(steps, ways) + length
        return {"terms": terms, "unprojected": unprojected, "target": target, "made of": made_of}

    def _astray(self) -> list[Violation]:
        """Whether the comparator lies in the set that was declared."""
        goal = {name: wide(w) for name, w in self._goal.items()}
        nearest = self._update.projected(goal)
        law = "that W* lies in the projection's set (is W* in the set?)"
        found = torch.zeros(self.replicates, dtype=torch.float64)
        for name, w in goal.items():
            room = ULPS * self._eps * (w.abs() + wide(self._update.start[name]).abs())
            off = (nearest[name] - w).abs() - room
            found = torch.maximum(found, off.reshape(self.replicates, -1).amax(1))
        broken = (~(found <= 0)).nonzero().flatten().tolist()
        return [Violation(0, r, law, float(found[r])) for r in broken]

    def _way(self, weights: Arrays) -> Arrays:
        return {name: wide(self._goal[name]) - wide(w) for name, w in weights.items()}

    def _squares(self, parts: Mapping[str, Tensor] | Sequence[Tensor]) -> Tensor:
        arrays = list(parts.values()) if isinstance(parts, Mapping) else list(parts)
        return self._inner(arrays, arrays)

    def _inner(self, first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
        """Inner products over all arrays in float64, one per replicate."""
        products = [
            (wide(a) * wide(b)).reshape(self.replicates, -1).sum(1)
            for a, b in zip(first, second, strict=True)
        ]
        return torch.stack(products).sum(0)

    def state_dict(self) -> dict:
        names = self._rows[0] if self._rows else ()
        rows = {name: [row[name] for row in self._rows] for name in names}
        rows = {name: torch.tensor(values, dtype=torch.float64) for name, values in rows.items()}
        update = self._update.state_dict()
        return {"rows": rows, "pending": self._pending, "longest": self._longest, "update": update}

    def load_state_dict(self, state: dict) -> None:
        columns = {name: values.tolist() for name, values in state["rows"].items()}
        rows = zip(*columns.values(), strict=True)
        self._rows = [dict(zip(columns, row, strict=True)) for row in rows]
        self._pending, self._longest = state["pending"], state["longest"]
        self._update.load_state_dict(state["update"])


class Audit(Hook):
    """A hook of `fit`: `fit(..., hooks=[audit])`, then `audit.report()`.

    The run must descend the adversarial (or clean) loss. Give the audit before hooks that change
    gradients. A loop other than `fit` is audited by a `Recorder`.

    Args:
        comparator: a network of the same architecture, W* its trained weights; of a stack, a stack.
        optimizer: what the run is meant to do: a class of `torch.optim` or a partial of it. None is
            plain gradient descent.
        projection: the set that the run is meant to project on; W* must lie in it.

    Example:
        from advlab.measure.audit import Audit
        from advlab.training import Project, fit
        audit = Audit(goal, projection=ball)
        fit(net, x, y, steps=100, lr=0.1, ball=cap, hooks=[audit, Project(ball)])
        print(audit.report())
    """

    def __init__(
        self,
        comparator: nn.Module,
        *,
        optimizer: OptimizerFactory | None = None,
        projection: Projection | None = None,
    ):
        self.comparator, self.optimizer, self.projection = comparator, optimizer, projection
        self._recorder: Recorder | None = None

    @contextmanager
    def during(self, run: Run) -> Iterator[None]:
        self._recorder = Recorder(
            run.model, self.comparator, optimizer=self.optimizer, projection=self.projection
        )
        # Watched during the steps alone: a checkpoint tells models apart by their hooks too.
        self._recorder.leave()
        try:
            yield
        finally:
            self._recorder.leave()
            self._recorder.forget()

    def before_step(self, run: Run) -> None:
        self._watching().watch()

    def after_gradient(self, run: Run, info: StepInfo) -> None:
        recorder, context = self._watching(), info.context
        recorder.leave()
        if info.last:
            recorder.arrive()
            return
        recorder.loss = context.loss
        recorder.step(
            context.attacked(), context.y, lr=context.lr, value=info.values, grads=info.grads
        )

    def settings(self) -> object:
        return {"optimizer": self.optimizer, "projection": self.projection}

    def state_dict(self) -> dict:
        return self._watching().state_dict()

    def load_state_dict(self, state: dict) -> None:
        self._watching().load_state_dict(state)

    def report(self) -> Report:
        return self._watching().report()

    def _watching(self) -> Recorder:
        if self._recorder is None:
            raise AdvlabError("a run of at least one step that this audit watched", "none")
        return self._recorder


def _in_words(optimizer: OptimizerFactory | None, projection: Projection | None) -> str:
    name = getattr(getattr(optimizer, "func", optimizer), "__name__", "the optimiser")
    step = "plain gradient descent" if optimizer is None else f"the declared {name}"
    return step if projection is None else f"{step} projected on {projection!r}"


def _check_alike(weights: Arrays, goal: Arrays) -> None:
    shapes = [{name: tuple(w.shape) for name, w in part.items()} for part in (weights, goal)]
    if shapes[0] != shapes[1]:
        raise AdvlabError(f"a comparator with the run's weights, {shapes[0]}", shapes[1])


def _value_and_slope(loss: PerExample, f: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Each example's loss and its gradient in the example's outputs."""
    with torch.enable_grad():
        leaf = f.clone().requires_grad_()
        value = loss(leaf, y)
        (slope,) = torch.autograd.grad(value.sum(), leaf)
    return value.detach(), slope
