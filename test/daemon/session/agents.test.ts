import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSandglass, type Sandglass, type Workspace } from '../../../src/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'
import { endSessionProcess, ENDS_LATER, PROCESS_ENDED } from '../../support/end-of-session-process.ts'
import { UNCERTAIN_CALLS, uncertainTools } from '../../support/uncertain-writes.ts'

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const { skip, image } = await requireDockerEngine()

describe.skipIf(skip)('scripts of models in sessions of the engine docker', () => {
  let sg: Sandglass
  let workspace: Workspace
  beforeAll(async () => {
    sg = await createSandglass({ engine: 'docker', docker: { image }, poolSize: 0 })
    workspace = await sg.workspace()
  }, 60_000)
  afterAll(() => sg?.close())

  test('an agent gets a picture as an image, and is told of each rollback and of writes that may have acted', async () => {
    await using session = await workspace.session({ tools: uncertainTools() })
    const tool = sg.asTool({ session })
    const script = `${ENDS_LATER}\nn = 1\ndisplay({"image/png": "${PNG}", "text/plain": "a dot"}, raw=True)`
    const output = await tool.execute({ script })
    const answer = { ok: true, status: 'step-done' }
    expect(output).toEqual({ ...answer, displays: [{ text: 'a dot', picture: 'display-1.png' }] })
    const data = { type: 'data', data: PNG }
    expect(tool.toModelOutput({ output })).toMatchObject({
      value: [{ type: 'text' }, { type: 'file', data, mediaType: 'image/png', filename: 'display-1.png' }],
    })
    // The answer of the process comes after its copy.
    await session.variables()
    await endSessionProcess(workspace)
    expect(await tool.execute({ script: 'n' })).toEqual({ ...answer, value: '1', note: PROCESS_ENDED })
    const crashed = await tool.execute({ script: `n = 2\n${UNCERTAIN_CALLS}` })
    expect(crashed).toMatchObject({ ok: false, status: 'crashed', state: 'rolled-back' })
    expect(crashed.note).toMatch(/^your variables are as they were before.*had an effect: .*pay\(to="waits"\)$/)
    expect(await tool.execute({ script: 'n' })).toEqual({ ...answer, value: '1' })
  })

  test('steps of a task share variables, go back after a crash, and end with the answer from variables', async () => {
    const model = scriptedModel(
      'total = [1]',
      'total.append(2)\nimport ctypes; ctypes.string_at(0)',
      (prompt) => {
        expect(prompt).toContain('Variables are as they were before the script.')
        return 'n = 1 / 0'
      },
      'n = 1 / 0',
      (prompt) => {
        expect(prompt).toContain('outputs the answer from the data and the variables below')
        expect(prompt).toContain('- total: list, 1')
        return 'emit_result(total)'
      },
    )
    const options = { mode: 'interactive', session: true, workspace, maxRepetitions: 1, policy: 'off' } as const
    const result = await sg.solve('Anything', { model, ...options })
    expect(result).toMatchObject({ error: null, finalData: [1] })
  })
})
