import type { RunOptions } from '../../../src/options/index.ts'
import type { AcceptanceCase } from './case.ts'
import { fillIn, type Fixtures } from './fixtures.ts'
import { isPythonExpression, evaluateText, scriptOf } from './material.ts'

/** One script run of a case. */
export interface CaseRun {
  readonly script: string
  readonly options: RunOptions
}

/** The kinds of case that run plain scripts on an engine. */
export const SCRIPT_KINDS: readonly string[] = [
  'python_script',
  'script_list',
  'script_generator',
  'config_values',
  'run_request',
  'pyodide_script',
]

/** The script runs of a case; with `together`, all of them start at once. */
export function runsOf(given: AcceptanceCase, fixtures: Fixtures): { runs: readonly CaseRun[]; together: boolean } {
  const makeRun = (script: string, options: RunOptions = {}): CaseRun => ({ script: fillIn(script, fixtures), options })
  if (given.id === 'PRO-042') return { runs: makeTaggedRuns(given, fixtures), together: true }
  switch (given.kind) {
    case 'python_script':
    case 'pyodide_script':
    case 'script_generator':
      return { runs: [makeRun(scriptOf(given))], together: false }
    case 'script_list':
      return { runs: (given.script_or_input as string[]).map((script) => makeRun(script)), together: false }
    case 'config_values':
      return { runs: valuesOf(given).map((value) => makeRun(...scriptWithTimeout(given, value))), together: false }
    case 'run_request':
      return { runs: makeSecretRequests(given), together: false }
    default:
      throw new Error(`${given.id}: the driver does not know the kind ${given.kind}; add it to runsOf`)
  }
}

function valuesOf({ script_or_input: material }: AcceptanceCase): unknown[] {
  const values = (material as unknown[]).map((value) => (isPythonExpression(value) ? evaluateText(value) : value))
  // JSON has no NaN: the cases write it as text. Both the text and the number are tested.
  return values.flatMap((value) => (value === 'NaN' ? [value, Number.NaN] : [value]))
}

/** Uses an invalid value for the option that the case is about: only TIM-024, the execution timeout, has such values. */
function scriptWithTimeout({ id }: AcceptanceCase, value: unknown): [string, RunOptions] {
  if (id !== 'TIM-024')
    throw new Error(`${id}: only TIM-024 has the kind config_values; add the option that this case sets`)
  // An endless script: an accepted value must still end it, because no value may mean "no limit".
  return ['while True:\n    pass', { limits: { executionTimeoutSec: value as number } }]
}

/** One run that requires all secrets, then one run per secret; a single run when the case requires no secrets. */
function makeSecretRequests({ script_or_input: material }: AcceptanceCase): CaseRun[] {
  const { required_secrets: names, script } = material as { required_secrets?: string[]; script: string }
  if (names === undefined) return [{ script, options: {} }]
  return [names, ...names.map((name) => [name])].map((requiredSecrets) => ({ script, options: { requiredSecrets } }))
}

function makeTaggedRuns(given: AcceptanceCase, fixtures: Fixtures): CaseRun[] {
  return ['a', 'b'].map((tag) => ({
    script: fillIn(scriptOf(given), fixtures, new Map([['RUN_TAG', tag]])),
    options: { executionId: 'dup' },
  }))
}
