"""Distances between languages taken as Gaussians (docs/protocols.md, KL-D)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np


def diagonal_kl(means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return KL(i || j) of diagonal Gaussians, summed over dimensions: float64 [n, n].

    Args:
        means, variances: [n, d]; variances above 0.
    """
    inverse, logs = 1 / variances, np.log(variances).sum(1)
    squares = (means**2) @ inverse.T - 2 * means @ (means * inverse).T + (means**2 * inverse).sum(1)
    return np.asarray((logs - logs[:, None] + variances @ inverse.T + squares - means.shape[1]) / 2)


def full_kl(means: np.ndarray, covariances: Sequence[np.ndarray]) -> np.ndarray:
    """Return KL(i || j) of Gaussians: float64 [n, n].

    Args:
        means: [n, d].
        covariances: n symmetric positive definite matrices [d, d].

    Raises:
        numpy.linalg.LinAlgError: a matrix is singular or not positive definite.
    """
    n, d = means.shape
    logs = np.array([2 * np.log(np.diag(np.linalg.cholesky(matrix))).sum() for matrix in covariances])
    out = np.empty((n, n))
    for j, matrix in enumerate(covariances):
        inverse = np.linalg.inv(matrix)
        traces = np.array([np.vdot(inverse, other) for other in covariances])
        shift = means - means[j]
        out[:, j] = (traces + np.einsum("nd,nd->n", shift @ inverse, shift) - d + logs[j] - logs) / 2
    return out


def mean_symmetric(divergences: np.ndarray) -> float:
    """Return the mean over unordered pairs i < j of (KL(i || j) + KL(j || i)) / 2."""
    upper = np.triu_indices(len(divergences), 1)
    return float(((divergences + divergences.T) / 2)[upper].mean())


def kl_gradients(means: np.ndarray, covariances: Sequence[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield, of each Gaussian, the gradient of the mean symmetric KL by its mean, float64 [d], and by its covariance, [d, d].

    (KL(i || j) + KL(j || i)) / 2 = [tr(Pj Si) + tr(Pi Sj) + m' (Pi + Pj) m - 2 d] / 4 with P the inverse of S and m = mi - mj.

    Args:
        means: [n, d].
        covariances: n symmetric positive definite matrices [d, d].
    """
    n, total, products = len(means), means.sum(0), means.T @ means
    pairs = n * (n - 1) / 2
    precision, pulled = np.zeros_like(products), np.zeros_like(total)
    for mean, covariance in zip(means, covariances, strict=True):
        inverse = np.linalg.inv(covariance)
        precision += inverse
        pulled += inverse @ mean
    spread = sum(covariances)
    for mean, covariance in zip(means, covariances, strict=True):
        inverse = np.linalg.inv(covariance)  # again: all of them would take as much memory as the covariances
        cross = np.outer(mean, total)
        others = spread - covariance + n * np.outer(mean, mean) - cross - cross.T + products
        by_mean = inverse @ (n * mean - total) + precision @ mean - pulled
        yield by_mean / (2 * pairs), (precision - inverse - inverse @ others @ inverse) / (4 * pairs)
