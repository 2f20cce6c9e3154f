import { aroundTests } from './conformance/around.ts'
import { checkTests } from './conformance/checks.ts'
import { bed, type Bed, type ConformanceOptions } from './conformance/bed.ts'
import { fileTests } from './conformance/files.ts'
import { importTests } from './conformance/imports.ts'
import { isolationTests } from './conformance/isolation.ts'
import { lifeTests } from './conformance/life.ts'
import { limitTests } from './conformance/limits.ts'
import { outputTests } from './conformance/output.ts'
import { pythonToolTests } from './conformance/python-tools.ts'
import { reuseTests } from './conformance/reuse.ts'
import { runTests } from './conformance/runs.ts'
import { toolTests } from './conformance/tools.ts'
import { valueTests } from './conformance/values.ts'

export type { ConformanceOptions, TestBody } from './conformance/bed.ts'

/**
 * Declares the tests that every engine must pass, with the caller's test runner. What the engine's `report()` says is
 * missing is skipped, and the reason printed; everything else must hold. Each frame that a harness sends is checked
 * against the schema of the protocol.
 *
 * ```ts
 * import { describe, it } from 'vitest' // or from 'node:test'
 * engineConformance({ name: 'mine', makeEngine: () => myEngine(), describe, it })
 * ```
 */
export function engineConformance(options: ConformanceOptions): void {
  options.describe(`engine ${options.name}`, () => {
    const at = bed(options)
    for (const [name, declare] of PARTS) options.describe(name, () => declare(at))
    at.test('gives back everything that it took', async () => at.close())
  })
}

const PARTS: readonly (readonly [string, (at: Bed) => void])[] = [
  ['life', lifeTests],
  ['runs', runTests],
  ['reuse', reuseTests],
  ['values', valueTests],
  ['output', outputTests],
  ['tools', toolTests],
  ['Python tools', pythonToolTests],
  ['checks', checkTests],
  ['around', aroundTests],
  ['files', fileTests],
  ['imports', importTests],
  ['isolation', isolationTests],
  ['limits', limitTests],
]
