# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # Train a robust network, and diagnose its robust gap
#
# Few examples, an attack in training, and many steps. The network becomes more robust on what it was trained on than on fresh
# inputs, although it is right on most of these as they are: a gap that the clean error does not show.

# %%
import torch

import advlab
from advlab.attacks import PGD
from advlab.core.randomness import generator
from advlab.data.directory import present
from advlab.data.stand_in_images import stand_in_images
from advlab.threats import Ball

if present("mnist"):
    source, (x, y) = (
        "MNIST at half its side",
        advlab.data.resolve("mnist", split="train", limit=200),
    )
    x = torch.nn.functional.avg_pool2d(x, 2)
else:
    source = "generated images"
    x, y = stand_in_images(200, generator("images"), channels=1, side=14, contrast=0.2)
print("data:", source)
train, test = (x[:60], y[:60]), (x[60:], y[60:])
ball = Ball("linf", 0.06, box=(0, 1))

# %% [markdown]
# ## Adversarial training, with the error watched on both halves

# %%
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Flatten(), torch.nn.Linear(196, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
)
attack = PGD(steps=5, step_size=0.3)


def errors(data):
    found = advlab.attack(model, *data, ball, attack=attack, rng=0)
    clean = float((model(data[0]).argmax(1) != data[1]).float().mean())
    return clean, float(found.broken.float().mean())


rows = []
for epoch in range(8):
    advlab.fit(
        model,
        *train,
        steps=60,
        lr=0.003,
        batch=30,
        optimizer=torch.optim.Adam,
        ball=ball,
        attack=attack,
        rng=generator("batches", epoch),
    )
    for part, data in (("train", train), ("test", test)):
        clean, robust = errors(data)
        rows += [
            {"steps": 60 * (epoch + 1), "on": f"{part}, {kind}", "error": value}
            for kind, value in (("clean", clean), ("under PGD", robust))
        ]

# %%
import altair as alt
import polars as pl

alt.Chart(pl.DataFrame(rows), width=420, height=240).mark_line(point=True).encode(
    alt.X("steps"),
    alt.Y("error", title="error (under PGD: a lower bound)", scale=alt.Scale(domain=[0, 1])),
    alt.Color("on", title=None, legend=alt.Legend(columns=2)),
)

# %%
course = [row["error"] for row in rows if row["on"] == "test, under PGD"]
print(f"test error under PGD: at least {min(course):.2f} on the way, {course[-1]:.2f} at the end")

# %% [markdown]
# An end above the least on the way is robust *overfitting*: more training hurt. Where both are the same it is a gap alone.
#
# ## How large is the gap, and where does it come from?
#
# `robust_gap` measures worst loss and robust error on test and training data, with brackets. `flatness` compares how steep the
# loss is around training inputs (local) and around fresh ones (global): memorised examples sit in flat places that others do not have.

# %%
from advlab.measure.flatness import flatness
from advlab.measure.robust_gap import robust_gap

few_train, few_test = [(a[:24], b[:24]) for a, b in (train, test)]
gap = robust_gap(model, few_train, few_test, ball, attack=attack)
flat = flatness(model, few_train, few_test, ball, draws=4, starts=1, climb=3)
print(f"robust error, test less train, on 24 of each: {float(gap.error_gap):.2f}")
print(f"sharpness around fresh inputs over that around training inputs: {float(flat.ratio):.2f}")

# %% [markdown]
# The page of [clean generalization and robust overfitting](../cgro.md) has the theory, and the same on real images.
