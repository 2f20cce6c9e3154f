/** About five round numbers from 0 to at least the highest value. */
export function ticksUpTo(highest: number): number[] {
  const rough = Math.max(highest, Number.MIN_VALUE) / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((each) => each >= rough) ?? rough
  const count = Math.max(1, Math.ceil(highest / step - 1e-9))
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)))
}
