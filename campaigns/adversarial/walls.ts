import type { CaseSelection, Wall } from '../../src/testing/index.ts'
import { CONFORMANCE, isFull } from '../../test/support/walls.ts'
import { type AcceptanceCase, GROUPS } from './driver/case.ts'
import type { TestedEngine } from './engines/tested.ts'

/** The walls of conformance, and `host`: the library in the embedder's process, which is the same for every engine. */
export type AttackedWall = Wall | 'host'

/** The walls that decide the cases of a group; {@link WALLS_OF_CASE} names other ones for single cases. */
const WALLS_OF_GROUP: Readonly<Record<string, readonly AttackedWall[]>> = {
  // Controls: where they fail, the other results prove nothing.
  'benign-control': ['broker', 'channel', 'engine'],
  'ast-validator': ['harness'],
  'tool-bridge': ['host'],
  'harness-tampering': ['broker'],
  timeouts: ['broker', 'webassembly'],
  'resource-exhaustion': ['kernel', 'webassembly'],
  protocol: ['broker'],
  'isolation-and-processes': ['kernel'],
  secrets: ['host'],
  'files-and-artifacts': ['kernel'],
  network: ['kernel', 'webassembly'],
  pool: ['host'],
  'host-faults': ['engine'],
  'wasm-pyodide': ['webassembly'],
  'parsing-and-prompts': ['host'],
  bash: ['broker'],
  javascript: ['broker'],
}

const WALLS_OF_CASE: Readonly<Record<string, readonly AttackedWall[]>> = {
  'FS-018': ['harness'],
  'CTL-006': ['harness', 'webassembly'],
  'CTL-010': ['kernel', 'harness'],
  'CTL-028': ['kernel', 'broker'],
  'CTL-031': ['harness', 'webassembly'],
  'CTL-036': ['harness'],
  'CTL-038': ['kernel', 'broker'],
  'CTL-046': ['harness', 'webassembly'],
  'CTL-048': ['harness', 'webassembly'],
  'ISO-023': ['engine', 'kernel'],
  'ISO-051': ['engine', 'kernel'],
  'POL-013': ['host', 'engine'],
  'PRO-011': ['harness', 'host'],
  'PRO-014': ['host', 'channel'],
  'PRO-015': ['host'],
  'PRO-018': ['harness', 'host'],
  'PRO-020': ['broker', 'channel'],
  'PRO-029': ['harness'],
  'PRO-030': ['harness'],
  'PRO-037': ['broker', 'channel'],
  'PRO-041': ['host'],
  'PRO-042': ['host'],
  'PRO-046': ['harness'],
  'RES-027': ['broker', 'channel'],
  'RES-029': ['broker', 'channel'],
  'RES-033': ['broker', 'kernel'],
  'RES-035': ['harness'],
  'RPC-018': ['broker', 'host'],
  'SEC-001': ['engine'],
  'SEC-002': ['engine'],
  'SEC-004': ['broker'],
  'SEC-012': ['engine'],
}

/**
 * Cases that attack a workspace or a program in it: links, names and globs of its files, and what programs leave. Its broker
 * decides them. They run in `suites/workspace.ts`.
 */
export const IN_WORKSPACE: ReadonlySet<string> = new Set([
  'FS-001',
  'FS-003',
  'FS-006',
  'FS-008',
  'FS-012',
  'FS-017',
  'FS-020',
  'FS-021',
  'FS-023',
  'FS-024',
  'FS-026',
  'FS-032',
  'FS-035',
  'SH-003',
  'SH-007',
  'SH-009',
  'SH-011',
  'SH-012',
  'SH-016',
  'SH-018',
  'SH-020',
  'SH-021',
  'JS-002',
  'JS-005',
  'JS-013',
])

/** The walls that decide whether an acceptance case holds. */
export function wallsOf({ id, group }: Pick<AcceptanceCase, 'id' | 'group'>): readonly AttackedWall[] {
  if (IN_WORKSPACE.has(id)) return ['broker']
  return WALLS_OF_CASE[id] ?? WALLS_OF_GROUP[group] ?? []
}

/** The ids of the cases with walls of their own. A test compares them with the cases that exist. */
export const SINGLED_OUT: readonly string[] = Object.keys(WALLS_OF_CASE)

/** True for a case of the groups of an engine, or one that it names beside them. */
export function isRun(
  { groups = GROUPS, also = [] }: Pick<TestedEngine, 'groups' | 'also'>,
  { id, group }: Pick<AcceptanceCase, 'id' | 'group'>,
): boolean {
  return groups.includes(group) || also.includes(id)
}

/** The cases that an engine runs: those that one of its walls decides, and every nth of the rest. */
export function selectAttacks<Case>(
  engine: string,
  cases: readonly Case[],
  walls: (one: Case) => readonly AttackedWall[],
): readonly Case[] {
  const only = isFull() ? undefined : selectionOf(engine)
  if (only === undefined) return cases
  const isDecided = (one: Case): boolean => walls(one).some((wall) => wall !== 'host' && only.walls.includes(wall))
  const others = cases.filter((one) => !isDecided(one))
  return cases.filter((one) => isDecided(one) || others.indexOf(one) % only.sampleEvery === 0)
}

/** The walls from the table of the conformance suite. */
function selectionOf(engine: string): CaseSelection | undefined {
  return Object.hasOwn(CONFORMANCE, engine) ? CONFORMANCE[engine as keyof typeof CONFORMANCE] : undefined
}
