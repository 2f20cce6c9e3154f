import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { setTimeout } from 'node:timers/promises'
import { messageOf } from '../errors/index.ts'
import { MAX_DECIDER, MAX_DECISION_TEXT, type Decision, type Proposal, type Reviewer } from '../review/index.ts'
import { plural } from './figures.ts'
import { asLines, moreText } from './foreign-text.ts'
import { type PythonKind, type PythonWord, pythonWords } from './python-words.ts'
import { holdTerminal } from './live-line.ts'
import { REJECTED } from './review-lines.ts'
import { escapeForMessage, escapeInvisible } from './terminal-text.ts'

const MAX_PLAN_LINES = 20
const MAX_DIFF_LINES = 60
/** Time for the terminal to pass on earlier input, in milliseconds. */
const DROP_MS = 50
/** Maximum characters of a shown line of a script; the rest of a longer one follows on further lines. */
const WIDTH = 70
const [BOLD, DIM, RED, GREEN, YELLOW] = [1, 2, 31, 32, 33] as const
const COLOURS: Readonly<Record<PythonKind, number>> = { word: 35, text: 32, number: 33, comment: 2, name: 34 }

/** The terminal of a reviewer. */
export interface ReviewTerminal {
  readonly env: NodeJS.ProcessEnv
  readonly coloured: boolean
  write(text: string): Promise<void>
}

/** Shows each proposal on the terminal, and asks the person there. */
export function reviewByPerson(terminal: ReviewTerminal): Reviewer {
  return async (proposal, { signal }) => {
    await terminal.write(proposalText(proposal, terminal.coloured))
    const by = userName(terminal.env)
    // Earlier input must not answer this proposal.
    await dropInput()
    for (;;) {
      const choice = await ask('[a]ccept, [e]dit, [r]espond, re[j]ect? ', signal)
      const decision = await decide(choice.trim().toLowerCase(), proposal, by, terminal, signal)
      if (decision !== undefined) return decision
    }
  }
}

/** The name of the user; a container may have none for its uid. */
export function userName(env: NodeJS.ProcessEnv): string {
  try {
    return userInfo().username.slice(0, MAX_DECIDER)
  } catch {
    return (env['USER'] ?? `uid ${process.getuid?.() ?? 'unknown'}`).slice(0, MAX_DECIDER)
  }
}

/** Reads and drops the lines that wait in the terminal. */
export async function dropInput(): Promise<void> {
  const { stdin } = process
  const drop = (): void => {}
  stdin.on('data', drop)
  await setTimeout(DROP_MS)
  stdin.off('data', drop)
  stdin.pause()
}

async function decide(
  choice: string,
  { script }: Proposal,
  by: string,
  terminal: ReviewTerminal,
  signal: AbortSignal,
): Promise<Decision | undefined> {
  switch (choice) {
    case 'a':
    case 'accept':
      return { decision: 'accept', by }
    case 'e':
    case 'edit': {
      const edited = await edit(script, terminal, signal)
      if (edited === undefined) return undefined
      // A file cannot hold a lone surrogate.
      if (edited !== script.toWellFormed()) return { decision: 'accept', script: edited, by }
      await terminal.write('The script is unchanged.\n')
      return undefined
    }
    case 'r':
    case 'respond': {
      const text = await ask('To the model: ', signal)
      return text.trim() === '' ? undefined : { decision: 'respond', text: text.slice(0, MAX_DECISION_TEXT), by }
    }
    case 'j':
    case 'reject': {
      const text = await ask('Reason, for the record: ', signal)
      return { decision: 'reject', text: text.trim() === '' ? REJECTED : text.slice(0, MAX_DECISION_TEXT), by }
    }
    default:
      await terminal.write('Answer a, e, r or j.\n')
      return undefined
  }
}

/** Reads a line from the terminal. @throws Error if the terminal ends first. */
export async function ask(question: string, signal: AbortSignal): Promise<string> {
  using _ = await holdTerminal()
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  const end = (): never => {
    signal.throwIfAborted()
    throw new Error('the terminal ended before a decision')
  }
  const closed = once(lines, 'close').then(end)
  closed.catch(() => undefined)
  // Ctrl-C ends the whole command, not only the question.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  try {
    // Ctrl-D rejects the question in some versions of Node, and leaves it open in others.
    return await Promise.race([lines.question(question, { signal }).catch(end), closed])
  } finally {
    lines.close()
  }
}

