"""Names that were mistyped: which one was meant."""

from collections.abc import Iterable
from difflib import get_close_matches

from .errors import AdvlabError


def nearest(name: object, known: Iterable[str]) -> str:
    """Advice that names the known name nearest to a mistyped one; "" where none is near.

    Args:
        name: what came.
        known: the names there are.

    Example:
        from advlab.core.nearest import nearest
        nearest("resnet_9", ["resnet9", "lenet5"])  # "did you mean resnet9?"
    """
    found = get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f"did you mean {found[0]}?" if found else ""


def unknown(what: str, name: object, known: Iterable[str]) -> AdvlabError:
    """The error for a name that is not among the known ones.

    Args:
        what: what the names are of, with its article: "a network".
        name: what came.
        known: the names there are.
    """
    names = list(known)
    return AdvlabError(f"{what} among {', '.join(names)}", f"{name!r:.60}", nearest(name, names))
