import { conformanceCases, selectCases } from '../../src/testing/index.ts'
import { conformanceOf, TESTED_ENGINES } from '../../test/support/walls.ts'
import { readCases, readLaterCases } from './driver/case.ts'
import type { TestedEngine } from './engines/tested.ts'
import { DOCKER } from './engines/tested-docker.ts'
import { KUBERNETES } from './engines/tested-kubernetes.ts'
import { LOCAL } from './engines/tested-local.ts'
import { PYODIDE } from './engines/tested-pyodide.ts'
import { FRESH } from './fresh/cases/index.ts'
import { type AttackedWall, IN_WORKSPACE, isRun, selectAttacks, wallsOf } from './walls.ts'

/** A case of a suite that runs on several engines. */
export interface PlannedCase {
  readonly suite: 'conformance' | 'cases' | 'fresh'
  readonly name: string
  /** The walls that decide the outcome. */
  readonly walls: readonly AttackedWall[]
  /** The engines on which it runs. */
  readonly engines: readonly string[]
}

const ATTACKED: readonly TestedEngine[] = [LOCAL, DOCKER, PYODIDE, KUBERNETES]

/** Lists every case of the conformance and adversarial suites with its engines, except cases that need a later feature. */
export function plannedCases(): PlannedCase[] {
  return [...plannedConformance(), ...plannedAcceptance(), ...plannedFresh()]
}

/** Formats one line per case with its walls and engines. */
export function planTable(cases: readonly PlannedCase[]): string {
  const width = Math.max(...cases.map(({ walls }) => walls.join(' ').length))
  const counts = TESTED_ENGINES.map(
    (engine) => `${engine} ${cases.filter(({ engines }) => engines.includes(engine)).length}`,
  )
  return [
    ...cases.map(({ suite, name, walls, engines }) =>
      [suite.padEnd(11), walls.join(' ').padEnd(width), engines.join(' ').padEnd(38), name].join('  '),
    ),
    `${cases.length} cases: ${counts.join(', ')}`,
  ].join('\n')
}

function plannedConformance(): PlannedCase[] {
  const cases = conformanceCases()
  const selected = TESTED_ENGINES.map((engine) => [engine, selectCases(cases, conformanceOf(engine).only)] as const)
  return cases.map((one) => ({
    suite: 'conformance',
    name: `${one.part} > ${one.title}`,
    walls: one.walls,
    engines: selected.filter(([, those]) => those.includes(one)).map(([engine]) => engine),
  }))
}

function plannedAcceptance(): PlannedCase[] {
  const later = new Set(readLaterCases().map(({ id }) => id))
  const all = readCases().filter(({ id }) => !later.has(id))
  const cases = all.filter(({ id }) => !IN_WORKSPACE.has(id))
  const runsOn = (engine: TestedEngine, given: (typeof cases)[number]): boolean => {
    const { name, excluded } = engine
    const reason = excluded.get(given.id)
    // A case with a separate test runs in that test.
    if (reason !== undefined) return 'file' in reason
    return isRun(engine, given) && selectAttacks(name, cases, wallsOf).includes(given)
  }
  return all.map((given) => ({
    suite: 'cases',
    name: `${given.id} ${given.title}`,
    walls: wallsOf(given),
    engines: IN_WORKSPACE.has(given.id)
      ? [LOCAL.name, DOCKER.name]
      : ATTACKED.filter((engine) => runsOn(engine, given)).map(({ name }) => name),
  }))
}

function plannedFresh(): PlannedCase[] {
  const all = FRESH.flatMap(([, cases, walls]) => cases.map((given) => ({ given, walls })))
  const runsOn = (engine: TestedEngine, one: (typeof all)[number]): boolean => {
    const mine = all.filter(({ given }) => given.engines.some((name) => name === engine.name))
    return selectAttacks(engine.name, mine, ({ walls }) => walls).includes(one)
  }
  return all.map((one) => ({
    suite: 'fresh',
    name: `${one.given.id} ${one.given.title}`,
    walls: one.walls,
    engines: ATTACKED.filter((engine) => runsOn(engine, one)).map(({ name }) => name),
  }))
}