/** Lets the person change a script in $VISUAL or $EDITOR. Returns undefined if that fails, and says so on the terminal. */
async function edit(script: string, terminal: ReviewTerminal, signal: AbortSignal): Promise<string | undefined> {
  const { env } = terminal
  const program = env['VISUAL'] || env['EDITOR'] || 'vi'
  const directory = await mkdtemp(join(tmpdir(), 'sandglass-review-'))
  const path = join(directory, 'script.py')
  const remove = (): void => rmSync(directory, { recursive: true, force: true })
  process.once('exit', remove)
  try {
    await writeFile(path, `${script}\n`, { mode: 0o600 })
    // By the shell, as git does it: the variable may hold options and quoted paths.
    const child = spawn('/bin/sh', ['-c', `${program} "$@"`, program, path], { stdio: 'inherit', env, signal })
    const [code] = (await once(child, 'exit')) as [number | null]
    if (code !== 0) throw new Error(`it ended with ${code ?? 'a signal'}`)
    return (await readFile(path, 'utf8')).replace(/\n$/, '')
  } catch (error) {
    signal.throwIfAborted()
    await terminal.write(
      escapeForMessage(`${program}: ${messageOf(error)}; set EDITOR to a program that edits a file`) + '\n',
    )
    return undefined
  } finally {
    process.off('exit', remove)
    remove()
  }
}

/** A proposal as text for a person. */
export function proposalText(proposal: Proposal, coloured: boolean): string {
  const paint = (code: number, text: string): string => (coloured ? `\u001B[${code}m${text}\u001B[0m` : text)
  const { step, attempt, plan, tools, dependencies, sandbox, diff, problem } = proposal
  const place = step === null ? `attempt ${attempt}` : `step ${step}, attempt ${attempt}`
  const called = tools.map(({ name, effect }) => {
    const text = `${name} (${effect ?? 'in the sandbox'})`
    return effect === 'write' ? paint(YELLOW, text) : text
  })
  const facts = [
    ['calls', called.length === 0 ? 'no tools' : called.join(', ')],
    ['packages', dependencies.length === 0 ? 'none' : escapeForMessage(dependencies.join(', '))],
    ['sandbox', `${sandbox.engine} (${sandbox.level}), network ${sandbox.network}`],
  ]
  return [
    '',
    paint(BOLD, `Proposal, ${place}`),
    ...linesOf(plan, MAX_PLAN_LINES),
    ...numberLines(proposal.script, paint),
    `  ${paint(DIM, 'SHA-256  ')} ${proposal.sha256}`,
    ...facts.map(([name = '', text]) => `  ${paint(DIM, name.padEnd(9))} ${text}`),
    ...(diff === null ? [] : changesText(diff, paint)),
    ...(problem === null ? [] : [paint(RED, `Your script was not accepted: ${escapeForMessage(problem)}`)]),
    '',
  ].join('\n')
}

function linesOf(text: string, max: number): string[] {
  if (text === '') return []
  const lines = asLines(text)
  return [...lines.slice(0, max), ...moreText(lines.length - max)].map((line) => `  > ${line}`)
}

/** All lines of the script, however many: a person decides only about lines that are shown. */
function numberLines(script: string, paint: (code: number, text: string) => string): string[] {
  const lines = pythonWords(script.split(/\r\n?|\n/))
  const width = String(lines.length).length
  return lines.flatMap((words, index) =>
    wrap(words).map((row, part) => {
      const number = part === 0 ? String(index + 1) : ''
      const text = row.map(({ text: word, kind }) => (kind === undefined ? word : paint(COLOURS[kind], word)))
      return `  ${paint(DIM, `${number.padStart(width)} |`)} ${text.join('')}`
    }),
  )
}

/** A line of foreign text in rows, so that the terminal wraps none. */
export function wrapText(line: string): string[] {
  return wrap([{ text: line, kind: undefined }]).map((row) => row.map(({ text }) => text).join(''))
}

/** The words of a line as rows, so that the terminal wraps none: a wrapped row could look like another line. */
function wrap(words: readonly PythonWord[]): PythonWord[][] {
  const rows: PythonWord[][] = [[]]
  let left = WIDTH
  for (const { text, kind } of words) {
    let rest = escapeInvisible(escapeForMessage(text))
    while (rest.length > left) {
      rows.at(-1)?.push({ text: rest.slice(0, left), kind })
      rest = rest.slice(left)
      rows.push([])
      left = WIDTH
    }
    rows.at(-1)?.push({ text: rest, kind })
    left -= rest.length
  }
  return rows
}

function changesText(diff: string, paint: (code: number, text: string) => string): string[] {
  const lines = diffLines(diff, paint)
  if (lines.length === 0) return [`  ${paint(DIM, 'the same script as the last proposal')}`]
  return [`  ${paint(DIM, 'changes since the last proposal')}`, ...lines]
}

function diffLines(diff: string, paint: (code: number, text: string) => string): string[] {
  const lines = diff.trimEnd().split('\n').slice(2)
  const shown = lines.slice(0, MAX_DIFF_LINES).map((line) => {
    const safe = `  ${escapeInvisible(escapeForMessage(line))}`
    return line.startsWith('+') ? paint(GREEN, safe) : line.startsWith('-') ? paint(RED, safe) : safe
  })
  const more = lines.length - shown.length
  return more > 0 ? [...shown, `  … ${plural(more, 'line')} more`] : shown
}
