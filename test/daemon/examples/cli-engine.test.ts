import { afterAll, describe, expect, test } from 'vitest'
import { cliEngine } from '../../../examples/engine/cli-engine.ts'
import { createSandglass } from '../../../src/index.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'

const { skip, image } = await requireDockerEngine()

describe.skipIf(skip)('the engine of docs/writing-an-engine.md', () => {
  const engine = cliEngine({ program: 'docker', image })
  afterAll(() => engine.close())

  test('reports the enforced limits, and runs scripts', async () => {
    expect(await engine.report()).toMatchObject({ usable: true, level: 'container', reasons: [] })
    await using sg = await createSandglass({ engine, poolSize: 1 })
    const result = await sg.run('print("hello")\nemit_result(6 * 7)')
    expect([result.status, result.finalData, result.stdout]).toEqual(['completed', 42, 'hello\n'])
    expect((await sg.run('while True: pass', { limits: { executionTimeoutSec: 1 } })).status).toBe('timed-out')
  })

  test('refuses to start without the image, and gives the reason', async () => {
    const { usable, reasons } = await cliEngine({ program: 'docker', image: 'sandglass.invalid/none:1' }).report()
    expect([usable, reasons[0]?.code]).toEqual([false, 'harness_start_failed'])
    expect(reasons[0]?.message).toContain('sandglass.invalid/none')
  })
})
