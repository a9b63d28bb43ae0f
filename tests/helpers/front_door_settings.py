"""Odd settings of threat sets, attacks, losses and data, and what becomes of them."""

import numpy as np
import torch

from advlab.attacks import APGD, FGM, PGD, AutoAttack, Grid, Square, Surrogate
from advlab.data.arrays import from_arrays, load
from advlab.losses import ModelLoss, cross_entropy, logistic, squared
from advlab.threats import Ball, Cap
from advlab.training import TRADES, Adversarial, Cosine, Mixed

WORKS = None
X, Y = torch.rand(4, 3), torch.tensor([0, 1, 2, 0])

SETTINGS = {
    "Ball radius True": (lambda: Ball("linf", True), "radius: must be a number, not a boolean"),
    "Ball radius False": (lambda: Ball(norm="l2", radius=False), "not a boolean"),
    "Cap radius True": (lambda: Cap(True), "not a boolean"),
    "Ball radius NaN": (lambda: Ball("linf", float("nan")), "radius"),
    "Ball radius 1e400": (lambda: Ball("linf", 1e400), "finite number, got inf"),
    "Ball radius negative": (lambda: Ball("linf", -0.1), "greater than or equal to 0"),
    "Ball radius None": (lambda: Ball("linf", None), "valid number, got None"),
    "Ball radius list": (lambda: Ball("linf", [0.1]), "radius"),
    "Ball radius numpy": (lambda: Ball("linf", np.float32(0.1)), WORKS),
    "Ball radius int": (lambda: Ball("linf", 1), WORKS),
    "Ball norm unknown": (lambda: Ball("l3", 0.1), "norm"),
    "Ball norm number": (lambda: Ball(2, 0.1), "norm"),
    "Ball arguments swapped": (lambda: Ball(0.1, "linf"), "Ball: "),
    "Ball too many": (lambda: Ball("linf", 0.1, (0, 1), 3), "at most 3 settings"),
    "Ball twice": (lambda: Ball("linf", 0.1, norm="l2"), "one value for norm"),
    "Ball unknown setting": (lambda: Ball("linf", eps=0.1), "eps: unknown setting"),
    "Ball box reversed": (lambda: Ball("linf", 0.1, box=(1, 0)), "low must be below high"),
    "Ball box of booleans": (lambda: Ball("linf", 0.1, box=(False, True)), "not a boolean"),
    "Ball box infinite": (lambda: Ball("linf", 0.1, box=(0, 1e400)), "finite"),
    "Ball box of three": (lambda: Ball("linf", 0.1, box=(0, 1, 2)), "box"),
    "Ball box list": (lambda: Ball("linf", 0.1, box=[0, 1]), WORKS),
    "Cap too large": (lambda: Cap(3.0), "less than or equal to 2"),
    "PGD steps 2.5": (lambda: PGD(steps=2.5), "steps: must be a whole number, got 2.5"),
    "PGD steps 2.0": (lambda: PGD(steps=2.0), "steps: must be a whole number, got 2.0"),
    "PGD steps True": (lambda: PGD(steps=True), "not a boolean"),
    "PGD steps 0": (lambda: PGD(steps=0), "greater than 0"),
    "PGD steps text": (lambda: PGD(steps="many"), "valid integer"),
    "PGD by position": (lambda: PGD(10), "PGD: settings by name; got 10 without one"),
    "PGD unknown setting": (lambda: PGD(eps=0.1), "eps: unknown setting"),
    "PGD step_size True": (lambda: PGD(step_size=True), "not a boolean"),
    "PGD step_size NaN": (lambda: PGD(step_size=float("nan")), "finite"),
    "PGD random_start True": (lambda: PGD(random_start=True), WORKS),
    "PGD keep unknown": (lambda: PGD(keep="best"), "keep"),
    "PGD target of dlr": (lambda: PGD(climb="nope"), "climb"),
    "APGD steps real": (lambda: APGD(steps=1e2), "whole number"),
    "Square queries real": (lambda: Square(queries=1e3), "whole number"),
    "Square share 2": (lambda: Square(share=2), "less than or equal to 1"),
    "Grid points real": (lambda: Grid(points=10.0), "whole number"),
    "AutoAttack unknown": (lambda: AutoAttack("fastest"), "version"),
    "Surrogate of a class": (lambda: Surrogate(inner=FGM), "inner"),
    "Adversarial without a ball": (lambda: Adversarial(), "ball: field required"),
    "Adversarial attack alone": (lambda: Adversarial(attack=PGD()), "ball: field required"),
    "TRADES without a ball": (lambda: TRADES(), "ball: field required"),
    "Adversarial ball number": (lambda: Adversarial(ball=0.1), "ball"),
    "Mixed lam 2": (lambda: Mixed(ball=Ball("l2", 0.1), lam=2), "lam"),
    "Adversarial loss unknown": (lambda: Adversarial(ball=Ball("l2", 1), loss="x"), "one of"),
    "Cosine lr 0": (lambda: Cosine(lr=0), "greater than 0"),
    "ModelLoss by name": (lambda: ModelLoss(torch.nn.Flatten(), Y, "margin")(X), WORKS),
    "ModelLoss of bytes": (lambda: ModelLoss(lambda x: x, Y.byte(), cross_entropy)(X), WORKS),
    "ModelLoss of a list": (lambda: ModelLoss(lambda x: x, [0, 1, 2, 0], "dlr")(X), WORKS),
    "ModelLoss model None": (lambda: ModelLoss(None, Y, squared), "a model that can be called"),
    "ModelLoss loss unknown": (lambda: ModelLoss(lambda x: x, Y, "l2"), "loss must be one of"),
    "labels 0 and 1 of one output": (lambda: logistic(X[:, 0], Y.clamp(max=1)), "2 \\* y - 1"),
    "squared of classes": (lambda: squared(X, Y.float()), "one output per example"),
    "from_arrays of text": (lambda: from_arrays("x", "y"), "real numbers in x"),
    "from_arrays of lists": (lambda: from_arrays([[0.0], [1.0]], [0, 1]), WORKS),
    "from_arrays of booleans": (lambda: from_arrays([[0.0], [1.0]], [True, False]), WORKS),
    "from_arrays of None": (lambda: from_arrays(None, None), "real numbers in x"),
    "load of nothing": (lambda: load("nowhere.npz"), "does not exist"),
    "load of a folder": (lambda: load("."), "npz file"),
}
