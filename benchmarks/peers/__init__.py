"""advlab beside the libraries its users would otherwise pick; README.md says how to get them."""

from importlib import import_module
from importlib.util import find_spec

NEEDED = ("foolbox", "art", "cleverhans", "torchattacks", "pyautoattack")


def main() -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        print(f"peers are left out: no {', '.join(missing)} (see benchmarks/peers/README.md)")
        return
    for part in ("networks", "probes", "pgd", "autoattack"):
        import_module(f".{part}", __name__).main()
