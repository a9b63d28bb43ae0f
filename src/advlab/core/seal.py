"""JSON files that carry their own checksum, so that a changed bit anywhere in them is noticed."""

import re

from .files import sha256

_SEALED = re.compile(rb'(.*),\n "seal": "([0-9a-f]{64})"\n}\n', re.DOTALL)


class Unsealed(ValueError):
    """A text that carries no checksum: it was made before there were any, or it is damaged."""


def seal(text: str) -> str:
    """A JSON object with one more member at its end: the checksum of all bytes before that.

    Args:
        text: a JSON object with at least one member.

    Example:
        import json
        from pathlib import Path
        from advlab.core.files import write_text
        from advlab.core.seal import seal
        write_text(Path("error.json"), seal(json.dumps({"error": 0.1})))
    """
    body = text.rstrip().removesuffix("}").rstrip()
    return f'{body},\n "seal": "{sha256(body.encode())}"\n}}\n'


def unseal(data: bytes) -> bytes:
    """The JSON object that was sealed, without the checksum.

    Args:
        data: what a file holds.

    Raises:
        Unsealed: there is no checksum.
        ValueError: the checksum is that of another text.
    """
    found = _SEALED.fullmatch(data)
    if not found:
        raise Unsealed("no checksum (made before files had one, or damaged)")
    if sha256(found[1]) != found[2].decode():
        raise ValueError("not what was written")
    return found[1] + b"\n}"
