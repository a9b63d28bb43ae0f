"""The settings of the scaling law: from a base, over a grid, over n ||mu||^2/d, and inside."""

import math
from collections.abc import Sequence

BASE = {"n": 80, "d": 3_200_000, "mu_norm": 20.0, "alpha": 0.5}
FACTORS = (0.5, 0.5**0.5, 2**0.5, 2.0)
"""S over that of the base."""
NEARER = (0.625**0.5, 1.25**0.5, 1.75**0.5, 2.5**0.5)
"""And at alpha = 2, around the threshold; a tenth of each n is a whole number of flips."""
ACROSS = 2.0
"""The radius at which n, d and ||mu|| cross the threshold."""
RADII = (1.0, 2.0, 3.0, 3.5, 4.0)
GRID = {"S": (2.0, 2.5, 3.0, 4.0), "alpha": (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)}
RATIOS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""n ||mu||^2/d up to where line (1) of Assumption 1 excludes it."""
RARE_FLIPS = (0.0, 0.0125)
"""No flipped label, and one of 80."""
LONG = {"n": 80, "mu_norm": 150.0, "alpha": 0.5, "draws": 6000}
"""Where that ratio is swept."""
ORDER = (0.005, 0.01, 0.02, 0.05)
"""And inside Assumption 1, where alpha = S/2 leaves no larger one."""
SHARES = (0.25, 0.5)
"""alpha over S there, beside alpha = 1/2."""
DEEP = {"width": 90, "steps": 30, "draws": 4000}
FAR = {"n": 80, "mu_norm": 730.0, **DEEP}
CENTRE = {"n": 160, "d": 2_000_000_000, "mu_norm": 500.0, "alpha": 25.0, **DEEP}
"""The base inside Assumption 1, S = 71: half and twice its n, twice and half its d, and ||mu|| of
2^(-1/4) and 2^(1/4) times its length all are inside at C = 10, with S = 50 and 100."""
DEEP_RADII = (4.0, 12.5, 37.5, 50.0)
"""Other radii at S = 100."""
SMOOTH, KINKED = "smoothed_leaky_relu", "relu"


def settings() -> list[dict]:
    """All of them, as arguments of a case."""
    both = [*_sweeps(FACTORS), *_grid(**GRID)]
    return [
        *({"activation": KINKED, **one, **_batches(one)} for one in both),
        *({"activation": SMOOTH, **one} for one in (*both, *_ratios(), *_order(), *_inside())),
    ]


def few() -> list[dict]:
    """Some of each route, for a quick look."""
    some = [one for one in _sweeps(FACTORS[3:]) if one["n"] < 100 and one["alpha"] != ACROSS]
    some += _grid((2.0, 4.0), (0.5, 1.0))
    some += [one for one in _ratios() if one["d"] in (_dim(0.1), _dim(1.0))]
    small = {"width": 20, "steps": 2, "draws": 100}
    return [
        {"activation": SMOOTH, **one, **small}
        for one in (*some, *_order()[3:5], *_inside()[:3])
        if one.get("steps") != 1
    ]


def _sweeps(factors: Sequence[float]) -> list[dict]:
    """The base, and S moved by n, d and ||mu||: at alpha = 1/2 and 2, and to 4 at each alpha."""
    places = [
        *((f, BASE["alpha"]) for f in factors),
        *((f, ACROSS) for f in NEARER),
        *((2.0, alpha) for alpha in RADII),
    ]
    moved = [
        {**BASE, **one, "alpha": alpha}
        for f, alpha in places
        for one in _moved(BASE, f, "n", "d", "mu")
    ]
    return [{**BASE, "route": "base"}, *moved, {**BASE, "route": "alpha", "alpha": BASE["mu_norm"]}]


def _moved(base: dict, f: float, *routes: str) -> list[dict]:
    """f times its S, by n, by d and by ||mu||."""
    changed = (
        {"n": round(base["n"] * f**2)},
        {"d": round(base["d"] / f**2)},
        {"mu_norm": base["mu_norm"] * f**0.5},
    )
    return [{"route": route, **one} for route, one in zip(routes, changed, strict=True)]


def _grid(S: Sequence[float], alpha: Sequence[float]) -> list[dict]:
    """Each S, reached by d, with each alpha."""
    fixed = BASE["n"] * BASE["mu_norm"] ** 4
    return [
        {**BASE, "route": "grid", "d": round(fixed / one**2), "alpha": radius}
        for one in S
        for radius in alpha
    ]


def _batches(one: dict) -> dict:
    """Of networks with kinks, where errors are rare: few points carry the weight of them all."""
    S = math.sqrt(one["n"] / one["d"]) * one["mu_norm"] ** 2
    judged = one["alpha"] == BASE["alpha"] or one["route"] == "grid"
    far = S > 2.8 and one["route"] != "alpha"
    return {
        "draws": 4000,
        "plain_batches": 5 if far and judged else 1,
        "batches": 5 if far and S - one["alpha"] > 2 else 1,
    }


def _dim(ratio: float) -> int:
    return round(LONG["n"] * LONG["mu_norm"] ** 2 / ratio)


def _ratios() -> list[dict]:
    """The ratio with a tenth of the labels flipped, with fewer, and after one step."""
    places = [
        *((ratio, {}) for ratio in RATIOS),
        *((ratio, {"beta": beta}) for beta in RARE_FLIPS for ratio in RATIOS if ratio >= 1),
        (RATIOS[-1], {"steps": 1}),
    ]
    return [{"route": "ratio", **LONG, "d": _dim(ratio), **more} for ratio, more in places]


def _order() -> list[dict]:
    n, mu = FAR["n"], FAR["mu_norm"]
    # The smallest radius has the rarest errors.
    radii = [(0.5, 0.0, {"draws": 10_000}), *((0.0, share, {}) for share in SHARES)]
    return [
        {"route": "order", **FAR, "d": round(n * mu**2 / ratio), **more,
         "alpha": fixed + share * math.sqrt(ratio) * mu}
        for ratio in ORDER
        for fixed, share, more in radii
    ]  # fmt: skip


def _inside() -> list[dict]:
    moved = [
        {**CENTRE, **one}
        for f in (0.5**0.5, 2**0.5)
        for one in _moved(CENTRE, f, "inside_n", "inside_d", "inside_mu")
    ]
    near = {**CENTRE, "d": CENTRE["d"] // 2, "route": "inside_alpha"}
    radii = [{**near, "alpha": alpha} for alpha in DEEP_RADII]
    return [{**CENTRE, "route": "inside"}, *moved, *radii]
