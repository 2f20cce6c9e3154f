import type { FailedDependency } from '../dependencies.ts'
import type { ExecutionResult } from '../executor/index.ts'
import { truncate } from '../support/index.ts'

/** The maximum length of one reason in characters, and the maximum number of reasons in one text. */
const [MAX_REASON, MAX_REASONS] = [2000, 20]
const MAX_NAME = 200

/** The output of a script as a text for a model, which begins with `Error:` if the script failed. */
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
  const lines = failed
    .slice(0, MAX_REASONS)
    .map(({ requirement, message }) => `- ${truncate(requirement, MAX_NAME)}: ${truncate(message, MAX_REASON)}`)
  if (failed.length > MAX_REASONS) lines.push(`- and ${failed.length - MAX_REASONS} more`)
  const others = installed.length === 0 ? '' : `\nInstalled: ${installed.join(', ')}.`
  return `Error: the script was not run, because packages could not be installed:\n${lines.join('\n')}${others}`
}
