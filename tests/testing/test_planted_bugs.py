"""The checks of `advlab.testing` find what they are there to find: a planted bug for each law."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from advlab.attacks import PGD, Attack, Attacked
from advlab.certify import Certificate
from advlab.core.errors import AdvlabError
from advlab.data import DataModel
from advlab.losses import ModelLoss, margin
from advlab.testing import LawBroken, check_attack, check_certificate, check_data, check_threat
from advlab.threats import Ball, OneHot

CENTER = torch.rand(4, 3, generator=torch.Generator().manual_seed(0)).double()


class ProjectsOutside(Ball):
    def project(self, point, center):
        return super().project(point, center) + 0.1


class ProjectsAllTheWay(Ball):
    """Points outside go to the center, not to the rim."""

    def project(self, point, center):
        inside = self.contains(point, center)[:, None]
        return torch.where(inside, point, center)


class EditsThePoint(Ball):
    def project(self, point, center):
        return super().project(point.mul_(1.0).add_(1e-3), center)


class MaximisesHalfWay(Ball):
    def maximiser(self, grad, center):
        return center + 0.5 * (super().maximiser(grad, center) - center)


class DrawsOutside(Ball):
    def sample(self, center, *, rng):
        return center + 3 * (super().sample(center, rng=rng) - center)


class DrawsGlobally(Ball):
    def sample(self, center, *, rng):
        return self.project(center + 0.1 * torch.randn_like(center), center)


class DrawsForAllReplicates(Ball):
    def sample(self, center, *, rng):
        one = rng if isinstance(rng, torch.Generator) else rng[-1]
        return super().sample(center, rng=one)


class ContainsEverything(Ball):
    def contains(self, point, center, slack=None):
        return torch.ones(len(point), dtype=torch.bool)


class SupportTooSmall(Ball):
    def support(self, direction, center):
        return super().support(direction, center) - 0.1


class IntervalTooNarrow(Ball):
    def interval(self, center):
        return center - 0.5 * self.radius, center + 0.5 * self.radius

    def support(self, direction, center):
        return super().support(direction, center)


class DescendsByGradient(Ball):
    def steepest(self, grad):
        return -super().steepest(grad)

    def maximiser(self, grad, center):
        return Ball(self.norm, self.radius).maximiser(grad, center)


class MixesRows(Ball):
    """So little that values are right to rounding; points are not."""

    def maximiser(self, grad, center):
        return super().maximiser(grad + 1e-6 * grad.roll(1, 0), center)


class LosesPrecision(Ball):
    def project(self, point, center):
        return super().project(point, center).float()


class SwapsTheWrongGroup(OneHot):
    def project(self, point, center):
        return super().project(-point, center)


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (ProjectsOutside, "projections are in the set|stays where it is"),
        (ProjectsAllTheWay, "nearer than the projection"),
        (EditsThePoint, "leaves points and centers"),
        (MaximisesHalfWay, "larger than the maximiser"),
        (DrawsOutside, "are in the set"),
        (DrawsGlobally, "generator"),
        (DrawsForAllReplicates, "own generator only"),
        (ContainsEverything, "contains refuses"),
        (SupportTooSmall, "support function is attained"),
        (IntervalTooNarrow, "interval"),
        (DescendsByGradient, "steepest does not go down"),
        (MixesRows, "other rows"),
        (LosesPrecision, "shape and dtype"),
    ],
)
def test_a_broken_ball_is_found(kind, law):
    with pytest.raises(LawBroken, match=f"{kind.__name__}.* breaks a law: .*({law})") as found:
        check_threat(kind("l2", 0.3), CENTER)
    assert "\n" not in str(found.value)
    assert isinstance(found.value, AssertionError)
    assert isinstance(found.value, AdvlabError)


def test_a_discrete_set_is_held_against_brute_force():
    center = torch.eye(4).double()[:3]
    check_threat(OneHot([[0, 1], [2, 3]]), torch.tensor([[1.0, 0, 0, 1], [0, 1, 1, 0]]).double())
    with pytest.raises(LawBroken):
        check_threat(SwapsTheWrongGroup([[0, 1, 2, 3]]), center)


class Own(Attack):
    """Answers a call itself, without the base class that keeps most laws."""

    def search(self, best, threat, rng):
        raise NotImplementedError


class Outside(Own):
    def __call__(self, loss, x, ball, *, rng):
        moved = x + 2 * ball.radius
        return Attacked(moved, loss(moved).detach())


class Lies(Own):
    def __call__(self, loss, x, ball, *, rng):
        return Attacked(x, loss(x).detach() + 1.0)


class LastPoint(Own):
    def __call__(self, loss, x, ball, *, rng):
        points = [ball.sample(x, rng=rng) for _ in range(5)]
        values = [loss(point).detach() for point in points]
        return Attacked(points[-1], values[-1])


class FirstOrClean(Own):
    """Never below the clean loss, yet it forgets all but its first point."""

    def __call__(self, loss, x, ball, *, rng):
        points = [ball.sample(x, rng=rng) for _ in range(5)]
        values = [loss(point).detach() for point in points]
        clean = loss(x).detach()
        keep = (values[0] > clean)[:, None]
        return Attacked(torch.where(keep, points[0], x), torch.maximum(values[0], clean))


class MovesAtRadiusZero(Own):
    """Rounding, in a loss that is flat there: nothing else would notice."""

    ascends = False

    def __call__(self, loss, x, ball, *, rng):
        moved = ball.project(x, x) * (1 + 2e-16) if ball.radius else x * (1 + 4e-16)
        return Attacked(moved, loss(moved).detach())


class GlobalDraws(Attack):
    def search(self, best, threat, rng):
        best.value(threat.project(best.x + torch.randn_like(best.x), best.x))


class SharedDraw(Attack):
    """One draw of the first generator for all rows."""

    def search(self, best, threat, rng):
        one = rng if isinstance(rng, torch.Generator) else rng[0]
        best.value(threat.sample(best.x, rng=one))


class LeavesGradients(PGD):
    def search(self, best, threat, rng):
        leaf = best.x.clone().requires_grad_()
        best.loss(leaf).sum().backward()
        super().search(best, threat, rng)


class LeavesEvalMode(PGD):
    def __call__(self, loss, x, threat, *, rng):
        if isinstance(getattr(loss, "model", None), torch.nn.Module):
            loss.model.eval()
        return super().__call__(loss, x, threat, rng=rng)


class ChangesWeights(PGD):
    def search(self, best, threat, rng):
        for weight in getattr(best.loss.model, "parameters", list)():
            weight.data += 1e-9
        super().search(best, threat, rng)


class EditsInputs(PGD):
    def __call__(self, loss, x, ball, *, rng):
        found = super().__call__(loss, x, ball, rng=rng)
        x += 1e-3 * (ball.radius == 0.5)
        return found


class NotANumberIsRobust(Own):
    def __call__(self, loss, x, ball, *, rng):
        point = ball.sample(x, rng=rng)
        value, clean = loss(point).detach(), loss(x).detach()
        better = ~(value <= clean)
        return Attacked(torch.where(better[:, None], point, x), torch.where(better, value, clean))


class WidensTypes(PGD):
    def __call__(self, loss, x, ball, *, rng):
        found = super().__call__(loss, x, ball, rng=rng)
        return Attacked(found.x, found.loss.double())


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (Outside, "stays in its threat set"),
        (Lies, "loss returned is the loss at the point"),
        (LastPoint, "below its clean loss|worst point"),
        (FirstOrClean, "worst point that it saw"),
        (MovesAtRadiusZero, "at radius 0"),
        (GlobalDraws, "global generator|same generator"),
        (SharedDraw, "generator of its own"),
        (LeavesGradients, "leaves gradients"),
        (LeavesEvalMode, "train and eval modes"),
        (ChangesWeights, "parameters and buffers|loss returned|below its clean|same points"),
        (EditsInputs, "leaves the inputs|stays in its|order of rows"),
        (NotANumberIsRobust, "worst point|not-a-number|not a number"),
        (WidensTypes, "float32 in, float32 out"),
    ],
)
def test_a_broken_attack_is_found(kind, law):
    with pytest.raises(LawBroken, match=f"{kind.__name__}.* breaks a law: .*({law})") as found:
        check_attack(kind())
    assert "\n" not in str(found.value)


class Drawn(NamedTuple):
    x: Tensor
    y: Tensor


class Law(DataModel):
    def sample(self, rng, n=None):
        x = torch.randn(n or self.n, 2, generator=rng)
        return Drawn(x, x[:, 0].sign())


class Unseeded(Law):
    def sample(self, rng, n=None):
        return super().sample(torch.default_generator, n)


class Constant(Law):
    def sample(self, rng, n=None):
        return super().sample(torch.Generator().manual_seed(0), n)


class OwnSize(Law):
    def sample(self, rng, n=None):
        return super().sample(rng, self.n)


class Infinite(Law):
    def sample(self, rng, n=None):
        x, y = super().sample(rng, n)
        return Drawn(x / 0, y)


class Unnamed(Law):
    def sample(self, rng, n=None):
        return tuple(super().sample(rng, n))


class OtherStack(Law):
    def sample_stack(self, generators, n=None):
        return super().sample_stack(list(reversed(generators)), n)


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (Unseeded, "global generator"),
        (Constant, "another generator"),
        (OwnSize, "n may be asked for"),
        (Infinite, "finite"),
        (Unnamed, "named tuple"),
        (OtherStack, "it has alone"),
    ],
)
def test_a_broken_data_model_is_found(kind, law):
    with pytest.raises(LawBroken, match=law):
        check_data(kind(n=4))


class Clean(Certificate):
    """Not a bound at all: the margin of the clean input."""

    name = "clean"

    def bound(self, graph, sets, y):
        raise NotImplementedError

    def refuses(self, model, ball, x=None):
        return None if ball.states_support else "no support function"

    def worst_margin(self, model, x, y, ball):
        with torch.no_grad():
            return ModelLoss(model, y, margin)(x)


class BelowClean(Clean):
    def worst_margin(self, model, x, y, ball):
        return super().worst_margin(model, x, y, ball) - 0.1


class Vast(Clean):
    """True and of no use: a bound that nothing passes."""

    def worst_margin(self, model, x, y, ball):
        return super().worst_margin(model, x, y, ball).nan_to_num(torch.inf) + 1e3


class AcceptsAll(Vast):
    def refuses(self, model, ball, x=None):
        return None


class RefusesAll(Vast):
    def refuses(self, model, ball, x=None):
        return "not today"


class ByCompany(Vast):
    def worst_margin(self, model, x, y, ball):
        return super().worst_margin(model, x, y, ball) + len(x)


class EndsInEvalMode(Vast):
    def worst_margin(self, model, x, y, ball):
        return super().worst_margin(model.eval(), x, y, ball)


class CertifiesNothingness(Vast):
    def worst_margin(self, model, x, y, ball):
        found = super().worst_margin(model, x, y, ball)
        return torch.where(found.isinf(), -1.0, found)


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (Clean, "no (draw|attack) passes a bound"),
        (BelowClean, "at least the clean margin"),
        (AcceptsAll, "does not state its support function is refused"),
        (RefusesAll, "refusals only"),
        (ByCompany, "other rows"),
        (EndsInEvalMode, "train and eval modes"),
        (CertifiesNothingness, "not a number certifies nothing"),
    ],
)
def test_a_broken_certificate_is_found(kind, law):
    with pytest.raises(LawBroken, match=law):
        check_certificate(kind())


def test_what_is_right_passes_and_what_is_no_such_part_is_refused():
    check_threat(Ball("l2", 0.3), CENTER)
    check_data(Law(n=4))
    check_certificate(Vast())
    for check, words in (
        (check_attack, "an attack"),
        (check_data, "a data model"),
        (check_certificate, "a certificate"),
        (lambda one: check_threat(one, CENTER), "a threat set"),
    ):
        with pytest.raises(AdvlabError, match=words):
            check("mnist")
