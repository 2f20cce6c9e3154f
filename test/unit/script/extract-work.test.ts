import { Session } from 'node:inspector/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findScript } from '../../../src/script/extract.ts'

// One session for all tests: to begin one, V8 gives up its optimized code.
const session = new Session()
beforeAll(async () => {
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
})
afterAll(() => session.disconnect())

/** The calls of functions of `src/script/` during some work: they count what a clock cannot, on a busy machine. */
async function countCalls(work: () => unknown): Promise<number> {
  await session.post('Profiler.takePreciseCoverage') // it counts from here
  work()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const functions = result.filter(({ url }) => url.includes('/src/script/')).flatMap((file) => file.functions)
  return functions.reduce((sum, { ranges: [range] }) => sum + (range?.count ?? 0), 0)
}

const nested = (levels: number): string => `${'<code>'.repeat(levels)}x = 1${'\n</code>\n"""\n```\n'.repeat(levels)}`

test.each<[string, (n: number) => string]>([
  ['fences without an end', (n) => '```python\n'.repeat(n)],
  ['fences in strings', (n) => '"""\n```\n'.repeat(n)],
  ['tags that never close', (n) => '<code>\n'.repeat(n)],
  ['tags in tags', nested],
  ['different tags in tags', (n) => '<code>\n<python>\n'.repeat(n)],
  ['thoughts within thoughts', (n) => '<think></think>'.repeat(n)],
  ['prose', (n) => 'Now we call f(x) and it is fine:\n'.repeat(n)],
])('the calls that an answer costs grow in proportion to its length: %s', async (_, answer) => {
  const [short, long] = [answer(500), answer(2000)]
  const calls = await countCalls(() => findScript(short))
  expect(calls).toBeGreaterThan(0)
  expect(await countCalls(() => findScript(long))).toBeLessThan(4.1 * calls)
})
