"""The page of one evaluation, and the pictures in it."""

import base64
import struct
import zlib

import numpy as np
import pytest

from advlab.report.evaluation import render_evaluation
from advlab.report.pictures import is_image, picture, png


def about(**changes) -> dict:
    return {
        "model": "net<script>",
        "data": "mnist",
        "n": 10,
        "threat_words": "linf perturbations up to 8/255",
        "threat": "Ball",
        "attack": "standard",
        "seed": 0,
        "batch": 10,
        "clean_error": 0.1,
        "robust_error": 0.3,
        "certified_error": 0.6,
        "intervals": {
            "clean_error": (0.0, 0.4),
            "robust_error": (0.1, 0.6),
            "certified_error": (0.3, 0.9),
        },
        "check_warnings": [{"kind": "random", "text": "the model is <random>"}],
        "checks": True,
        "members": [
            {
                "name": "APGD",
                "rows": 9,
                "broken": 2,
                "seconds": 1.5,
                "forwards": 90,
                "backwards": 9,
            }
        ],
        "certificates": {"ibp": 4},
        "certificates_tried": {"ibp": [10, 4, 0.5]},
        "budget": None,
        "reading": "",
        "skipped": {},
        "refused": {"linear": "not linear"},
        "curves": [{"over": "eps", "rows": 8, "values": [0.1, 0.2], "errors": [0.2, 0.5]}],
        "box": (0.0, 1.0),
        "seconds": 3.0,
        "finished": "2026-01-01",
        "versions": {"torch": "2"},
    } | changes


def example(shape: tuple[int, ...]) -> dict:
    rng = np.random.default_rng(0)
    before = rng.random(shape)
    words = {"row": 3, "label": 1, "answer": 1, "wrong_answer": 2, "margin": 0.5}
    return {**words, "original": before, "perturbed": before + 0.01 * rng.normal(size=shape)}


def test_the_page_says_the_bracket_the_warnings_and_the_work():
    page = render_evaluation(about(), [example((1, 8, 8))])
    for part in ("30.0&nbsp;%", "60.0&nbsp;%", "1 warning", "&lt;random&gt;", "APGD", "proved 4",
                 "not linear", "Row 3: 1 becomes 2", "net&lt;script&gt;"):  # fmt: skip
        assert part in page
    assert page.count("data:image/png;base64,") == 3
    assert "net<script>" not in page


def test_without_certificate_the_upper_end_is_one():
    nothing = {"check_warnings": [], "certificates": {}, "certificates_tried": {}}
    page = render_evaluation(about(certified_error=None, **nothing), [])
    assert "100&nbsp;%" in page
    assert "No certificate knows this model" in page
    assert "No warnings" in page
    assert "data:image/png" not in page


def test_flat_inputs_are_drawn_as_lines():
    page = render_evaluation(about(), [example((20,))])
    assert "data:image/png" not in page
    assert "Row 3: 1 becomes 2" in page
    assert "<noscript><svg" in page
    assert ">perturbed</text>" in page


@pytest.mark.parametrize(
    ("shape", "image"),
    [((1, 28, 28), True), ((3, 32, 32), True), ((32, 32, 3), True), ((9, 9), True),
     ((100,), False), ((2, 8, 8), False), ((3, 2, 2), False)],
)  # fmt: skip
def test_what_is_an_image(shape, image):
    assert is_image(shape) == image


@pytest.mark.parametrize("colours", [1, 3])
def test_a_png_holds_the_pixels(colours):
    """Read back by the format's own rules: signature, sizes, check sums, lines with filter 0."""
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, colours), dtype=np.uint8)
    data = png(pixels)
    assert data[:8] == bytes([137, 80, 78, 71, 13, 10, 26, 10])
    chunks, place = {}, 8
    while place < len(data):
        (size,) = struct.unpack(">I", data[place : place + 4])
        name, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + size]
        (check,) = struct.unpack(">I", data[place + 8 + size : place + 12 + size])
        assert check == zlib.crc32(name + body)
        chunks[name], place = body, place + 12 + size
    assert struct.unpack(">IIBB", chunks[b"IHDR"][:10]) == (7, 5, 8, 0 if colours == 1 else 2)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(5, -1)
    assert (lines[:, 0] == 0).all()
    assert (lines[:, 1:].reshape(pixels.shape) == pixels).all()


def test_black_is_low_and_white_is_high():
    address = picture(np.array([[-1.0, 1.0], [0.0, 5.0]]), -1.0, 1.0)
    data = base64.b64decode(address.partition(",")[2])
    begin = data.index(b"IDAT") + 4
    lines = zlib.decompress(
        data[begin : begin + struct.unpack(">I", data[begin - 8 : begin - 4])[0]]
    )
    assert lines == bytes([0, 0, 255, 0, 128, 255])
