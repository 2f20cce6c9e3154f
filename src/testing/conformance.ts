import { registerApprovalTests } from './conformance/approvals.ts'
import { registerCheckTests } from './conformance/checks.ts'
import { registerFileTests } from './conformance/files.ts'
import {
  type CaseSelection,
  type ConformanceCase,
  type ConformanceOptions,
  createFixture,
  type DeclareTest,
  type Fixture,
} from './conformance/fixture.ts'
import { registerImportTests } from './conformance/imports.ts'
import { registerIsolationTests } from './conformance/isolation.ts'
import { registerLifeTests } from './conformance/life.ts'
import { registerLimitTests } from './conformance/limits.ts'
import { registerOutputTests } from './conformance/output.ts'
import { registerPythonToolTests } from './conformance/python-tools.ts'
import { registerReuseTests } from './conformance/reuse.ts'
import { registerRunTests } from './conformance/runs.ts'
import { registerToolTimeTests } from './conformance/tool-time.ts'
import { registerToolTests } from './conformance/tools.ts'
import { registerValueTests } from './conformance/values.ts'
import { registerSessionTests } from './conformance/sessions.ts'
import { registerWorkspaceTests } from './conformance/workspaces.ts'
import { registerWrapperCodeTests } from './conformance/wrapper-code.ts'

export type { CaseSelection, ConformanceCase, ConformanceOptions, TestBody, Wall } from './conformance/fixture.ts'

/**
 * Declares the tests that every engine must pass, with the caller's test runner. A test that needs something the engine's
 * `report()` says is missing is skipped, and the reason printed; everything else must hold. Each frame that a harness
 * sends is checked against the schema of the protocol.
 *
 * ```ts
 * import { describe, it } from 'vitest' // or from 'node:test'
 * engineConformance({ name: 'mine', makeEngine: () => myEngine(), describe, it })
 * ```
 */
export function engineConformance(options: ConformanceOptions): void {
  const selected = selectCases(conformanceCases(), options.only)
  options.describe(`engine ${options.name}`, () => {
    const at = createFixture(options)
    for (const [part, declare] of PARTS) {
      const titles = new Set(selected.filter((one) => one.part === part).map(({ title }) => title))
      // A test runner may refuse a group without tests.
      if (titles.size === 0) continue
      const test: DeclareTest = (title, ...more) => {
        if (titles.has(title)) at.test(title, ...more)
      }
      options.describe(part, () => declare({ ...at, test }))
    }
    at.test('gives back everything that it took', ['engine'], async () => at.close())
  })
}

/** Every case of the suite with its walls, in the order in which they run. */
export function conformanceCases(): readonly ConformanceCase[] {
  const at = createFixture(NO_ENGINE)
  return PARTS.flatMap(([part, declare]) => {
    const cases: ConformanceCase[] = []
    declare({ ...at, test: (title, walls) => cases.push({ part, title, walls }) })
    return cases
  })
}

/**
 * The cases that {@link engineConformance} runs with this selection.
 * @throws TypeError for a `sampleEvery` that is not a whole number from 1 on.
 */
export function selectCases(
  cases: readonly ConformanceCase[],
  only: CaseSelection | undefined,
): readonly ConformanceCase[] {
  if (only === undefined) return cases
  if (!Number.isInteger(only.sampleEvery) || only.sampleEvery < 1) {
    throw new TypeError(`only.sampleEvery: ${only.sampleEvery} is not a whole number from 1 on`)
  }
  const others = cases.filter(({ walls }) => !walls.some((wall) => only.walls.includes(wall)))
  const sample = new Set(others.filter((_, index) => index % only.sampleEvery === 0))
  return cases.filter((one) => !others.includes(one) || sample.has(one))
}

/** Declaring a case starts nothing: the list of cases needs no engine. */
const NO_ENGINE: ConformanceOptions = {
  name: 'none',
  makeEngine: () => Promise.reject(new Error('a list of cases has no engine')),
  describe: () => undefined,
  it: () => undefined,
}

const PARTS: readonly (readonly [string, (at: Fixture) => void])[] = [
  ['life', registerLifeTests],
  ['runs', registerRunTests],
  ['reuse', registerReuseTests],
  ['values', registerValueTests],
  ['output', registerOutputTests],
  ['tools', registerToolTests],
  ['tool time', registerToolTimeTests],
  ['approvals', registerApprovalTests],
  ['Python tools', registerPythonToolTests],
  ['checks', registerCheckTests],
  ['wrapper code', registerWrapperCodeTests],
  ['files', registerFileTests],
  ['imports', registerImportTests],
  ['isolation', registerIsolationTests],
  ['limits', registerLimitTests],
  ['workspaces', registerWorkspaceTests],
  ['sessions', registerSessionTests],
]
