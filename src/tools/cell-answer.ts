import { truncate, truncateAndCount } from '../support/index.ts'
import { mayHaveActed } from './call-effect.ts'

/** Maximum number of calls that a note lists, and characters of the arguments of each. */
const MAX_CALLS = 20
const MAX_ARGS = 100

/** The part of the result of a cell that a plain run does not have. */
export interface RanCell {
  /** The value of the last expression, if it is JSON. */
  readonly value?: unknown
  readonly state?: 'kept' | 'rolled-back' | 'lost'
  readonly checkpoint?: { readonly lacks: readonly string[] }
  /** The parts of the state that a rollback could not bring back. */
  readonly missing?: readonly string[]
  /** Names of the processes that the rollback ended. */
  readonly ended?: readonly string[]
  readonly warnings?: readonly { readonly code: string }[]
  readonly displays?: readonly { readonly kind: string; readonly data: Readonly<Record<string, string>> }[]
  readonly toolCalls?: readonly {
    readonly name: string
    readonly args?: unknown
    readonly effect: string | null
    readonly ok: boolean
    readonly error: { readonly code: string } | null
  }[]
}

/** The value of the last expression as Python shows it, or its JSON where nothing was shown; undefined if there is none. */
export function formatCellValue({ value = null, displays = [] }: RanCell): string | undefined {
  const shown = displays.findLast(({ kind }) => kind === 'result')?.data['text/plain']
  return shown ?? (value === null ? undefined : JSON.stringify(value))
}

/** Tells a model that its session has ended, why, if that is known, and where the next script runs. */
export function describeLoss(reason: string | undefined, next: 'nowhere' | 'empty session'): string {
  const where =
    next === 'nowhere' ? 'no further script can run in it' : 'the next script starts in a new, empty session'
  return `the session has ended: all variables are lost, and ${where}${reason === undefined ? '' : ` (${reason})`}`
}

/** The reason why a cell lost the state of its session. */
export function reasonOfLoss({ checkpoint }: Pick<RanCell, 'checkpoint'>): string | undefined {
  const lacks = checkpoint?.lacks ?? []
  return lacks.length === 0 ? undefined : `there was no checkpoint: ${lacks.join(', ')}`
}

/** Tells a model which variables it finds after a cell that did not keep its state, and what stays of that cell. */
export function describeState(ran: RanCell, max: number): string | undefined {
  const { state = 'kept', ended = [], missing = [], warnings = [] } = ran
  if (state === 'kept') return undefined
  const keepsFiles = warnings.every(({ code }) => code !== 'files_not_kept')
  const facts =
    state === 'lost'
      ? [
          describeLoss(reasonOfLoss(ran), 'nowhere'),
          `what the script wrote to files ${keepsFiles ? 'stays in the workspace' : 'is lost, too'}`,
        ]
      : [
          'your variables are as they were before this script',
          'what it wrote to files stays, except what it appended to files that were open before it',
        ]
  if (ended.length > 0) facts.push(`these processes were ended: ${ended.join(', ')}`)
  if (missing.length > 0) facts.push(`this could not be restored: ${missing.join('; ')}`)
  return truncateAndCount([...facts, ...writesOf(ran)].join('; '), max)
}

/** Describes the effects of host tools, because a rollback does not undo them. */
function writesOf({ toolCalls = [] }: RanCell): string[] {
  const done = toolCalls.filter(({ effect, ok }) => ok && effect === 'write')
  const uncertain = toolCalls.filter(mayHaveActed)
  return [
    ...(done.length === 0
      ? []
      : [`these calls of \`write\` tools were answered, and are not undone: ${describeCalls(done)}`]),
    ...(uncertain.length === 0
      ? []
      : [
          `these calls of \`write\` tools failed or were not answered, and may have had an effect: ${describeCalls(uncertain)}`,
        ]),
  ]
}

/** Includes the arguments, so that a model knows which calls it must not repeat. */
function describeCalls(calls: readonly { readonly name: string; readonly args?: unknown }[]): string {
  const texts = calls
    .slice(0, MAX_CALLS)
    .map(({ name, args }) => `${name}(${truncate(formatArguments(args), MAX_ARGS)})`)
  return [...texts, ...(calls.length > MAX_CALLS ? [`and ${calls.length - MAX_CALLS} more`] : [])].join(', ')
}

function formatArguments(args: unknown): string {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return ''
  return Object.entries(args)
    .map(([name, value]) => `${name}=${JSON.stringify(value) ?? ''}`)
    .join(', ')
}
