/** One measurement: when, in hours, and how much, in MiB. */
export interface Point {
  readonly hours: number
  readonly mib: number
}

/** From when on growth counts as a leak. Both must be exceeded. */
export interface GrowthBound {
  readonly mibPerHour: number
  /** Over the whole time: below this, a short run only shows how code is compiled and caches fill. */
  readonly mib: number
  /** What is left out at the beginning, at the least. */
  readonly warmUpHours: number
}

/** What a series says. */
export interface Growth {
  readonly samples: number
  /** The median of the slopes of all pairs (Theil-Sen). */
  readonly mibPerHour: number
  /** With 99% certainty it grows at least this fast (Sen's interval, by Kendall's variance). */
  readonly atLeastMibPerHour: number
  /** From what slope on it counts as growth over this time, should all of the series lie on one line. */
  readonly countsFromMibPerHour: number
  /** Too few samples to say anything: {@link Growth.grows} is false then. */
  readonly judged: boolean
  readonly grows: boolean
}

/** Of the first fifth nothing is said: code is compiled, caches and pools of memory fill. */
const WARM_UP = 0.2
const FEWEST = 8
/** One-sided, 99%. */
const Z = 2.326

/** Whether memory grows. A single spike or a step of the noise does not move the median of all pairs. */
export function growthOf(series: readonly Point[], bound: GrowthBound): Growth {
  const points = series.slice(Math.ceil(series.length * WARM_UP)).filter(({ hours }) => hours >= bound.warmUpHours)
  const slopes = points
    .flatMap((to, index) => points.slice(0, index).map((from) => (to.mib - from.mib) / (to.hours - from.hours)))
    .toSorted((a, b) => a - b)
  const n = points.length
  const spread = Z * Math.sqrt((n * (n - 1) * (2 * n + 5)) / 18)
  const lowest = Math.floor((slopes.length - spread) / 2) - 1
  const judged = n >= FEWEST && lowest >= 0
  const atLeast = (judged ? slopes[lowest] : undefined) ?? Number.NEGATIVE_INFINITY
  const hours = (points.at(-1)?.hours ?? 0) - (points[0]?.hours ?? 0)
  const countsFromMibPerHour = Math.max(bound.mibPerHour, bound.mib / hours)
  return {
    samples: n,
    mibPerHour: median(slopes),
    atLeastMibPerHour: atLeast,
    countsFromMibPerHour,
    judged,
    grows: judged && atLeast > countsFromMibPerHour,
  }
}

function median(sorted: readonly number[]): number {
  const middle = sorted.length / 2
  const [low = 0, high = 0] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]]
  return (low + high) / 2
}
