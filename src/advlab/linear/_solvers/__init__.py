"""Machinery behind `solve_linear`: one convex problem, its certificate, and solvers by shape."""
