"""Attacks: one algorithm per file, one interface, one registry."""

from ..core.registry import Registry
from ._engine.cascade import MemberResult as MemberResult
from ._engine.minimum_norm import Minimal as Minimal
from ._engine.minimum_norm import MinimumNorm as MinimumNorm
from .apgd import APGD as APGD
from .autoattack import AutoAttack as AutoAttack
from .base import Attack as Attack
from .base import Attacked as Attacked
from .base import BestSoFar as BestSoFar
from .base import Loss as Loss
from .baselines import Identity as Identity
from .baselines import Random as Random
from .bpda import BPDA as BPDA
from .carlini_wagner import CarliniWagner as CarliniWagner
from .coordinate import CoordinateAscent as CoordinateAscent
from .deepfool import DeepFool as DeepFool
from .ead import EAD as EAD
from .exact import Exact as Exact
from .fab import FAB as FAB
from .fake_signal import FakeSignal as FakeSignal
from .fgm import FGM as FGM
from .grid import Grid as Grid
from .gta import GTA as GTA
from .gta import SignalPatch as SignalPatch
from .hopskipjump import HopSkipJump as HopSkipJump
from .mim import MIM as MIM
from .non_adversarial import Anti as Anti
from .non_adversarial import Fixed as Fixed
from .non_adversarial import Switch as Switch
from .pgd import PGD as PGD
from .rays import RayS as RayS
from .smoothadv import SmoothPGD as SmoothPGD
from .spsa import SPSA as SPSA
from .square import Square as Square
from .surrogate import Surrogate as Surrogate
from .transfer import Transfer as Transfer

ATTACKS: Registry[type[Attack]] = Registry(
    "advlab.attacks",
    Attack,
    {
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
        "bpda": BPDA,
        "square": Square,
        "spsa": SPSA,
        "coordinate": CoordinateAscent,
        "hopskipjump": HopSkipJump,
        "rays": RayS,
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
    },
)
