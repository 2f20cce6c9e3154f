import type { CellEnd, ExecutionResult } from '../executor/index.ts'
import { truncateMiddle } from '../support/index.ts'
import { describeLoss, reasonOfLoss } from '../tools/index.ts'

/** Maximum characters of the output of a cell in the prompts of later steps. */
const MAX_OUTPUT = 4000
const OUTPUT_LABEL = 'output'
/** The label of what the host tells about the session. */
export const SESSION_LABEL = 'session'

/**
 * The output of a step that ran as a cell, as items for later steps: printed text with the value of the last expression, and the message
 * of a session that was rolled back before the step.
 */
export function listShown(
  { stdout, displays, warnings }: ExecutionResult,
  { value }: CellEnd,
): { label: string; data: string }[] {
  const result = displays.findLast(({ kind }) => kind === 'result')?.data['text/plain']
  const shown = result ?? (value === null ? '' : JSON.stringify(value))
  const text = [stdout.trimEnd(), shown].filter((part) => part !== '').join('\n')
  const rollback = findEarlierRollback(warnings)
  return [
    ...(rollback === undefined ? [] : [{ label: SESSION_LABEL, data: rollback }]),
    ...(text === '' ? [] : [{ label: OUTPUT_LABEL, data: truncateMiddle(text, MAX_OUTPUT) }]),
  ]
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
    const loss = describeLoss(reasonOfLoss(end), 'empty session').replace(/^t/, 'T')
    return `${loss}. ${files} Create again what you need.`
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
  return warnings.find(({ code }) => code === 'session_rolled_back')?.message
}
