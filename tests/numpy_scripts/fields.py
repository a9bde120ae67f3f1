"""Fields on grids: heat that spreads, waves, the game of life, a filtered picture and random walkers."""

import numpy as np

# Heat in a plate with fixed edges, by explicit steps.
SIZE = 60
plate = np.zeros((SIZE, SIZE))
plate[0, :] = 100.0
plate[:, 0] = np.linspace(100.0, 0.0, SIZE)
plate[20:30, 35:45] = 50.0
for _ in range(40):
    inner = plate[1:-1, 1:-1]
    around = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:] - 4.0 * inner
    plate[1:-1, 1:-1] = inner + 0.2 * around
print("heat:", f"{plate.mean():.4f}", f"{plate[30, 30]:.4f}", f"{plate.max():.1f}")
hot = np.argwhere(plate > 99.0)
print("hot places:", hot.shape[0], "last", hot[-1].tolist())
rows, columns = np.unravel_index(np.argmax(plate[1:-1, 1:-1]), (SIZE - 2, SIZE - 2))
print("hottest inside:", int(rows) + 1, int(columns) + 1)

# A wave on a string: the same three-term step over and over.
x = np.linspace(0.0, 1.0, 201)
before = np.exp(-200.0 * (x - 0.3) ** 2)
now = before.copy()
energies = []
for _ in range(60):
    after = np.zeros_like(now)
    after[1:-1] = 2.0 * now[1:-1] - before[1:-1] + 0.81 * np.diff(now, n=2)
    before, now = now, after
    energies.append(float((np.gradient(now, x) ** 2).sum()))
print("wave:", f"{now.max():.5f}", f"{now.argmax()}", f"{np.mean(energies):.3f}")
crossings = np.flatnonzero(np.sign(now[:-1] - 0.1) != np.sign(now[1:] - 0.1))
print("crossings:", crossings.tolist())

# The game of life on a torus: a glider, a blinker and a block.
world = np.zeros((32, 32), dtype=np.int8)
world[1:4, 1:4] = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]
world[10, 20:23] = 1
world[25:27, 5:7] = 1
for _ in range(16):
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    neighbours = sum(np.roll(world, shift, axis=(0, 1)) for shift in shifts)
    world = ((neighbours == 3) | ((world == 1) & (neighbours == 2))).astype(np.int8)
alive = np.nonzero(world)
print(
    "alive:", int(world.sum()), "rows", np.unique(alive[0]).tolist(), "columns", np.unique(alive[1]).tolist()
)

# A picture: a disk and stripes, blurred by a separable filter, then its edges.
height, width = 48, 64
down, across = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
picture = ((down - 24) ** 2 + (across - 20) ** 2 < 150).astype(float)
picture += 0.5 * (across % 8 < 4) * (across > 40)
kernel = np.exp(-0.5 * np.arange(-3, 4) ** 2)
kernel /= kernel.sum()
padded = np.pad(picture, 3, mode="edge")
blurred = sum(weight * padded[k : k + height, 3:-3] for k, weight in enumerate(kernel))
padded = np.pad(blurred, ((0, 0), (3, 3)), mode="reflect")
blurred = sum(weight * padded[:, k : k + width] for k, weight in enumerate(kernel))
print("picture:", f"{picture.sum():.2f}", "blurred:", f"{blurred.sum():.4f}", f"{blurred.std():.5f}")
slope_down, slope_across = np.gradient(blurred)
strength = np.hypot(slope_down, slope_across)
threshold = np.percentile(strength, 90)
edges = np.where(strength > threshold, strength, 0.0)
print("edges:", np.count_nonzero(edges), f"{threshold:.5f}", f"{edges.max():.5f}")
angle = np.arctan2(slope_down, slope_across)[edges > 0]
counts, borders = np.histogram(angle, bins=6, range=(-np.pi, np.pi))
print("directions:", counts.tolist(), np.round(borders, 3).tolist())
tiles = blurred.reshape(height // 8, 8, width // 8, 8).mean(axis=(1, 3))
print("tiles:", tiles.shape, np.round(tiles[2], 3).tolist())
flipped = np.flip(blurred, axis=1)
quarters = np.stack([np.rot90(tiles, k)[:6, :6] for k in range(4)])
print("turned:", quarters.shape, f"{quarters.mean():.5f}", f"{np.abs(flipped - blurred).max():.5f}")

# Walkers that step by a low-discrepancy sequence: where they are, how far they got, who came back.
NUM_WALKERS, NUM_STEPS = 200, 120
draws = np.mod(np.arange(NUM_WALKERS * NUM_STEPS) * 0.7548776662466927, 1.0)
draws = draws.reshape(NUM_WALKERS, NUM_STEPS)
steps = np.select([draws < 0.25, draws < 0.5, draws < 0.75], [1, -1, 2], default=-2)
paths = np.cumsum(steps, axis=1)
paths = np.concatenate([np.zeros((NUM_WALKERS, 1), dtype=paths.dtype), paths], axis=1)
farthest = np.abs(paths).max(axis=1)
print(
    "farthest:", int(farthest.max()), f"{farthest.mean():.3f}", np.percentile(farthest, [25, 50, 75]).tolist()
)
back = (paths[:, 1:] == 0).any(axis=1)
first = np.where(back, np.argmax(paths[:, 1:] == 0, axis=1) + 1, -1)
print("came back:", int(back.sum()), "first:", np.sort(first)[:5].tolist(), int(first.max()))
ends, how_many = np.unique(paths[:, -1], return_counts=True)
common = np.argsort(-how_many, kind="stable")[:3]
print("ends:", ends[common].tolist(), how_many[common].tolist(), int(np.ptp(ends)))

# How far pairs of walkers are apart on average, by the mean over all pairs; and the slowest and the fastest.
apart = np.abs(paths[:, None, -1] - paths[None, :, -1])
pairs = np.tril_indices(NUM_WALKERS, -1)
print("apart:", f"{apart[pairs].mean():.4f}", int(apart.max()), int(np.trace(apart)))
speed = np.abs(np.diff(paths, axis=1)).mean(axis=1)
slow, fast = np.argpartition(speed, 3)[:3], np.argmax(speed)
print("speeds:", f"{np.sort(speed[slow])[0]:.4f}", f"{speed[fast]:.4f}", f"{np.var(speed, ddof=1):.6f}")
