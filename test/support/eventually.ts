import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Polls until `probe` returns undefined, which means success; returns the last problem at the timeout. A pause counts twice its length
 * at most: while this process stands still, nothing arrives that a probe could find. The last probe begins after the timeout.
 */
export async function eventually(
  probe: () => string | undefined | Promise<string | undefined>,
  withinMs: number,
): Promise<string | undefined> {
  let leftMs = withinMs
  for (let pause = 2; ; pause = Math.min(pause * 2, 50)) {
    const isLast = leftMs <= 0
    const began = performance.now()
    const problem = await probe()
    if (problem === undefined || isLast) return problem
    const probed = performance.now()
    await sleep(pause)
    leftMs -= probed - began + Math.min(performance.now() - probed, 2 * pause)
  }
}

/** The same, but `probe` must return undefined without interruption for a time. */
export async function steadily(
  probe: () => string | undefined | Promise<string | undefined>,
  forMs: number,
  withinMs: number,
): Promise<string | undefined> {
  let since: number | undefined
  let problem: string | undefined
  const late = await eventually(async () => {
    problem = await probe()
    since = problem === undefined ? (since ?? performance.now()) : undefined
    return since !== undefined && performance.now() - since >= forMs ? undefined : 'not for long enough'
  }, withinMs + forMs)
  return late === undefined ? undefined : (problem ?? late)
}
