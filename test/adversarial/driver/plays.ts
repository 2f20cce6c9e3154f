import type { RunOptions } from '../../../src/options.ts'
import type { AcceptanceCase } from './case.ts'
import { filledIn, type Fixtures } from './fixtures.ts'
import { isPythonExpression, evaluateText, scriptOf } from './material.ts'

/** One run of a case. */
export interface Play {
  readonly script: string
  readonly options: RunOptions
}

/** The kinds whose runs are plain scripts on an engine. */
export const SCRIPT_KINDS: readonly string[] = [
  'python_script',
  'script_list',
  'script_generator',
  'config_values',
  'run_request',
  'pyodide_script',
]

/** The runs that a case is made of; `together` when they start at once. */
export function playsOf(given: AcceptanceCase, fixtures: Fixtures): { plays: readonly Play[]; together: boolean } {
  const play = (script: string, options: RunOptions = {}): Play => ({ script: filledIn(script, fixtures), options })
  if (given.id === 'PRO-042') return { plays: tagged(given, fixtures), together: true }
  switch (given.kind) {
    case 'python_script':
    case 'pyodide_script':
    case 'script_generator':
      return { plays: [play(scriptOf(given))], together: false }
    case 'script_list':
      return { plays: (given.script_or_input as string[]).map((script) => play(script)), together: false }
    case 'config_values':
      return { plays: valuesOf(given).map((value) => play(...configured(given, value))), together: false }
    case 'run_request':
      return { plays: requests(given), together: false }
    default:
      throw new Error(`${given.id}: no way to run the kind ${given.kind}`)
  }
}

function valuesOf({ script_or_input: material }: AcceptanceCase): unknown[] {
  const values = (material as unknown[]).map((value) => (isPythonExpression(value) ? evaluateText(value) : value))
  // JSON cannot write it: the text is a value of its own.
  return values.flatMap((value) => (value === 'NaN' ? [value, Number.NaN] : [value]))
}

/** A value that does not belong there, where the case says that it goes. */
function configured({ id }: AcceptanceCase, value: unknown): [string, RunOptions] {
  if (id !== 'TIM-024') throw new Error(`${id}: nothing is configured by its values`)
  // An accepted value must still end this: none means "no limit".
  return ['while True:\n    pass', { limits: { executionTimeoutSec: value as number } }]
}

/** All the names at once, and each by itself; or just the script. */
function requests({ script_or_input: material }: AcceptanceCase): Play[] {
  const { required_secrets: names, script } = material as { required_secrets?: string[]; script: string }
  if (names === undefined) return [{ script, options: {} }]
  return [names, ...names.map((name) => [name])].map((requiredSecrets) => ({ script, options: { requiredSecrets } }))
}

function tagged(given: AcceptanceCase, fixtures: Fixtures): Play[] {
  return ['a', 'b'].map((tag) => ({
    script: filledIn(scriptOf(given), fixtures, new Map([['RUN_TAG', tag]])),
    options: { executionId: 'dup' },
  }))
}
