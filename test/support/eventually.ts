import { setTimeout as sleep } from 'node:timers/promises'

/** Polls until `probe` gives undefined, its word for "as it must be"; what it said last when the time is over. */
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
