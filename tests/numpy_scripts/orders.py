"""A shop's year: orders by customer, product and day; rankings, quantiles, returns and what goes together."""

import numpy as np

# Twenty thousand orders, made by formulas so that every run has the same.
NUM_ORDERS, NUM_CUSTOMERS, NUM_PRODUCTS, NUM_DAYS = 20_000, 700, 40, 365
number = np.arange(NUM_ORDERS)
customer = (number * 7919 + number // 13) % NUM_CUSTOMERS
product = np.minimum(number * 7919 % 41, number * 31 % 53) % NUM_PRODUCTS
day = np.sort((number * 104729) % NUM_DAYS)
quantity = 1 + (number * 48271 // 97) % 5
price = np.round(5.0 + 3.0 * np.sqrt(np.arange(NUM_PRODUCTS)), 2)
amount = quantity * price[product]
amount[number % 97 == 0] *= -1  # returned
print("orders:", amount.size, "turnover:", f"{amount.sum():.2f}", "returns:", int((amount < 0).sum()))
assert np.all(np.diff(day) >= 0)

# By product: how many, how much, the mean order, and a ranking.
orders = np.bincount(product, minlength=NUM_PRODUCTS)
turnover = np.bincount(product, weights=amount, minlength=NUM_PRODUCTS)
mean_order = np.divide(turnover, orders, out=np.zeros(NUM_PRODUCTS), where=orders > 0)
ranking = np.argsort(-turnover, kind="stable")
print("best products:", ranking[:5].tolist(), np.round(turnover[ranking[:5]], 2).tolist())
print("mean order:", f"{mean_order[orders > 0].mean():.4f}", "unsold:", int((orders == 0).sum()))
share = np.cumsum(turnover[ranking]) / turnover.sum()
print("products for four fifths:", int(np.searchsorted(share, 0.8)) + 1)

# By customer: totals, the most loyal, and quantiles of what they spend.
who, first_order, times = np.unique(customer, return_index=True, return_counts=True)
spent = np.zeros(NUM_CUSTOMERS)
np.add.at(spent, customer, amount)
print("customers:", who.size, "orders each:", int(times.min()), int(times.max()), f"{times.mean():.2f}")
print("first orders:", first_order[:5].tolist(), int(first_order.max()))
print("spent:", np.round(np.quantile(spent, [0.0, 0.25, 0.5, 0.75, 1.0]), 2).tolist())
loyal = np.flatnonzero(times == times.max())
print("most loyal:", loyal.size, loyal[:3].tolist())
level = np.digitize(spent, [200.0, 500.0, 1000.0])
print("levels:", np.bincount(level, minlength=4).tolist())

# By day: a series with gaps, its moving average, the best weeks and the trend.
daily = np.zeros(NUM_DAYS)
np.add.at(daily, day, amount)
window = 7
sums = np.concatenate(([0.0], np.cumsum(daily)))
moving = (sums[window:] - sums[:-window]) / window
print(
    "daily:",
    f"{daily.mean():.3f}",
    f"{daily.std():.3f}",
    "moving:",
    f"{moving.max():.3f}",
    int(moving.argmax()),
)
weeks = daily[: NUM_DAYS // 7 * 7].reshape(-1, 7)
print("weekdays:", np.round(weeks.mean(axis=0), 2).tolist())
best = np.argsort(weeks.sum(axis=1))[-3:][::-1]
print("best weeks:", sorted(best.tolist()), f"{weeks.sum(axis=1)[best].min():.2f}")
days = np.arange(NUM_DAYS)
slope = ((days - days.mean()) * (daily - daily.mean())).sum() / ((days - days.mean()) ** 2).sum()
print("trend:", f"{slope:.6f}", "correlation:", f"{np.corrcoef(days, daily)[0, 1]:.6f}")
quarter = np.array_split(daily, 4)
print("quarters:", [f"{part.sum():.2f}" for part in quarter])

# A table of months and products: shares, the strongest month of each product, months that stand out.
month = np.minimum(day // 31, 11)
table = np.zeros((12, NUM_PRODUCTS))
np.add.at(table, (month, product), amount)
assert np.isclose(table.sum(), amount.sum())
of_month = table / table.sum(axis=1, keepdims=True)
strongest = table.argmax(axis=0)
print("strongest months:", np.bincount(strongest, minlength=12).tolist())
score = (table - table.mean(axis=0)) / table.std(axis=0)
outliers = np.argwhere(np.abs(score) > 2.5)
print("outliers:", outliers.shape[0], "largest:", f"{np.nanmax(np.abs(score)):.4f}")
print("shares:", np.round(np.sort(of_month, axis=1)[:, -1], 4).tolist())

# What goes together: products that the same customers buy, as a matrix product of a table of ones.
bought = np.zeros((NUM_CUSTOMERS, NUM_PRODUCTS), dtype=bool)
bought[customer, product] = True
together = bought.T.astype(np.float64) @ bought
np.fill_diagonal(together, 0.0)
pair = np.unravel_index(together.argmax(), together.shape)
print("together:", int(together.max()), sorted(int(one) for one in pair), f"{together.mean():.4f}")
norms = np.sqrt(bought.sum(axis=0))
cosine = np.einsum("ij,i,j->ij", together, 1.0 / norms, 1.0 / norms)
upper = cosine[np.triu_indices(NUM_PRODUCTS, 1)]
print("cosine:", f"{np.median(upper):.6f}", f"{upper.max():.6f}", "pairs:", upper.size)

# Customers who bought all of the three best products, and those who bought none of them.
top = ranking[:3]
buys = [np.unique(customer[product == one]) for one in top]
all_three = np.intersect1d(np.intersect1d(buys[0], buys[1]), buys[2])
none = np.setdiff1d(np.arange(NUM_CUSTOMERS), np.union1d(np.union1d(buys[0], buys[1]), buys[2]))
print("all three:", all_three.size, "none:", none.size, "two:", int(np.isin(buys[0], buys[1]).sum()))

# Prices of a year later: rounded, capped, and what the year would have brought.
later = np.clip(np.round(price * 1.07, 1), None, 22.0)
counts, edges = np.histogram(later, bins=5)
print("later prices:", counts.tolist(), np.round(edges, 2).tolist(), f"{np.dot(orders, later):.2f}")
print("change:", f"{np.dot(orders, later) / np.dot(orders, price) - 1.0:.6f}")
