import { setTimeout as sleep } from 'node:timers/promises'

/** Polls until `probe` returns undefined, which means success; returns the last problem at the timeout. */
export async function eventually(
  probe: () => string | undefined | Promise<string | undefined>,
  withinMs: number,
): Promise<string | undefined> {
  const deadline = performance.now() + withinMs
  for (let pause = 2; ; pause = Math.min(pause * 2, 50)) {
    const problem = await probe()
    if (problem === undefined || performance.now() > deadline) return problem
    await sleep(pause)
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
