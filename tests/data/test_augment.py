"""Augmentation against plain loops over images, and its laws: seeds, layouts, types, devices."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.data import AUGMENTATIONS, Augmentations, Crop, Cutout, Flip, augmentation
from advlab.data.augment import whole_numbers

shapes = st.tuples(st.integers(1, 6), st.integers(1, 3), st.integers(1, 9), st.integers(1, 9))
dtypes = st.sampled_from([torch.float32, torch.float64, torch.uint8])
augmentations = st.one_of(
    st.builds(Crop, padding=st.integers(1, 5)),
    st.just(Flip()),
    st.builds(Cutout, size=st.integers(1, 9), fill=st.sampled_from([0.0, 1.0])),
    st.just(AUGMENTATIONS["crop_flip_cutout"]),
)
law = settings(max_examples=25, deadline=None)


def images(shape, dtype, name="images"):
    """Every pixel another number, as far as bytes go."""
    x = torch.randint(1, 256, shape, generator=generator(name))
    return x.to(dtype) / (1 if dtype == torch.uint8 else 255)


@law
@given(shape=shapes, dtype=dtypes, padding=st.integers(1, 5), seed=st.integers(0, 99))
def test_each_crop_is_the_window_that_a_loop_cuts_out(shape, dtype, padding, seed):
    x = images(shape, dtype) if dtype != torch.uint8 else images(shape, dtype).to(torch.uint8)
    out = Crop(padding=padding)(x, rng=generator("crop", seed))
    rng = generator("crop", seed)
    top, left = (whole_numbers(x, 2 * padding + 1, rng) for _ in range(2))
    height, width = shape[2:]
    for image, changed, i, j in zip(x, out, top.tolist(), left.tolist(), strict=True):
        padded = F.pad(image, [padding] * 4)
        assert torch.equal(changed, padded[:, i : i + height, j : j + width])


@law
@given(shape=shapes, seed=st.integers(0, 99))
def test_each_image_is_flipped_or_not_and_two_flips_are_none(shape, seed):
    x = images(shape, torch.float32)
    out = Flip()(x, rng=generator(seed))
    for image, changed in zip(x, out, strict=True):
        assert torch.equal(changed, image) or torch.equal(changed, image.flip(-1))
    assert torch.equal(Flip()(out, rng=generator(seed)), x)


@law
@given(shape=shapes, size=st.integers(1, 9), seed=st.integers(0, 99))
def test_cutout_blots_out_one_square_and_nothing_else(shape, size, seed):
    x = images(shape, torch.float32)
    out = Cutout(size=size)(x, rng=generator(seed))
    rng = generator(seed)
    rows, columns = whole_numbers(x, shape[2], rng), whole_numbers(x, shape[3], rng)
    for image, changed, i, j in zip(x, out, rows.tolist(), columns.tolist(), strict=True):
        wanted = image.clone()
        top, left = i - size // 2, j - size // 2
        wanted[:, max(top, 0) : top + size, max(left, 0) : left + size] = 0
        assert torch.equal(changed, wanted)
        assert changed[:, i, j].eq(0).all()


@law
@given(
    shape=shapes, augment=augmentations, seed=st.integers(0, 99), dtype=dtypes,
    last=st.booleans(),
)  # fmt: skip
def test_the_same_seed_gives_the_same_images_in_the_same_layout(shape, augment, seed, dtype, last):
    x = images(shape, dtype)
    kept = x.clone()
    given_ = x.contiguous(memory_format=torch.channels_last) if last else x
    one = augment(given_, rng=generator(seed))
    assert torch.equal(one, augment(x, rng=generator(seed)))
    assert torch.equal(x, kept)
    assert (one.dtype, one.shape, one.stride()) == (x.dtype, x.shape, given_.stride())
    assert one.data_ptr() != given_.data_ptr()
    assert set(one.unique().tolist()) <= {*x.unique().tolist(), 0.0, 1.0}


def test_seeds_differ_examples_differ_and_every_place_comes():
    x = images((400, 1, 8, 8), torch.float32)[:1].expand(400, -1, -1, -1)
    crop = Crop(padding=2)
    out = crop(x, rng=generator("a"))
    assert not torch.equal(out, crop(x, rng=generator("b")))
    assert len(out.flatten(1).unique(dim=0)) == 25
    flipped = (Flip()(x, rng=generator("a")) != x).flatten(1).any(1).float().mean()
    assert abs(flipped - 0.5) < 0.1  # four standard deviations


def test_a_replicate_draws_the_same_alone_and_in_a_stack():
    x = images((8, 3, 6, 6), torch.float32)
    augment = AUGMENTATIONS["crop_flip_cutout"]
    together = augment(x, rng=generators("r", seeds=[0, 1]))
    alone = [
        augment(part, rng=rng)
        for part, rng in zip(x.chunk(2), generators("r", seeds=[0, 1]), strict=True)
    ]
    assert torch.equal(together, torch.cat(alone))


def test_parts_come_one_after_the_other():
    x = images((5, 3, 8, 8), torch.float32)
    rng = generator("one")
    wanted = Flip()(Crop(padding=3)(x, rng=rng), rng=rng)
    both = Augmentations(parts=(Crop(padding=3), Flip()))
    assert torch.equal(both(x, rng=generator("one")), wanted)
    assert torch.equal(AUGMENTATIONS["none"](x, rng=generator("one")), x)
    assert both.key() != Augmentations(parts=(Flip(), Crop(padding=3))).key()
    assert Augmentations(parts=(Cutout(),)).key() != Augmentations(parts=(Crop(),)).key()


def test_on_another_device_only_places_move():
    x = torch.empty(4, 3, 8, 8, device="meta")
    for name in AUGMENTATIONS:
        out = AUGMENTATIONS[name](x, rng=generator(name))
        assert (out.device.type, out.shape) == ("meta", x.shape)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Crop(padding=0), "padding"),
        (lambda: Crop(padding=1.5), "padding: must be a whole number"),
        (lambda: Cutout(size=0), "size"),
        (lambda: Crop(paddin=1), "paddin: unknown setting"),
        (lambda: augmentation("crop-flip"), "did you mean crop_flip"),
        (lambda: Flip()(torch.zeros(3, 4), rng=generator(0)), r"got \(3, 4\)"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(wrong, says):
    with pytest.raises(AdvlabError, match=says) as refused:
        wrong()
    assert "\n" not in str(refused.value)


def test_no_images_stay_none():
    empty = torch.zeros(0, 3, 4, 4)
    assert Crop()(empty, rng=generator(0)).shape == empty.shape
