import { expect, test } from 'vitest'
import { done, error, frame, play } from './wire.ts'
import { stallDuring } from '../../support/stall.ts'

test('a text with many gaps is redacted in linear time', async () => {
  const gap = '\n... 12 characters left out ...\n'
  const long = `${'a'.repeat(100_000)}b`
  const text = `${'a'.repeat(200_000)}c${gap.repeat(10_000)}${'a'.repeat(99_000)}c`
  const stall = await stallDuring(() =>
    play([error(text), frame('stdout', { text: `${'a'.repeat(99_000)}c` }), done()], {
      request: { secrets: { LONG: long } },
      limits: { maxOutputBytes: 4 * 1024 * 1024 },
    }),
  )
  expect(stall).toBeLessThan(2000)
})
