"""Laws every certificate obeys; more about ours, on networks of every kind, in tests/certify."""

import pytest

from advlab.certify import CERTIFICATES
from advlab.testing import check_certificate


@pytest.mark.parametrize("name", [name for name in CERTIFICATES if name != "smoothing"])
def test_every_certificate_keeps_the_laws(name):
    check_certificate(CERTIFICATES[name]())
