import { randomBytes } from 'node:crypto'
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Sandglass } from '../../../src/index.ts'
import { openDirectory } from '../../../test/support/state-directory.ts'
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

    test('cannot claim that what its caller gave it has failed', async () => {
      const claim = JSON.stringify({ type: 'error', kind: 'setup', message: 'the preamble failed', traceback: null })
      const script =
        'import os\nfor fd in range(3, 20):\n    try: os.write(fd, line.encode())\n    except OSError: pass'
      const options = { inputs: { line: `${claim}\n` }, preamble: 'rate = 1' }
      const { status, error, setupFailed } = await sg.run(script, options)
      expect({ status, error, setupFailed }).toEqual({
        status: 'failed',
        error: 'the preamble failed',
        setupFailed: false,
      })
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

    test('changes none of the packages that later runs import', async () => {
      const packages = openDirectory('packages')
      writeFileSync(join(packages, 'sg_demo.py'), 'VALUE = 1\n')
      // The host's modes are no second defence here.
      chmodSync(packages, 0o777)
      chmodSync(join(packages, 'sg_demo.py'), 0o666)
      const script = `import os, sg_demo
for attempt in (
    lambda: open(os.path.join(root, "sg_demo.py"), "w").write("VALUE = 2"),
    lambda: open(os.path.join(root, "sg_more.py"), "w").write("VALUE = 2"),
    lambda: os.mkdir(os.path.join(root, "sg_directory")),
    lambda: os.chmod(os.path.join(root, "sg_demo.py"), 0o644),
    lambda: os.rename(os.path.join(root, "sg_demo.py"), os.path.join(root, "sg_gone.py")),
    lambda: os.remove(os.path.join(root, "sg_demo.py")),
):
    try: attempt()
    except OSError: pass
emit_result(sg_demo.VALUE)`
      try {
        await using own = await engine.open({ poolSize: 1, packages })
        expect((await own.run(script, { inputs: { root: engine.packagesInside } })).finalData).toBe(1)
        expect(readdirSync(packages)).toEqual(['sg_demo.py'])
        expect(readFileSync(join(packages, 'sg_demo.py'), 'utf8')).toBe('VALUE = 1\n')
        expect((await own.run('import sg_demo\nemit_result(sg_demo.VALUE)')).finalData).toBe(1)
      } finally {
        rmSync(packages, { recursive: true })
      }
    })

    test('can neither read nor end another activity of its workspace', async (context) => {
      if ((await sg.report()).capabilities.workspaces !== true) return context.skip('this engine has no workspaces')
      await using workspace = await sg.workspace()
      await using neighbour = await workspace.start('cat', [], { env: { [CANARY]: canary } })
      const script = [
        'import os, signal',
        'found = []',
        'for pid in filter(str.isdigit, os.listdir("/proc")):',
        '    try: block = open(f"/proc/{pid}/environ", "rb").read()',
        '    except OSError: continue',
        '    if value.encode() in block: found.append(pid)',
        'try: os.kill(-1, signal.SIGKILL)',
        'except OSError: pass',
        'emit_result(found)',
      ].join('\n')
      expect((await workspace.run(script, { inputs: { value: canary } })).finalData).toEqual([])
      await neighbour.write('still here')
      expect((await neighbour.poll({ waitMs: 10_000 })).text).toBe('still here')
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
