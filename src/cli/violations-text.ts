import type { Violation } from '../executor/index.ts'
import { nameText } from './foreign-text.ts'
import { escapeForMessage } from './terminal-text.ts'

const MAX_SHOWN_LINE = 160

/** Violations in the style of a compiler: place, problem, the line with a caret, and a hint. */
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
      const { text, indent } = cutAround(lines[line - 1] ?? '', column)
      return [
        `${paint(1, `${escapeForMessage(path)}:${line}:${column + 1}`)}: ${paint(31, `error[${escapeForMessage(nameText(code))}]`)}: ${escapeForMessage(message)}`,
        ...(text === '' ? [] : [`  ${number} | ${text}`, `  ${gutter} | ${indent}${paint(31, '^')}`]),
        ...(hint === '' ? [] : [`  ${gutter} = ${paint(36, 'hint')}: ${escapeForMessage(hint)}`]),
        '',
      ].join('\n')
    })
    .join('\n')
}

/** A line, cut around the column if it is long, and the indent of the caret. */
function cutAround(line: string, column: number): { text: string; indent: string } {
  const from = column > MAX_SHOWN_LINE - 40 ? column - 80 : 0
  // Python counts code points.
  const characters = Array.from(line)
  const part = characters.slice(from, from + MAX_SHOWN_LINE)
  const head = from > 0 ? '…' : ''
  const tail = characters.length > from + MAX_SHOWN_LINE ? '…' : ''
  // Tabs stay tabs, so that the caret is below its character.
  const before = escapeForMessage(part.slice(0, column - from).join('')).replaceAll(/[^\t]/gu, ' ')
  return { text: `${head}${escapeForMessage(part.join(''))}${tail}`, indent: `${head === '' ? '' : ' '}${before}` }
}
