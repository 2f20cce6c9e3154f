import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Sandglass } from '../../../src/index.ts'
import { runnerOf } from '../driver/answer.ts'
import { twoAtOnce } from '../driver/case-tools.ts'
import type { EngineUnderTest } from '../driver/engine.ts'
import type { TestedEngine } from '../engines/tested.ts'

/* One defence per test: in other tests, a second defence would hide that it is missing. */

const CANARY = 'SANDGLASS_TEST_CANARY'

export async function defences(tested: TestedEngine): Promise<void> {
  const { skip, open } = await tested.ready()
  describe.skipIf(skip)(`a script against single defences on the ${tested.name} engine`, () => {
    const canary = randomBytes(12).toString('hex')
    let engine: EngineUnderTest
    let sg: Sandglass

    beforeAll(async () => {
      process.env[CANARY] = canary
      engine = open()
      sg = await engine.open({ poolSize: 2, maxOverflow: 0 })
    })
    afterAll(async () => {
      delete process.env[CANARY]
      await sg.close()
      await engine.close()
    })

    test('finds nothing of the environment of its host, in that of no process', async () => {
      // /proc shows the environment with which a process was started, whatever os.environ contains.
      const script =
        'import os\nfound, read = [], 0\nfor pid in filter(str.isdigit, os.listdir("/proc")):\n' +
        '    try: block = open(f"/proc/{pid}/environ", "rb").read()\n    except OSError: continue\n' +
        '    read += pid == str(os.getpid())\n    if name.encode() in block: found.append(pid)\nemit_result([read, found])'
      expect((await sg.run(script, { inputs: { name: CANARY } })).finalData).toEqual([1, []])
    })

    test('ends with its own result when it kills all that it can reach', async () => {
      const script =
        'import os, signal\ntry: os.kill(-1, signal.SIGKILL)\nexcept OSError: pass\nemit_result("still here")'
      const { status, finalData } = await sg.run(script)
      expect({ status, finalData }).toEqual({ status: 'completed', finalData: 'still here' })
      expect(await sg.run('emit_result(1)')).toMatchObject({ status: 'completed', finalData: 1 })
    })

    test('holds no other run by a value that is slow to check', async () => {
      const words = z.array(z.string().regex(/^(\w+\s?)*$/))
      const { status, error } = await sg.run('emit_result(["word " * 40 + "!"] * 20)', { output: words })
      expect({ status, error }).toEqual({
        status: 'failed',
        error: 'the result cannot be checked against the schema within 1000 ms',
      })
    }, 15_000)

    test('shows no secret in the form that repr writes', async () => {
      const secrets = { KEY: 'a "quoted" key\nover two lines \\ é' }
      const script = 'import os\nkey = os.environ["KEY"]\nprint({"k": key}, ascii(key))\nemit_result([repr(key)])'
      const { finalData, stdout } = await sg.run(script, { secrets })
      expect(JSON.stringify([finalData, stdout])).not.toMatch(/quoted|over two/)
    })

    test('has a uid on the host that no other living sandbox has', async (context) => {
      const { uidPerSandbox } = (await sg.report()).capabilities
      if (!uidPerSandbox) context.skip('the host is no root: its sandboxes have its own uid')
      const ids = (await twoAtOnce(runnerOf(sg))).flatMap(({ result }) => result?.sandbox.id ?? [])
      const uids = ids.map((id) => new Set(engine.processesOf(id).map(({ uid }) => uid)))
      expect(ids[0]).not.toBe(ids[1])
      expect(uids.map(({ size }) => size)).toEqual([1, 1])
      expect(new Set(uids.flatMap((of) => [...of])).size).toBe(2)
    })
  })
}
