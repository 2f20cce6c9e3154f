import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createSandglass } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { requireLocalEngine } from '../support/local-engine.ts'

const { skip } = await requireLocalEngine()
const packages = mkdtempSync(join(tmpdir(), 'sandglass-packages-'))
afterAll(() => rmSync(packages, { recursive: true }))

function install(name: string, tag: string): void {
  mkdirSync(join(packages, `${name}-1.0.dist-info`), { recursive: true })
  writeFileSync(join(packages, `${name}-1.0.dist-info`, 'WHEEL'), `Tag: ${tag}\n`)
  writeFileSync(join(packages, `${name}.py`), 'def double(n):\n    return 2 * n\n')
}

describe.skipIf(skip)('the packages of a sandbox', () => {
  test('are listed in the report and in prompts, and packages for another Python are reported at the start', async () => {
    install('doubles', 'py3-none-any')
    const model = scriptedModel('import doubles\nemit_result(doubles.double(2))')
    {
      await using sg = await createSandglass({ engine: 'local', packages, poolSize: 1 })
      expect((await sg.report()).probes['packages']).toEqual(['doubles 1.0'])
      const started =
        'import subprocess, sys\nemit_result(subprocess.check_output([sys.executable, "-c", PROGRAM], text=True))'
      const inputs = { PROGRAM: 'import doubles\nprint(doubles.double(2))' }
      expect(await sg.run(started, { inputs })).toMatchObject({ error: null, finalData: '4\n' })
      const given = { model, policy: 'standard' } as const
      expect((await sg.solve('Twice 2', given)).finalData).toBe(4)
      await sg.solve('Twice 2', { model, maxRetries: 0 })
      await sg.solve('Twice 2', { model, allowModules: ['doubles'] })
      expect(sg.asTool().description).toContain('Installed packages: doubles 1.0.')
    }
    // Under strict, only packages that may be imported are named.
    expect(model.prompts.map((prompt) => prompt.includes('Installed packages: doubles 1.0.'))).toEqual([
      true,
      false,
      true,
    ])
    install('native', 'cp39-cp39-manylinux_2_28_x86_64')
    const refused = createSandglass({ engine: 'local', packages, poolSize: 1 })
    await expect(refused).rejects.toMatchObject({
      code: 'packages_do_not_fit',
      message: expect.stringMatching(/native 1\.0 .* --python-version 3\.\d+ --only-binary=:all: native$/) as string,
    })
  })
})
