"""What a broken law is reported as."""

import torch
from torch import Tensor

from ..core.errors import AdvlabError


class LawBroken(AdvlabError, AssertionError):
    """A part does not keep one of the laws of its kind: which law, whose part, with which numbers.

    Args:
        law: The law, as a sentence.
        part: Whose law it is.
        came: What was found instead.
    """

    def __init__(self, law: str, part: object = None, came: object = None):
        self.law = law
        if part is None and came is None:
            super().__init__(law)
        else:
            super().__init__(f"{part!r:.120} breaks a law: {law}", came)


class Laws:
    """The laws of one part, checked one by one.

    Args:
        part: What is under test.
    """

    def __init__(self, part: object):
        self.part = part

    def holds(self, law: str, condition: Tensor | bool, came: object = "") -> None:
        """Raise unless the condition holds, for every row where it is one flag per row."""
        flags = torch.as_tensor(condition)
        if bool(flags.all()):
            return
        where = ""
        if flags.ndim:
            rows = (~flags.reshape(len(flags), -1).all(1)).nonzero()[:, 0]
            where = f"{len(rows)} of {len(flags)} rows, the first is row {int(rows[0])}"
        raise LawBroken(law, self.part, "; ".join(str(one) for one in (where, came) if one) or "no")

    def at_least(self, law: str, high: Tensor, low: Tensor, slack: Tensor | float) -> None:
        """Raise unless high >= low - slack in every row; the numbers of the worst row are shown."""
        gap = (low - high - slack).nan_to_num(nan=torch.inf)
        worst = int(gap.argmax()) if gap.numel() else 0
        numbers = (high.flatten(), low.flatten()) if gap.numel() else ()
        shown = " against ".join(f"{float(one[worst]):.9g}" for one in numbers)
        self.holds(law, gap <= 0, shown)

    def close(self, law: str, found: Tensor, wanted: Tensor, slack: Tensor | float) -> None:
        """Raise unless both agree up to the slack (infinities by being equal)."""
        gap = torch.where(found == wanted, 0.0, (found - wanted).abs()) - slack
        gap = gap.nan_to_num(nan=torch.inf)
        worst = int(gap.flatten().argmax()) if gap.numel() else 0
        numbers = (found.flatten(), wanted.flatten()) if gap.numel() else ()
        shown = " against ".join(f"{float(one[worst]):.9g}" for one in numbers)
        self.holds(law, gap <= 0, shown)

    def same(self, law: str, found: Tensor, wanted: Tensor) -> None:
        """Raise unless both are the same bits."""
        alike = found.shape == wanted.shape and found.dtype == wanted.dtype
        came = "different numbers"
        if not alike:
            came = f"{tuple(found.shape)} {found.dtype}, not {tuple(wanted.shape)} {wanted.dtype}"
        self.holds(law, alike and torch.equal(found, wanted), came)
