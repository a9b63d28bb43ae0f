"""AutoAttack: an ensemble without knobs, each member only on what the others left."""

from typing import Any, Literal

from pydantic import PositiveInt

from ..core.inputs import Given, TensorLike
from ..core.randomness import Rng
from ..threats import Threat
from ._engine.cascade import Cascade, MemberResult, mean_value
from ._engine.objective import Objective
from ._engine.random_models import DRAWS
from .apgd import APGD
from .base import Attack, Attacked, BestSoFar, Loss, checked_call, explained, in_full_precision
from .fab import FAB
from .square import Square

TARGETS = 9
"""As published."""


class AutoAttack(Attack):
    """The ensembles of Croce & Hein 2020, for any number of classes from two up.

    standard  APGD on cross entropy, APGD on the targeted DLR, FAB targeted, Square
    plus      APGD on cross entropy and DLR with 5 restarts, FAB with 5, Square, the targeted two
    rand      APGD on cross entropy and DLR, gradients averaged over 20 draws of a random model

    Members run as a cascade, the same that `advlab.evaluate` runs: rows leave once their margin is
    not below zero (a tie is an error), those wrong at the clean input at once, so each member works
    on what the cheaper ones left. Targets are the 9 likeliest other classes or all there are; of
    two classes a target says nothing. The answer is the largest margin found: hand it the margin as
    loss to read off what was broken. The share of broken rows is a LOWER bound of the robust error.
    Losses without classes meet APGD and Square on themselves. Stacks of replicates keep all rows.
    What `rand` finds is judged by draws that had no part in choosing it; its losses are means.

    Args:
        version: which of the three ensembles.
        steps: steps of each APGD and FAB run.
        queries: points that Square tries per example.

    Example:
        from advlab.attacks import AutoAttack
        from advlab.core.randomness import generator
        from advlab.losses import ModelLoss, is_error, margin
        loss = ModelLoss(model, y, margin)
        found, results = AutoAttack().run(loss, x, ball, rng=generator("mine"))
        robust_error = is_error(found.loss).double().mean()
    """

    version: Literal["standard", "plus", "rand"] = "standard"
    steps: PositiveInt = 100
    queries: PositiveInt = 5000

    def __init__(self, version: str = "standard", **settings: Any):
        super().__init__(**{"version": version, **settings})

    def run(
        self, loss: Given[Loss], x: Given[TensorLike], ball: Given[Threat], *, rng: Given[Rng | int]
    ) -> tuple[Attacked, list[MemberResult]]:
        """What a call returns, and the account of each member.

        Args:
            loss: the loss of each input, as a rule `ModelLoss(model, y, margin)`.
            x: the clean inputs, shape (batch, ...).
            ball: the threat set around each input.
            rng: one generator, or one per replicate when the rows are a stack of replicates.

        Returns:
            The worst inputs with their losses, and one `MemberResult` per member in the order in
            which they ran; the first, "clean", counts the rows that were wrong from the start.
        """
        loss, x, rng = checked_call(loss, x, ball, rng)
        with in_full_precision(loss) as loss, explained(best := BestSoFar(loss, x)):
            results = self._cascade(best, ball, rng)
        return best.worst, results

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        self._cascade(best, threat, rng)

    def members(self) -> dict[str, Attack]:
        """The attacks of this version by name, in their order."""

        def apgd(climb: Objective, **more: Any) -> APGD:
            return APGD(steps=self.steps, climb=climb, early_exit=True, **more)

        targeted = apgd("dlr", target="most_likely", classes=TARGETS)
        fab = FAB(steps=self.steps, targets=TARGETS)
        square = Square(queries=self.queries)
        if self.version == "rand":
            return {
                "APGD cross entropy": apgd("cross_entropy", draws=DRAWS),
                "APGD DLR": apgd("dlr", draws=DRAWS),
            }
        if self.version == "standard":
            return {
                "APGD cross entropy": apgd("cross_entropy"),
                "APGD targeted DLR": targeted,
                "FAB targeted": fab,
                "Square": square,
            }
        return {
            "APGD cross entropy": apgd("cross_entropy", restarts=5),
            "APGD DLR": apgd("dlr", restarts=5),
            "FAB": FAB(steps=self.steps, restarts=5),
            "Square": square,
            "APGD targeted DLR": targeted,
            "FAB targeted": fab,
        }

    def _cascade(self, best: BestSoFar, threat: Threat, rng: Rng) -> list[MemberResult]:
        """Run the members, and tell the best what they found by the loss that it was given."""
        draws = DRAWS if self.version == "rand" else 1
        cascade = Cascade(best.loss, best.x, threat, rng, draws)
        without_classes = {"APGD": APGD(steps=self.steps), "Square": Square(queries=self.queries)}
        for name, attack in (self.members() if cascade.classes else without_classes).items():
            cascade.run_member(name, attack)
        cascade.finish()
        best.forwards += sum(result.forwards for result in cascade.results)
        best.backwards += sum(result.backwards for result in cascade.results)
        if cascade.loss is best.loss:
            best.note(best.x, cascade.clean)
            best.note(cascade.points, cascade.worst)
            return cascade.results
        for point in (best.x, cascade.points):
            best.note(point, best.checked(mean_value(best.loss, point, draws)))
            best.forwards += draws * len(point)
        return cascade.results
