import type { Violation } from '../executor/index.ts'
import { nameText } from './shown-text.ts'
import { inOurLine } from './terminal-text.ts'

const MAX_SHOWN_LINE = 160

/** Violations as a compiler tells them: where, what, the line with a caret, and what to do. */
export function violationsText(
  path: string,
  script: string,
  violations: readonly Violation[],
  coloured: boolean,
): string {
  const lines = script.split(/\r\n|\r|\n/)
  const paint = (code: number, text: string): string => (coloured ? `\u001B[${code}m${text}\u001B[0m` : text)
  return violations
    .map(({ code, line, column, message, hint }) => {
      const number = String(line)
      const gutter = ' '.repeat(number.length)
      const { text, caret } = shown(lines[line - 1] ?? '', column)
      return [
        `${paint(1, `${inOurLine(path)}:${line}:${column + 1}`)}: ${paint(31, `error[${inOurLine(nameText(code))}]`)}: ${inOurLine(message)}`,
        ...(text === '' ? [] : [`  ${number} | ${text}`, `  ${gutter} | ${caret}${paint(31, '^')}`]),
        ...(hint === '' ? [] : [`  ${gutter} = ${paint(36, 'hint')}: ${inOurLine(hint)}`]),
        '',
      ].join('\n')
    })
    .join('\n')
}

/** A line, cut around the column when it is long, and what stands before the caret. */
function shown(line: string, column: number): { text: string; caret: string } {
  const from = column > MAX_SHOWN_LINE - 40 ? column - 80 : 0
  // Python counts code points.
  const characters = Array.from(line)
  const part = characters.slice(from, from + MAX_SHOWN_LINE)
  const head = from > 0 ? '…' : ''
  const tail = characters.length > from + MAX_SHOWN_LINE ? '…' : ''
  // Tabs stay tabs, so that the caret stands below its character.
  const before = inOurLine(part.slice(0, column - from).join('')).replaceAll(/[^\t]/gu, ' ')
  return { text: `${head}${inOurLine(part.join(''))}${tail}`, caret: `${head === '' ? '' : ' '}${before}` }
}
