import type { AttemptRecord, RunRecord } from '../journal/index.ts'
import { failedLineOf } from '../script/index.ts'
import { truncate, truncateAndCount } from '../support/index.ts'
import { callPlace, callText, outcomeText } from './call-text.ts'
import { displayText } from './display-files.ts'
import { msText } from './figures.ts'
import { isSuccess } from '../outcomes/index.ts'
import { attemptFacts, endText, type Fact, repetitionText, runFacts } from './run-facts.ts'
import { asLines, dataText, lastLines, MAX_LINE, moreText, nameText } from './foreign-text.ts'
import type { StoredRun } from './stored-run.ts'
import { escapeForMessage } from './terminal-text.ts'
import { violationsText } from './violations-text.ts'

const LABEL_WIDTH = 10
/** Lines of the script around the one that failed, where it is long. */
const AROUND = 20
const MAX_SCRIPT = 200
/** Maximum rows of each kind: calls, violations, emitted data, logs, warnings. */
const MAX_ROWS = 50
const MAX_OUTPUT = 40
const MAX_TRACEBACK = 30
const MAX_ANSWER = 20_000
const MAX_TASK_LINE = 2000
const MAX_ERROR = 2000

const [BOLD, DIM, RED, GREEN, YELLOW] = [1, 2, 31, 32, 33] as const
type Paint = (code: number, text: string) => string

/** A task as text for a person: the task, each attempt with its problems, and the answer. */
export function runText({ record, missing }: Pick<StoredRun, 'record' | 'missing'>, coloured: boolean): string {
  const paint: Paint = (code, text) => (coloured ? `\u001B[${code}m${text}\u001B[0m` : text)
  const blocks = [
    headText(record, missing, paint),
    ...record.attempts.map((attempt) => attemptText(attempt, `Attempt ${attempt.number}`, coloured, paint)),
    ...record.steps.flatMap((step) =>
      step.attempts.map((attempt) => {
        const last = step.forceFinish ? ' (to finish)' : ''
        return attemptText(attempt, `Step ${step.number}${last}, attempt ${attempt.number}`, coloured, paint)
      }),
    ),
    endingText(record, paint),
  ]
  return `${blocks.join('\n\n')}\n`
}

function headText(record: RunRecord, missing: number, paint: Paint): string {
  const [first = '', ...more] = asLines(record.task.trim(), MAX_TASK_LINE)
  const facts: Fact[] = [['task', [first, ...more].join('\n')], ...runFacts(record, missing)]
  return [
    `${paint(BOLD, `Task ${escapeForMessage(record.runId)}`)}  ${paintStatus(record.status, paint)}`,
    ...factLines(facts, paint),
  ].join('\n')
}

function factLines(facts: readonly Fact[], paint: Paint): string[] {
  return facts.flatMap(([name, text]) => {
    const [first = '', ...more] = asLines(text)
    return [
      `  ${paint(DIM, name.padEnd(LABEL_WIDTH))}${first}`,
      ...more.map((line) => `  ${' '.repeat(LABEL_WIDTH)}${line}`),
    ]
  })
}

function attemptText(attempt: AttemptRecord, title: string, coloured: boolean, paint: Paint): string {
  const { repetition, script, violations, traceback } = attempt
  const head = `${paint(BOLD, title)}  ${paintStatus(attempt.status ?? 'unfinished', paint, endText(attempt))}`
  const parts = [
    factLines(attemptFacts(attempt), paint),
    script === null ? answerLines(attempt, paint) : scriptLines(script, marksOf(attempt), paint),
    violations.length === 0
      ? []
      : indent(
          violationsText('script', script ?? '', violations.slice(0, MAX_ROWS), coloured)
            .trimEnd()
            .split('\n')
            .concat(moreText(violations.length - MAX_ROWS)),
        ),
    callLines(attempt, paint),
    emittedLines(attempt, paint),
    boxLines('stdout', attempt.stdout, MAX_OUTPUT, paint),
    boxLines('stderr', attempt.stderr, MAX_OUTPUT, paint),
    boxLines('traceback', traceback ?? '', MAX_TRACEBACK, paint),
    [
      ...rows(attempt.warnings, ({ code, message }) =>
        fact('warning', truncateAndCount(`${nameText(code)}: ${message}`, MAX_LINE), paint, YELLOW),
      ),
      ...(attempt.error === null || violations.length > 0
        ? []
        : [fact('error', truncate(attempt.error, MAX_ERROR), paint, RED)]),
      ...(repetition === null ? [] : [fact('repeats', repetitionText(repetition), paint, YELLOW)]),
    ],
  ]
  return [head, ...parts.filter((part) => part.length > 0).map((part) => part.join('\n'))]
    .join('\n\n')
    .replace('\n\n', '\n')
}

/** The lines of the script to mark. */
function marksOf({ traceback, violations }: AttemptRecord): ReadonlySet<number> {
  const failed = failedLineOf(traceback)
  return new Set(failed === null ? violations.map(({ line }) => line) : [failed])
}

