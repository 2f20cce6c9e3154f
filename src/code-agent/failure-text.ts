import type { ExecutionResult } from '../executor/index.ts'
import type { FailedDependency } from '../dependencies.ts'

const MAX_REASON = 2000

/** The output of a script for a model, after `Error:` if it failed. */
export function textOf({
  success,
  status,
  error,
  traceback,
  ending,
  stdout,
  stderr,
  hasResult,
  finalData,
}: ExecutionResult): string {
  const printed = [stdout, stderr]
    .filter((text) => text !== '')
    .join(stdout === '' || stdout.endsWith('\n') ? '' : '\n')
  const isFine = success || status === 'step-done'
  if (!isFine) {
    const how = ending.signal === null ? `exit status ${ending.exitCode ?? 'unknown'}` : `signal ${ending.signal}`
    const reason = traceback ?? error ?? status
    return `Error: the script ended with ${status} (${how}).\n${reason}${reason.includes(error ?? '') ? '' : `\n${error}`}${printed === '' ? '' : `\nIts output:\n${printed}`}`
  }
  if (!hasResult) return printed
  const lines = printed === '' || printed.endsWith('\n') ? '' : '\n'
  return `${printed}${lines}${JSON.stringify(finalData)}`
}

/** The text for a model about packages that cannot be installed. */
export function failedText(failed: readonly FailedDependency[], installed: readonly string[]): string {
  const lines = failed.map(({ requirement, message }) => `- ${requirement}: ${message.slice(0, MAX_REASON)}`)
  const others = installed.length === 0 ? '' : `\nInstalled: ${installed.join(', ')}.`
  return `Error: the script was not run, because packages could not be installed:\n${lines.join('\n')}${others}`
}
