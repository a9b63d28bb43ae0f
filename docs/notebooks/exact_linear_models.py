# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # Exact linear models
#
# For a linear model the worst perturbation is known: it costs $\epsilon \|\theta\|_q$ of margin. What is left is a convex problem,
# solved with a certificate of how far from the best possible model the answer is at most.

# %%
import numpy as np

from advlab.linear import AdversarialClassifier, adversarial_path, adversarial_risk, optimal
from advlab.threats import Ball

rng = np.random.default_rng(0)
n, d = 200, 12
truth = np.r_[2.0, -1.5, 1.0, np.zeros(d - 3)]
X = rng.normal(size=(n, d))
y = np.where(X @ truth + rng.normal(size=n) > 0, 1, -1)

# %% [markdown]
# ## A robust classifier, with its duality gap

# %%
clean = AdversarialClassifier(norm="linf", eps=0.0, l2=1e-3).fit(X, y)
robust = AdversarialClassifier(norm="linf", eps=0.2).fit(X, y)
print("relative duality gap:", f"{robust.gap_:.1e}")
for name, model in (("clean", clean), ("robust", robust)):
    print(
        f"{name:7} accuracy {model.score(X, y):.3f}, under the worst attack {model.robust_score(X, y, eps=0.2):.3f}, "
        f"coefficients that are zero: {(model.coef_ == 0).sum()}"
    )

# %% [markdown]
# The accuracy under attack is exact here, not a bound. An attack in linf makes coefficients exactly zero, as the lasso does.
#
# ## All radii at once

# %%
import altair as alt
import polars as pl

Z, target = (X - X.mean(0)) / X.std(0), X @ truth + rng.normal(size=n)
path = adversarial_path(Z, target, norm="linf", points=25)
rows = [
    {"radius": float(eps), "feature": str(j), "coefficient": float(value)}
    for eps, coefs in zip(path.eps, path.coefs, strict=True)
    for j, value in enumerate(coefs)
]
alt.Chart(pl.DataFrame(rows), width=420, height=240).mark_line().encode(
    alt.X("radius", title="radius (linf)"), alt.Y("coefficient"), alt.Color("feature", legend=None)
)

# %% [markdown]
# ## The population's optimum
#
# For Gaussian inputs and $y = \theta_0^\top x + \xi$ with noise $\xi$ the adversarial risk has a closed form, and a minimiser $\theta^*(\epsilon)$.

# %%
theta0 = np.array([1.0, 0.5, 0.0])
for eps in (0.0, 0.2, 0.5):
    ball = Ball("l2", eps)
    best = optimal(theta0, 1.0, ball)
    at_truth = float(adversarial_risk(theta0, theta0, 1.0, ball))
    print(
        f"eps = {eps}: least risk {float(best.risk):.4f}, risk of the truth itself {at_truth:.4f}, theta* = {np.round(best.theta, 3)}"
    )

# %% [markdown]
# Under attack the true coefficients are not the best ones. [On the generalization properties](../generalization.md) has the theory,
# [linear models](../linear.md) the rest of the room.
