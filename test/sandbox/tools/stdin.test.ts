import { expect, test } from 'vitest'
import { createSandglass } from '../../../src/sandglass.ts'
import { onLocal } from './on-engine.ts'

const SCRIPT = `import sys
emit_result([sys.stdin.buffer.readline().decode(), sys.stdin.buffer.read().hex()])`

await onLocal((at) => {
  test('a script and its programs read stdin, and nothing where none is given', async () => {
    const bytes = Buffer.from('é\n\u0000end')
    expect((await at.sg.run(SCRIPT, { stdin: bytes })).finalData).toEqual(['é\n', '00656e64'])
    const sizes = 'import subprocess\nemit_result(int(subprocess.check_output(["wc", "-c"])))'
    const large = 'x'.repeat(5_000_000)
    expect((await at.sg.run(sizes, { stdin: large })).finalData).toBe(5_000_000)
    expect((await at.sg.run(sizes)).finalData).toBe(0)
    expect((await at.sg.run('import os\nemit_result(os.listdir("/tmp"))', { stdin: 'x' })).finalData).toEqual([])
    await using workspace = await at.sg.workspace()
    expect((await workspace.run(sizes, { stdin: large })).finalData).toBe(5_000_000)
  }, 60_000)

  test('stdin that is no text or bytes, or too large, is refused', async () => {
    await expect(at.sg.run('1', { stdin: 1 as never })).rejects.toThrow('stdin: 1 is neither a string nor a Uint8Array')
    await expect(at.sg.run('1', { stdin: new Uint8Array(2 ** 24 + 1) })).rejects.toThrow('stdin: 16777217 bytes')
  }, 60_000)
})

test('Python in WebAssembly reads stdin, too', async () => {
  await using sg = await createSandglass({ engine: 'pyodide' })
  const script = 'import sys\nemit_result([input(), sys.stdin.read()])'
  expect((await sg.run(script, { stdin: 'a\nb\n' })).finalData).toEqual(['a', 'b\n'])
}, 120_000)
