"""What figures call the attacks that networks are trained against."""

SHOWN_AS = {"identity": "clean", "fgm": "FGM", "pgd": "PGD", "anti": "anti-PGD", "star": "A*"}
"""By the names that settings have; others are words already."""
