import { Redactor } from '../redaction/index.ts'

/**
 * Redacts the values of environment variables in texts. They are read for each text, because the host may change them. The
 * redactor is cached until they change, because making one for a long value takes tens of milliseconds.
 */
export function redactVariables(names: readonly string[]): (text: string, isCut?: boolean) => string {
  let values: readonly string[] = []
  let redactor: Redactor | undefined
  return (text, isCut = false) => {
    const current = names.map((name) => process.env[name] ?? '')
    if (current.some((value, index) => value !== values[index])) {
      redactor = new Redactor(Object.fromEntries(names.map((name, index) => [name, current[index] ?? ''])))
      values = current
    }
    return redactor?.text(text, { end: isCut }) ?? text
  }
}
