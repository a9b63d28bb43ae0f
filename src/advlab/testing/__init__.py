"""Laws for parts of your own: the same that advlab's registries are held to.

Each check raises `LawBroken`, an AssertionError in one line that names the law and the numbers:

>>> def test_my_attack():
...     check_attack(MyAttack(steps=5))
"""

from .attacks import check_attack as check_attack
from .certificates import check_certificate as check_certificate
from .data import check_data as check_data
from .law import LawBroken as LawBroken
from .threats import check_threat as check_threat
