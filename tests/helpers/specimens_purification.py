"""Specimens of purification: tables in which the claims hold, and what must break them."""

from collections.abc import Callable, Mapping

import numpy as np
import polars as pl
from nulls import Null, Specimen
from specimens_purification_causes import SPECIMENS as CAUSES
from specimens_purification_images import SPECIMENS as IMAGES
from specimens_purification_lemmas import SPECIMENS as LEMMAS
from specimens_purification_others import SPECIMENS as OTHERS

from advlab.papers.purification.experiments._parts.clean_then_adversarial_claims import RULES

SEEDS, PRESETS = 5, ("random", "wide_margin")
NETS = ("clean", "adversarial", "control", "FGM-trained")
CLEAN = {
    "clean": 0.999, "random": 0.998, "universal": 0.1, "fgm": 0.1, "worst": 0.09,
    "unfiltered": 0.999, "dense over top": 9.0, "cosine": 0.3, "top energy": 0.55,
    "covered": 215.0, "pairs below": 0.9, "G2": 0.08, "participation": 200.0,
    "linearity gap": 5.0, "FGM floor": 0.0, "disorder": 0.0,
}  # fmt: skip
ROBUST = {
    "clean": 0.98, "random": 0.98, "universal": 0.88, "fgm": 0.8, "worst": 0.75,
    "unfiltered": 0.98, "dense over top": 2.0, "cosine": 0.1, "top energy": 0.58,
    "covered": 216.0, "pairs below": 0.98, "G2": 0.01, "participation": 20.0,
    "linearity gap": 0.5, "FGM floor": 0.6, "disorder": 0.0,
}  # fmt: skip
MOVED = {
    "theta(w, w')": 0.9, "theta(w, w') above 0.8": 0.92, "theta(w, w'), all": 0.94, "G7": 0.4,
    "G7 of directions": 0.2, "change on Mw*": 0.38, "recruited": 0.01, "lost": 0.01, "turned": 0.02,
}  # fmt: skip
STILL = {
    "theta(w, w')": 0.998, "theta(w, w') above 0.8": 1.0, "theta(w, w'), all": 0.999, "G7": 0.02,
    "G7 of directions": 0.004, "change on Mw*": 0.36, "recruited": 0.0, "lost": 0.0, "turned": 0.03,
}  # fmt: skip
TRUE = {
    **{f"clean: {name}": value for name, value in CLEAN.items()},
    **{f"control: {name}": value for name, value in CLEAN.items()},
    **{f"adversarial: {name}": value for name, value in ROBUST.items()},
    **{f"FGM-trained: {name}": value for name, value in ROBUST.items()},
    **MOVED,
    **{f"control: {name}": value for name, value in STILL.items()},
    "oracle: worst": 0.8, "oracle: disorder": 0.0, "clean: universal at 1.5 tau": 0.01,
    "theta(w0, w')": 0.3, "theta(w0, w) below 0.2": 0.8, "theta(w0, w) below 0.2, all": 0.8,
    "theta(w0, w') below 0.2": 0.8, "G1": 0.1, "transfer: own": 0.1, "transfer: other": 0.11,
    "transfer: adversarial": 0.87, "growth: every": 0.99, "growth: share": 0.99,
    "growth: least": 0.0, "recruits: with": 0.75, "recruits: without": 0.74,
    "recruits: clean": 0.09,
}  # fmt: skip
CHANCE = {
    **dict.fromkeys(TRUE, 0.5),
    **{name: 0.05 for name in TRUE if "theta" in name or "top energy" in name or "Mw*" in name},
    **{name: 0.15 for name in TRUE if "covered" in name or "cosine" in name or "dense" in name},
    **{name: -0.5 for name in TRUE if "least" in name},
    "G7": 2.0, "control: G7": 2.0, "clean: G2": 0.5,
}  # fmt: skip


def noisy(values: Mapping[str, float], seeds: int = SEEDS) -> dict[str, np.ndarray]:
    """One value per seed, a little apart; exact counts stay exact."""
    spread = 1e-4 * np.random.default_rng(0).standard_normal(seeds)
    return {
        name: np.full(seeds, value) if "disorder" in name else value * (1 + spread)
        for name, value in values.items()
    }


def ended(changes: Mapping[str, float] | None = None) -> pl.DataFrame:
    """What would be measured if all claims were true, but for the changes, for both presets."""
    row = noisy({**TRUE, **(changes or {})})
    rows = pl.DataFrame({"seed": range(SEEDS), "part": "end", **row})
    return pl.concat(rows.with_columns(preset=pl.lit(name)) for name in PRESETS)


def labels(*names: str) -> tuple[str, ...]:
    """The labels of these rules, for both presets."""
    return tuple(f"{name}/{preset}" for name in names for preset in PRESETS)


def clean_then_adversarial() -> Specimen:
    nothing = {f"adversarial: {name}": value for name, value in CLEAN.items()}
    nothing |= {f"FGM-trained: {name}": value for name, value in CLEAN.items()} | STILL
    nothing |= {"transfer: adversarial": 0.1, "recruits: with": 0.09, "recruits: without": 0.09}
    treated = ("5b", "5c", "5d", "6", "7a", "7b", "8", "9a", "9b", "9c", "10", "13c", "14b", "15",
               "27", "28a", "28b", "29a", "29b", "29c", "29d", "29e")  # fmt: skip
    start = {"clean: top energy": 0.05, "clean: pairs below": 1.0, "clean: G2": 0.005}
    overfit = {"FGM-trained: fgm": 0.83, "FGM-trained: worst": 0.36}
    found = {"adversarial: covered": 254.0, "recruited": 0.25, "lost": 0.1, "turned": 0.22}
    return Specimen(
        table=ended(),
        measured=tuple(TRUE),
        chance=CHANCE,
        controls={
            "as many more clean steps": Null(ended(nothing), labels(*treated)),
            "networks at their start": Null(
                ended(start), labels("10b", "10c", "10d", "11a", "11b")
            ),
            "training against FGM that overfits it": Null(ended(overfit), labels("5d", "27")),
            "new features": Null(ended(found), labels("29a", "29b", "29c", "29d")),
            "recruits that do the work": Null(ended({"recruits: without": 0.3}), labels("29e")),
            "filtered data only": Null(
                ended({"clean: unfiltered": 0.91, "adversarial: unfiltered": 0.84}),
                labels("1u", "5u"),
            ),
        },
        bugs={
            "an attack that keeps a worse iterate": Null(
                ended({"adversarial: disorder": 1.0}), labels("24")
            ),
            "a gradient of the wrong sign": Null(ended({"growth: least": -1.0}), labels("20i")),
        },
        reported=labels(*(name for name, rule in RULES.items() if rule.decided == "trend")),
    )


SPECIMENS: dict[str, Callable[[], Specimen]] = {
    "purification/clean_then_adversarial": clean_then_adversarial,
    **OTHERS,
    **CAUSES,
    **IMAGES,
    **LEMMAS,
}
