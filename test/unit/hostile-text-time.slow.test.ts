import { describe, expect, test } from 'vitest'
import { asLines, nameText } from '../../src/cli/foreign-text.ts'
import { html } from '../../src/cli/html.ts'
import { escapeForMessage, escapeForTerminal } from '../../src/cli/terminal-text.ts'
import { violationsText } from '../../src/cli/violations-text.ts'
import { pauseOf } from '../../src/llm/retry-call.ts'
import { Stagnation } from '../../src/orchestrator/stagnation.ts'
import { decodeLine, truncateLikeHarness } from '../../src/protocol/index.ts'
import { Redactor } from '../../src/redaction/index.ts'
import { failedLineOf, feedbackOn } from '../../src/script/feedback.ts'
import { historyText } from '../../src/script/history.ts'
import { schemaPattern } from '../../src/tools/pattern.ts'
import { parsePythonFunctions } from '../../src/tools/python-function.ts'
import { toolName } from '../../src/tools/python-name.ts'
import { signatureOf } from '../../src/tools/signature.ts'
import { makeFailure } from './script/prompt-case.ts'
import { fastestMs, measureBest } from '../support/measure-best.ts'

const SHORT = 8 * 1024
const LONG = 64 * 1024

/**
 * The functions that read text of a script, a model, a tool server or a stored journal by regular expressions. In addition,
 * `script/extract-time` and `script/hints-time` test answers and errors.
 */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  'feedback on an error': (text) =>
    feedbackOn(makeFailure({ error: text, traceback: text, stdout: text, stderr: text })),
  'the line that failed': (text) => failedLineOf(text),
  'errors that are compared': (text) => new Stagnation().addFailure(text, text),
  'data of earlier steps': (text) => historyText([{ step: 1, label: text, data: text }]),
  'a text without secrets': (text) => new Redactor({ KEY: 'sk-0123456789' }).text(text),
  'a line of the channel': (text) =>
    decodeLine(Buffer.from(JSON.stringify({ type: 'log', execution_id: 'e', message: text }))),
  'a line that is no JSON': (text) => decodeLine(Buffer.from(text)),
  'a text that is cut': (text) => truncateLikeHarness(text, 1000),
  'a Python tool': (text) => parsePythonFunctions(text),
  'the header of a Python tool': (text) => parsePythonFunctions(`def f(${text}`),
  'the docstring of a Python tool': (text) => parsePythonFunctions(`def f(): """${text}`),
  'the name of a tool': (text) => attempt(() => toolName(text)),
  'the description of a tool': (text) =>
    signatureOf({ name: 'f', description: text, input: NO_INPUT, output: undefined }),
  'the pattern of a schema': (text) => attempt(() => schemaPattern(text, 'u')),
  'output on a terminal': (text) => escapeForTerminal(text),
  'a message on a terminal': (text) => escapeForMessage(text),
  'lines of a record': (text) => asLines(text),
  'a name in a record': (text) => nameText(text),
  'a page of a record': (text) => html`<p>${text}</p>`.toString(),
  'a violation': (text) =>
    violationsText('a.py', text, [{ code: text, line: 1, column: 5000, message: text, hint: text }], false),
  'a pause that a server asks for': (text) => pauseOf(text),
}
const NO_INPUT = { json: { type: 'object' }, parameters: [], more: false } as const

const UNITS: readonly string[] = [
  ['a', 'é', '😀', '\uD83D', '1', ' ', '\t', '\n', '\r', '\r\n', '\u2028', '\u001B[', '\u001B[1;'],
  ['"', "'", '"""', '\\', '\\\n', '`', '#', '(', '[', '{', ')', ',', ':', '=', '<', '&', '_', '__', '-', '*'],
  ['a*', '.', '/', 'a b ', 'a: ', 'a = ', 'lambda ', 'def f', '\ndef f(', 'coroutine ', 'sk-01234'],
  ['line 1', 'line ', 'File "<script>", line 1\n', 'File "<script>", line '],
  ['\n... 1', '\n... 1 characters left out ...\n'],
].flat()

describe('time grows at most linearly with the length of a hostile text', () => {
  test.each(Object.entries(READERS))('%s', (_, read) => {
    const slow = UNITS.filter((unit) => {
      const text = (length: number): string => `a${unit.repeat(Math.ceil(length / unit.length))}\0`
      // A few milliseconds are noise.
      if (fastestMs(() => read(text(LONG))) <= 40) return false
      const short = measureBest(() => read(text(SHORT)))
      const long = measureBest(() => read(text(LONG)))
      // Eight times the text takes about 8 times as long; quadratic work would take 64 times.
      return long > Math.max(28 * short, 40)
    })
    expect(slow).toEqual([])
  })
})

function attempt(work: () => unknown): void {
  try {
    work()
  } catch {
    // A refusal is allowed.
  }
}
