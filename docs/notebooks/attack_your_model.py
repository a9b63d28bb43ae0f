# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # Attack your model
#
# A small network on images of ten classes: the digits of MNIST where they are at hand (`advlab data fetch mnist`), generated
# images of the same shape elsewhere. How wrong is it when each pixel may move by at most 0.02?

# %%
import torch

import advlab
from advlab.core.randomness import generator
from advlab.data.directory import present
from advlab.data.stand_in_images import stand_in_images
from advlab.models import SmallCNN
from advlab.threats import Ball

if present("mnist"):
    source, (x, y) = "MNIST", advlab.data.resolve("mnist", split="train", limit=1600)
else:
    source = "generated images of the shape of MNIST's"
    x, y = stand_in_images(1600, generator("images"), channels=1, side=28)
print("data:", source)
ball = Ball("linf", 0.02, box=(0, 1))
train, test = (x[:1500], y[:1500]), (x[1500:1540], y[1500:1540])

# %% [markdown]
# ## Train it, without any thought of attacks

# %%
model = SmallCNN.draw(generator("model"), width=4, hidden=16, side=28)
fitted = advlab.fit(model, *train, steps=150, lr=0.01, batch=50, optimizer=torch.optim.Adam)
print("test error:", float((model(test[0]).argmax(1) != test[1]).float().mean()))

# %% [markdown]
# ## Adversarial examples in one line

# %%
found = advlab.attack(model, *test, ball)
print("examples that are wrong under attack:", int(found.broken.sum()), "of", len(test[1]))
print("largest change of a pixel:", round(float((found.x - test[0]).abs().max()), 6))

# %% [markdown]
# ## The robust error, between two bounds
#
# An attack that fails proves nothing. `evaluate` runs several, cheapest first, and certificates from the other side. The robust
# error of these examples lies between `robust_error` (found: a lower bound) and `certified_error` (not excluded: an upper bound).

# %%
bounds = ["ibp", "crown_ibp", "crown"]
result = advlab.evaluate(model, *test, ball, attack="fast", certificates=bounds)
print(
    "clean",
    result.clean_error,
    "  robust, at least",
    result.robust_error,
    "  at most",
    result.certified_error,
)

# %% [markdown]
# ## Over all radii, 0.02 among them

# %%
import altair as alt
import polars as pl

curve = advlab.curve(
    model, *test, "linf", box=(0, 1), radii=[0.01, 0.02, 0.04, 0.06, 0.08, 0.1], attack="fast"
)
points = [curve.at(eps) for eps in (0.0, *curve.radii)]
table = pl.DataFrame(
    {"radius": p.eps, "at least": p.at_least, "at most": p.at_most} for p in points
)
chart = alt.Chart(table, width=420, height=240).encode(alt.X("radius", title="radius (linf)"))
print("at 0.02:", curve.at(0.02).at_least, "to", curve.at(0.02).at_most)
band = (
    chart.mark_area(opacity=0.3).encode(
        alt.Y("at least", title="robust error", scale=alt.Scale(domain=[0, 1])), alt.Y2("at most")
    )
    + chart.mark_line().encode(y="at least")
    + chart.mark_line(strokeDash=[4, 3]).encode(y="at most")
)
band

# %% [markdown]
# The truth lies in the band. A stronger attack raises its lower edge, a tighter certificate lowers the upper one.
