/** Maximum length of a name that is compared: the comparison with each known name takes quadratic time. */
const MAX_NAME = 100

/** The known name that is closest to a mistyped name; undefined if none is close. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  if (name.length > MAX_NAME) return undefined
  let best: string | undefined
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1
  const typed = name.toLowerCase()
  for (const candidate of known) {
    const distance = editDistance(typed, candidate.toLowerCase(), bestDistance)
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** ` Did you mean "x"?`, or nothing. */
export function didYouMean(name: string, known: Iterable<string>): string {
  const found = nearest(name, known)
  return found === undefined ? '' : ` Did you mean ${JSON.stringify(found)}?`
}

/** The edit distance of two words, at most `max`; the computation stops once no smaller distance is possible. */
function editDistance(a: string, b: string, max: number): number {
  if (Math.abs(a.length - b.length) >= max) return max
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(replaced, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    if (row.every((distance) => distance >= max)) return max
    previous = row
  }
  return Math.min(previous[b.length] ?? max, max)
}
