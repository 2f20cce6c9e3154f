import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createSandglass } from '../../../../src/index.ts'
import { scopedDirectory } from '../../../support/engines/local/state-dir.ts'
import { requireLocalEngine } from '../../../support/local-engine.ts'

const { skip } = await requireLocalEngine()
const RUNS = 5

describe.skipIf(skip)('a sandbox whose zygote takes memory at every fork', () => {
  test.each([
    [20, 'ends with the run after it holds 16 MiB more than at start', [1, 2, 1, 2, 1]],
    [2, 'serves on below that', [1, 2, 3, 4, 5]],
  ])('%i MiB: %s', async (mebibytes, _what, uses) => {
    using tools = scopedDirectory('tools')
    writeFileSync(join(tools.path, 'grow.py'), leakOf(mebibytes))
    await using sg = await createSandglass({ engine: 'local', toolsDir: tools.path, poolSize: 1, maxOverflow: 0 })
    const results = []
    for (let n = 0; n < RUNS; n += 1) results.push(await sg.run('emit_result(1)'))
    expect(results.map(({ status }) => status)).toEqual(Array(RUNS).fill('completed'))
    expect(results.map(({ sandbox }) => sandbox.use)).toEqual(uses)
  })
})

/** A file of tools that leaks like a library with a handler of forks, which runs in the process that forks. No script reaches that. */
function leakOf(mebibytes: number): string {
  return `import os

_kept = []
os.register_at_fork(after_in_parent=lambda: _kept.append(b"x" * (${mebibytes} << 20)))
`
}
