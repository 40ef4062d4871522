"""Layer normalisation.

Forward      mean = (1/D) sum_d x_d                  per row
             var  = (1/D) sum_d (x_d - mean)^2       biased
             xhat = (x - mean) / sqrt(var + eps)     eps inside the root
             y    = gamma * xhat + beta              gamma, beta (D,)

Backward     with g = dy * gamma = dL/dxhat and r = 1 / sqrt(var + eps): x_d reaches the loss directly, through the
             mean and through the variance. d xhat_e / d x_d = r (1[d = e] - 1/D - xhat_d xhat_e / D), hence

             dx     = r (g - mean(g) - xhat * mean(g * xhat))
             dgamma = sum over rows of dy * xhat
             dbeta  = sum over rows of dy

Source: Ba, Kiros and Hinton, arXiv 1607.06450; BERT uses eps = 1e-12.
"""

from ..backend import array_module, row_blocks
from .linear import column_sums


def layer_norm(x, gamma, beta, eps=1e-12):
    """Each row of x (M, D) shifted to mean 0 and scaled to variance 1, then times gamma plus beta.

    gamma, beta (D,); eps is added to the biased variance. Returns (y (M, D), backward);
    backward(dy) -> (dx, dgamma, dbeta).
    """
    xp, number, width = array_module(x), x.dtype.type, x.shape[1]
    average = xp.full((width, 1), 1 / width, dtype=x.dtype)  # a row mean is a product with this column
    y, xhat, r = xp.empty_like(x), xp.empty_like(x), xp.empty((x.shape[0], 1), dtype=x.dtype)
    for rows in row_blocks(x):
        xp.subtract(x[rows], x[rows] @ average, out=xhat[rows])
        xp.multiply(xhat[rows], xhat[rows], out=y[rows])
        variance = xp.matmul(y[rows], average, out=r[rows])
        variance += number(eps)
        xp.sqrt(variance, out=variance)
        xp.reciprocal(variance, out=variance)
        xhat[rows] *= r[rows]
        xp.multiply(xhat[rows], gamma, out=y[rows])
        y[rows] += beta

    def backward(dy):
        dx, dgamma, dbeta = xp.empty_like(dy), xp.zeros_like(gamma), xp.zeros_like(beta)
        gamma_average = gamma[:, None] / number(width)  # the row mean of dy * gamma is a product with this column
        for rows in row_blocks(dy):
            g, product = dx[rows], dy[rows] * xhat[rows]
            dgamma += column_sums(product)  # undoes gamma * xhat
            dbeta += column_sums(dy[rows])  # undoes + beta
            xp.multiply(dy[rows], gamma, out=g)
            g -= dy[rows] @ gamma_average  # undoes the mean
            xp.multiply(xhat[rows], product @ gamma_average, out=product)
            g -= product  # undoes the variance
            g *= r[rows]
        return dx, dgamma, dbeta

    return y, backward
