"""Attacks: one algorithm per file, one interface, one registry."""

from .apgd import APGD as APGD
from .autoattack import AutoAttack as AutoAttack
from .autoattack import Stage as Stage
from .base import Attack as Attack
from .base import Attacked as Attacked
from .base import Loss as Loss
from .carlini_wagner import CarliniWagner as CarliniWagner
from .deepfool import DeepFool as DeepFool
from .ead import EAD as EAD
from .exact import Exact as Exact
from .fab import FAB as FAB
from .fake_signal import FakeSignal as FakeSignal
from .fgm import FGM as FGM
from .grid import Grid as Grid
from .gta import GTA as GTA
from .gta import SignalPatch as SignalPatch
from .maps import Anti as Anti
from .maps import Fixed as Fixed
from .maps import Switch as Switch
from .mim import MIM as MIM
from .minimum import Minimal as Minimal
from .minimum import MinimumNorm as MinimumNorm
from .pgd import PGD as PGD
from .simple import Identity as Identity
from .simple import Random as Random
from .smooth import SmoothPGD as SmoothPGD
from .spsa import SPSA as SPSA
from .square import Square as Square
from .surrogate import Surrogate as Surrogate
from .transfer import Transfer as Transfer

ATTACKS: dict[str, type[Attack]] = {
    "identity": Identity,
    "random": Random,
    "fgm": FGM,
    "pgd": PGD,
    "mim": MIM,
    "apgd": APGD,
    "smooth_pgd": SmoothPGD,
    "deepfool": DeepFool,
    "fab": FAB,
    "carlini_wagner": CarliniWagner,
    "ead": EAD,
    "square": Square,
    "spsa": SPSA,
    "autoattack": AutoAttack,
    "exact": Exact,
    "surrogate": Surrogate,
    "grid": Grid,
    "fixed": Fixed,
    "anti": Anti,
    "switch": Switch,
    "transfer": Transfer,
    "gta": GTA,
    "fake_signal": FakeSignal,
}
