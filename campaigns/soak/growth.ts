/** One measurement of memory. */
export interface Point {
  readonly hours: number
  readonly mib: number
}

/** Growth counts as a leak when it exceeds both `mibPerHour` and `mib`. */
export interface GrowthBound {
  readonly mibPerHour: number
  /** Over the whole time. A short run grows less than this while code is compiled and caches fill. */
  readonly mib: number
  /** Minimum time at the start that is ignored. */
  readonly warmUpHours: number
}

/** The growth of a series. */
export interface Growth {
  readonly samples: number
  /** The median of the slopes of all pairs (Theil-Sen). */
  readonly mibPerHour: number
  /** Lower bound of the slope with 99% confidence (Sen's interval, by Kendall's variance). */
  readonly atLeastMibPerHour: number
  /** The slope above which a straight series of this duration counts as growth. */
  readonly countsFromMibPerHour: number
  /** False when there are too few samples; {@link Growth.grows} is then false as well. */
  readonly judged: boolean
  readonly grows: boolean
}

/** The first fifth is ignored: code is compiled, caches and memory pools fill. */
const WARM_UP = 0.2
const MIN_SAMPLES = 8
/** One-sided, 99%. */
const Z = 2.326

/** Tests a series for growth. A single spike or noise does not move the median of all pairs. */
export function growthOf(series: readonly Point[], bound: GrowthBound): Growth {
  const points = series.slice(Math.ceil(series.length * WARM_UP)).filter(({ hours }) => hours >= bound.warmUpHours)
  const slopes = points
    .flatMap((to, index) => points.slice(0, index).map((from) => (to.mib - from.mib) / (to.hours - from.hours)))
    .toSorted((a, b) => a - b)
  const n = points.length
  const spread = Z * Math.sqrt((n * (n - 1) * (2 * n + 5)) / 18)
  const lowest = Math.floor((slopes.length - spread) / 2) - 1
  const judged = n >= MIN_SAMPLES && lowest >= 0
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
