import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Workspace } from '../../../src/options.ts'
import { createSandglass, type Sandglass } from '../../../src/sandglass.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'
import { testHostileActivities } from '../../support/hostile-activities.ts'

const { skip, image } = await requireDockerEngine()

describe.skipIf(skip)('in a workspace of the engine docker', () => {
  let sg: Sandglass
  let ws: Workspace
  beforeAll(async () => {
    sg = await createSandglass({ engine: 'docker', docker: { image }, poolSize: 0 })
    ws = await sg.workspace({ files: { 'in/a.txt': 'hello' } })
  }, 60_000)
  afterAll(() => sg.close())

  test('WS-04, WS-13: files, programs and scripts share a directory', async () => {
    const { exitCode, stdout } = await ws.exec('sh', ['-c', 'wc -c < in/a.txt; exit 3'])
    expect([exitCode, stdout.trim()]).toEqual([3, '5'])
    expect((await ws.run('open("out.txt", "w").write("x"); emit_result(open("in/a.txt").read())')).finalData).toBe(
      'hello',
    )
    expect(Buffer.from(await ws.get('out.txt')).toString()).toBe('x')
    await expect(ws.put({ '../x': 'y' })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  testHostileActivities({
    get ws() {
      return ws
    },
  })
})
