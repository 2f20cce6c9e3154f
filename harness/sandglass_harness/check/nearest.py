"""Finds the name that a misspelled name probably means."""

_MAX_LENGTH = 40


def find_nearest(word, candidates):
    """Returns the candidate that `word` misspells, or None. Earlier candidates win a tie."""
    if len(word) > _MAX_LENGTH or len(word) < 2:
        return None
    lower, allowed = word.lower(), max(1, (len(word) + 1) // 3)
    best, best_cost = None, allowed + 1
    for candidate in candidates:
        if abs(len(candidate) - len(word)) >= best_cost or candidate == word:
            continue
        other = candidate.lower()
        cost = 0.5 if other == lower else count_edits(lower, other, best_cost)
        if cost < best_cost and cost < max(len(word), len(candidate)) - 1:
            best, best_cost = candidate, cost
    return best


def count_edits(a, b, limit):
    """Returns the edit distance with transpositions of adjacent letters, up to `limit`."""
    before, last = [], list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = last[j - 1] if x == y else 1 + min(last[j - 1], last[j], row[j - 1])
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) >= limit:
            return limit
        before, last = last, row
    return last[-1]
