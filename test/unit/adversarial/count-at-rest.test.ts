import { expect, test } from 'vitest'
import { countAtRest } from '../../../campaigns/adversarial/driver/count-at-rest.ts'

const PROCESS = { pid: 1, parent: 0, state: 'S', uid: 1, insidePid: 1 }

/** An engine whose sandbox has so many processes, one number each time that they are counted. */
function engineWith(...counts: readonly number[]): Parameters<typeof countAtRest>[0] {
  let asked = 0
  const next = (): number => counts[Math.min(asked++, counts.length - 1)] ?? 0
  return { name: 'kubernetes', processesOf: () => Array.from({ length: next() }, () => PROCESS) }
}

test('the processes of an idle sandbox are counted when two counts in a row are equal', async () => {
  expect(await countAtRest(engineWith(2, 2, 3, 4, 4), 'one')).toBe(4)
})

test('a sandbox without processes, which is gone or runs elsewhere, is an error and no endless wait', async () => {
  await expect(countAtRest(engineWith(0), 'one', 200)).rejects.toThrow(
    'the sandbox one has 0 processes after 200 ms, and needs 3 at rest',
  )
})
