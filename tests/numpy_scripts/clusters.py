"""Points in groups: standardized, projected on principal axes, clustered, classified and regressed upon."""

import numpy as np

# The data: four groups of points in six dimensions, made by formulas so that every run has the same.
NUM_POINTS, NUM_FEATURES, NUM_GROUPS = 600, 6, 4
golden = (np.sqrt(5.0) - 1.0) / 2.0
steps = np.arange(NUM_POINTS * NUM_FEATURES, dtype=np.float64)
uniform = np.mod(steps * golden, 1.0).reshape(NUM_POINTS, NUM_FEATURES)
noise = np.log(uniform + 0.01) - np.log(1.01 - uniform)
group = np.arange(NUM_POINTS) % NUM_GROUPS
centers = np.array(
    [[0, 0, 0, 0, 0, 0], [9, 0, 0, 9, 0, 0], [0, 9, 0, 0, 9, 0], [0, 0, 9, 0, 0, 9]], dtype=float
)
points = centers[group] + 1.6 * noise
points[::50, 2] = np.nan  # a few values are missing
print("points:", points.shape, "missing:", int(np.isnan(points).sum()))

# Missing values become the mean of their column, then all columns are standardized.
column_means = np.nanmean(points, axis=0)
missing = np.isnan(points)
points = np.where(missing, column_means, points)
mean, spread = points.mean(axis=0), points.std(axis=0, ddof=1)
standard = (points - mean) / spread
print("column means:", np.round(mean, 3).tolist())
print("column spreads:", np.round(spread, 3).tolist())
assert np.allclose(standard.mean(axis=0), 0.0, atol=1e-9)

# Principal axes: eigenvectors of the covariance matrix, largest first, with a fixed sign.
covariance = standard.T @ standard / (NUM_POINTS - 1)
values, vectors = np.linalg.eigh(covariance)
order = np.argsort(values)[::-1]
values, vectors = values[order], vectors[:, order]
vectors = vectors * np.sign(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(NUM_FEATURES)])
share = np.cumsum(values) / values.sum()
print("explained:", " ".join(f"{one:.4f}" for one in share))
scores = standard @ vectors[:, :3]
print("scores:", scores.shape, f"{np.abs(scores).max():.4f}")


# Lloyd's k-means in the plane of the first axes, started from the points that are farthest apart.
def distances(some, others):
    squares = (some**2).sum(axis=1)[:, np.newaxis] + (others**2).sum(axis=1) - 2.0 * some @ others.T
    return np.sqrt(np.maximum(squares, 0.0))


chosen = [0]
for _ in range(NUM_GROUPS - 1):
    nearest = distances(scores, scores[chosen]).min(axis=1)
    chosen.append(int(nearest.argmax()))
means = scores[chosen].copy()
iterations = 0
for _ in range(30):
    iterations += 1
    label = distances(scores, means).argmin(axis=1)
    moved = np.zeros_like(means)
    for one in range(NUM_GROUPS):
        moved[one] = scores[label == one].mean(axis=0)
    change = float(np.linalg.norm(moved - means))
    means = moved
    if change < 1e-9:
        break
sizes = np.bincount(label, minlength=NUM_GROUPS)
print("k-means:", iterations, "iterations, sizes", np.sort(sizes).tolist())

# How well clusters and groups agree: a table of counts, and the share of each group's commonest cluster.
table = np.zeros((NUM_GROUPS, NUM_GROUPS), dtype=np.int64)
np.add.at(table, (group, label), 1)
purity = table.max(axis=1).sum() / NUM_POINTS
print("purity:", f"{purity:.4f}", "counts:", np.sort(table.max(axis=1)).tolist())

# The silhouette of every tenth point.
sample = np.arange(0, NUM_POINTS, 10)
apart = distances(scores[sample], scores)
member = label[:, np.newaxis] == np.arange(NUM_GROUPS)
totals = apart @ member
own = label[sample]
inside = totals[np.arange(sample.size), own] / (sizes[own] - 1)
outside = totals / sizes
outside[np.arange(sample.size), own] = np.inf
between = outside.min(axis=1)
silhouette = (between - inside) / np.maximum(inside, between)
print("silhouette:", f"{silhouette.mean():.4f}", f"{np.median(silhouette):.4f}", f"{silhouette.min():.4f}")

# Three nearest neighbours vote on the group of the points that were left out.
left_out = np.zeros(NUM_POINTS, dtype=bool)
left_out[np.arange(0, NUM_POINTS, 7)] = True
known, asked = scores[~left_out], scores[left_out]
nearest = np.argsort(distances(asked, known), axis=1)[:, :3]
votes = group[~left_out][nearest]
winner = np.array([np.bincount(row, minlength=NUM_GROUPS).argmax() for row in votes])
print("neighbours agree:", f"{np.mean(winner == group[left_out]):.4f}", "of", winner.size)

# A linear regression of the last feature on the others, by the normal equations.
design = np.hstack([np.ones((NUM_POINTS, 1)), standard[:, :-1]])
target = standard[:, -1]
weights = np.linalg.solve(design.T @ design, design.T @ target)
residual = target - design @ weights
r_squared = 1.0 - (residual @ residual) / ((target - target.mean()) ** 2).sum()
print("weights:", np.round(weights, 4).tolist())
print("r squared:", f"{r_squared:.5f}", "largest residual:", f"{np.abs(residual).max():.4f}")
