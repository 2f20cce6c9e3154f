import { describe, expect, test } from 'vitest'
import { createSandglass } from '../../../src/index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()

describe.skipIf(skip)('a script that calls pip', () => {
  test('is told to declare packages even if it catches the failure', async () => {
    await using sandglass = await createSandglass({ engine: 'local', poolSize: 1 })
    const catches = `import subprocess, sys
try:
    subprocess.run([sys.executable, "-m", "pip", "install", "demo"], check=True, capture_output=True, timeout=5)
except Exception:
    pass
emit_result(1)`
    expect(await sandglass.run(catches)).toMatchObject({
      status: 'completed',
      finalData: 1,
      warnings: [{ code: 'pip_install', message: expect.stringContaining('dependencies: [...]') as string }],
    })
    const events = await Array.fromAsync(sandglass.stream('import os\nos.system("pip install demo")\nemit_result(1)'))
    expect(events.at(-1)).toMatchObject({ result: { warnings: [{ code: 'pip_install' }] } })
  })

  test('is told so once: in the error if there is one', async () => {
    await using sandglass = await createSandglass({ engine: 'local', poolSize: 1 })
    const { error, warnings } = await sandglass.run('!pip install demo\nimport demo')
    expect(error).toMatch(/SyntaxError.*A script cannot install packages/s)
    expect(warnings).toEqual([])
    const unknown = await sandglass.run('import os\nos.system("pip install no_such_module")\nimport no_such_module')
    expect(unknown.error).toMatch(/No module named 'no_such_module'.*A script cannot install packages/s)
    expect(unknown.warnings).toEqual([])
  })
})
