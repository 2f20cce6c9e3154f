import { expect, test } from 'vitest'
import { testPrograms } from '../../support/program-rules.ts'
import { inWorkspace } from '../../support/workspace-on-local.ts'

await inWorkspace((at) => {
  testPrograms(at)

  test('WS-17: a reader gets every byte however slow it is; the program waits', async () => {
    await using program = await at.ws.start('python3', [
      '-c',
      'import sys; sys.stdout.buffer.write(bytes(range(256)) * 20_000)',
    ])
    let count = 0
    let isWhole = true
    for await (const { stream, bytes } of program.output) {
      isWhole &&= stream === 'stdout' && bytes.every((byte, index) => byte === (count + index) % 256)
      count += bytes.length
      await new Promise(setImmediate)
    }
    expect([count, isWhole]).toEqual([256 * 20_000, true])
  })

  test('a program that does not exist cannot be started', async () => {
    await expect(at.ws.start('no-such-program')).rejects.toMatchObject({ code: 'program_not_found' })
  })
})
