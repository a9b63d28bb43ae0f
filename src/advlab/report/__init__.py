"""Tables in, one HTML page out. This room never imports torch, so a report opens at once."""

from .result import Failure as Failure
from .result import Result as Result
from .verdict import Outcome as Outcome
from .verdict import Verdict as Verdict