function scriptLines(script: string, marks: ReadonlySet<number>, paint: Paint): string[] {
  const lines = asLines(script)
  const width = String(lines.length).length
  const [from, to] = findVisiblePart(lines.length, marks)
  const shown = lines.slice(from, to).map((line, index) => {
    const number = from + index + 1
    const text = `${String(number).padStart(width)} | ${line}`.trimEnd()
    return marks.has(number)
      ? paint(RED, `  > ${text}`)
      : `    ${paint(DIM, text.slice(0, width + 2))}${text.slice(width + 2)}`
  })
  return [
    ...(from > 0 ? [`    ${paint(DIM, `… ${from} lines before`)}`] : []),
    ...shown,
    ...(to < lines.length ? [`    ${paint(DIM, `… ${lines.length - to} lines more`)}`] : []),
  ]
}

function findVisiblePart(count: number, marks: ReadonlySet<number>): [number, number] {
  if (count <= MAX_SCRIPT) return [0, count]
  const [mark = 1] = marks
  const from = Math.max(0, Math.min(mark - AROUND, count - MAX_SCRIPT))
  return [from, Math.min(count, from + MAX_SCRIPT)]
}

function answerLines({ generation }: AttemptRecord, paint: Paint): string[] {
  const answer = generation?.answer ?? null
  return answer === null ? [] : boxLines('answer without a script', answer, MAX_OUTPUT, paint)
}

function callLines({ toolCalls }: AttemptRecord, paint: Paint): string[] {
  if (toolCalls.length === 0) return []
  const shown = toolCalls.slice(0, MAX_ROWS)
  const cells = shown.map((call) => [
    callPlace(call),
    escapeForMessage(callText(call)),
    call.ms === null ? '-' : msText(call.ms),
  ])
  const width = (column: number, max: number): number =>
    Math.min(max, Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const [first, second, third] = [width(0, 12), width(1, 60), width(2, 12)]
  const lines = shown.map((call, index) => {
    const [place = '', text = '', ms = ''] = cells[index] ?? []
    const outcome = escapeForMessage(outcomeText(call))
    const ending = call.ok === true ? `→ ${outcome}` : paint(RED, `✗ ${outcome}`)
    return `    ${paint(DIM, place.padEnd(first))}  ${text.padEnd(second)}  ${ms.padStart(third)}  ${ending}`
  })
  const more = moreText(toolCalls.length - shown.length).map((text) => `    ${text}`)
  return [`  ${paint(DIM, 'tool calls')}`, ...lines, ...more]
}

function emittedLines({ intermediates, displays, logs }: AttemptRecord, paint: Paint): string[] {
  return [
    ...rows(intermediates, ({ label, data }) =>
      fact('emitted', truncateAndCount(`${nameText(label)}: ${JSON.stringify(data) ?? 'null'}`, MAX_LINE), paint),
    ),
    ...rows(displays, (shown) => fact('shown', truncateAndCount(displayText(shown).trim(), MAX_LINE), paint)),
    ...rows(logs, ({ level, message }) =>
      fact('log', truncateAndCount(`${nameText(level)}: ${message}`, MAX_LINE), paint),
    ),
  ]
}

/** The first items of a list, and the number of the others. */
function rows<T>(items: readonly T[], row: (item: T) => string): string[] {
  const more = moreText(items.length - MAX_ROWS).map((text) => `  ${' '.repeat(LABEL_WIDTH)}${text}`)
  return [...items.slice(0, MAX_ROWS).map(row), ...more]
}

function boxLines(name: string, text: string, max: number, paint: Paint): string[] {
  if (text.trim() === '') return []
  return [
    `  ${paint(DIM, name)}`,
    ...lastLines(asLines(text), max).map((line) => `    ${paint(DIM, '|')} ${line}`.trimEnd()),
  ]
}

function fact(name: string, text: string, paint: Paint, code: number = DIM): string {
  return `  ${paint(code, name.padEnd(LABEL_WIDTH))}${escapeForMessage(text.trimEnd())}`
}

function endingText({ status, success, finalData, error, partial }: RunRecord, paint: Paint): string {
  if (success) return [paint(GREEN, 'Answer'), ...indent(answerText(finalData))].join('\n')
  return [
    `${paint(RED, `No answer: ${status}`)}`,
    ...(error === null ? [] : indent(asLines(truncate(error, MAX_ERROR), MAX_ERROR))),
    ...(partial === null ? [] : ['', 'Partial result', ...indent(answerText(partial))]),
  ].join('\n')
}

function answerText(data: unknown): string[] {
  return asLines(truncate(dataText(data), MAX_ANSWER), MAX_ANSWER)
}

function paintStatus(
  status: NonNullable<AttemptRecord['status']> | RunRecord['status'],
  paint: Paint,
  text: string = status,
): string {
  return paint(
    isSuccess(status) ? GREEN : status === 'unfinished' || status === 'cancelled' ? YELLOW : RED,
    escapeForMessage(text),
  )
}

function indent(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`.trimEnd())
}
