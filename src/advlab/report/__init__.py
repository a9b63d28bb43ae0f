"""Tables in, one HTML page out. This room never imports torch, so a report opens at once."""

from .claims import Claims as Claims
from .result import Failure as Failure
from .result import Result as Result
from .rules import above as above
from .rules import below as below
from .rules import decreasing as decreasing
from .rules import every as every
from .rules import increasing as increasing
from .rules import sample as sample
from .rules import trend as trend
from .rules import undecide as undecide
from .rules import within as within
from .verdict import Outcome as Outcome
from .verdict import Verdict as Verdict
