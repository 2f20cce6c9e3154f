/**
 * The least of up to `attempts` measurements. One of at most `enough` is the last: other work on the machine only adds to a time, so
 * what keeps its bound once can keep it. An attempt that fails ends all.
 */
export async function leastOf(attempts: number, enough: number, measure: () => Promise<number>): Promise<number> {
  let least = Infinity
  for (let attempt = 0; attempt < attempts && least > enough; attempt += 1) least = Math.min(least, await measure())
  return least
}

/** Measures how many milliseconds an action takes. */
export async function measureMs(action: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await action()
  return performance.now() - start
}
