"""Attacks: one algorithm per file, one interface, one registry."""

from .base import Attack as Attack
from .base import Attacked as Attacked
from .base import Loss as Loss
from .exact import Exact as Exact
from .fake_signal import FakeSignal as FakeSignal
from .fgm import FGM as FGM
from .grid import Grid as Grid
from .gta import GTA as GTA
from .gta import SignalPatch as SignalPatch
from .maps import Anti as Anti
from .maps import Fixed as Fixed
from .maps import Switch as Switch
from .pgd import PGD as PGD
from .simple import Identity as Identity
from .simple import Random as Random
from .surrogate import Surrogate as Surrogate
from .transfer import Transfer as Transfer

ATTACKS: dict[str, type[Attack]] = {
    "identity": Identity,
    "random": Random,
    "fgm": FGM,
    "pgd": PGD,
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
