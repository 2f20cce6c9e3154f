import type { CellEnd, ExecutionResult } from '../executor/index.ts'
import { truncateMiddle } from '../support/index.ts'
import { describeLoss, reasonOfLoss, selectTold } from '../tools/index.ts'

/** Maximum characters of the output of a cell in the prompts of later steps. */
const MAX_OUTPUT = 4000
const OUTPUT_LABEL = 'output'
/** The label of what the host tells about the session. */
export const SESSION_LABEL = 'session'
const WARNING_LABEL = 'warning'
const ROLLED_BACK = 'session_rolled_back'

/** An item that a step did not emit itself. */
export interface NotedItem {
  readonly label: string
  readonly data: string
}

/** The output of a step that ran as a cell, as items for later steps: printed text with the value of the last expression. */
export function listShown({ stdout, displays }: ExecutionResult, { value }: CellEnd): NotedItem[] {
  const result = displays.findLast(({ kind }) => kind === 'result')?.data['text/plain']
  const shown = result ?? (value === null ? '' : JSON.stringify(value))
  const text = [stdout.trimEnd(), shown].filter((part) => part !== '').join('\n')
  return text === '' ? [] : [{ label: OUTPUT_LABEL, data: truncateMiddle(text, MAX_OUTPUT) }]
}

/** The warnings of a step that a model is told, as items for later steps. */
export function listWarnings(warnings: ExecutionResult['warnings']): NotedItem[] {
  return selectTold(warnings).map(({ code, message }) => ({
    label: code === ROLLED_BACK ? SESSION_LABEL : WARNING_LABEL,
    data: message,
  }))
}

/** The warnings of a script that failed, as texts for the feedback. {@link describeVariables} tells that of an earlier rollback. */
export function describeWarnings(warnings: ExecutionResult['warnings']): string[] {
  return selectTold(warnings)
    .filter(({ code }) => code !== ROLLED_BACK)
    .map(({ message }) => message)
}

/** Tells a model which variables exist after a cell that failed. */
export function describeVariables(end: CellEnd, warnings: ExecutionResult['warnings'] = []): string {
  const { state, missing, ended } = end
  const rollback = findEarlierRollback(warnings)
  const before = rollback === undefined ? [] : [`Before the script: ${rollback}.`]
  if (state === 'kept') return ['Variables are as the script left them.', ...before].join(' ')
  if (state === 'lost') {
    const keepsFiles = warnings.every(({ code }) => code !== 'files_not_kept')
    const files = keepsFiles ? 'Files stay.' : 'Files are as they were before the script.'
    return `Variables: ${describeLoss(reasonOfLoss(end), 'empty session')}. ${files} Create again what you need.`
  }
  const facts = [
    'Variables are as they were before the script. What it wrote to files stays, except what it appended to files that were open before it.',
  ]
  if (ended.length > 0) facts.push(`These processes were ended: ${ended.join(', ')}.`)
  if (missing.length > 0) facts.push(`This could not be restored: ${missing.join('; ')}.`)
  return [...facts, ...before].join(' ')
}

/** The message of a session that went back to an earlier state between two cells. */
function findEarlierRollback(warnings: ExecutionResult['warnings']): string | undefined {
  return warnings.find(({ code }) => code === ROLLED_BACK)?.message
}
