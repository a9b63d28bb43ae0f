"""Tables in, one HTML page out. This room never imports torch, so a report opens at once."""

from .claims import Claims as Claims
from .result import Failure as Failure
from .result import Maker as Maker
from .result import Result as Result
from .rules import sample as sample
from .rules import undecide as undecide
from .verdict import Outcome as Outcome
from .verdict import Verdict as Verdict
