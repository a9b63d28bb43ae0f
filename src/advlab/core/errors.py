"""The one error users see: what was expected, what came, what to do."""


class AdvlabError(ValueError):
    """A mistake that the reader of one line can put right; the CLI prints it and exits with 2.

    Args:
        expected: what was expected.
        came: what came instead, if that can be shown.
        advice: what to do.

    Example:
        from advlab.core.errors import AdvlabError
        raise AdvlabError("radius must be positive", -0.5, "0 means no attack: use Identity()")
    """

    def __init__(self, expected: str, came: object = None, advice: str = ""):
        parts = [expected.rstrip(".")]
        if came is not None:
            parts.append(f"got {came}")
        if advice:
            parts.append(advice.rstrip("."))
        super().__init__("; ".join(parts))

    def __reduce__(self):
        # Workers send errors between processes; the message is already whole.
        return (type(self), (str(self),))
