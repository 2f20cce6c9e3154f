import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messageOf } from '../errors/index.ts'
import { MAX_DECISION_TEXT, type Decision, type Proposal, type Reviewer } from '../review/index.ts'
import { plural } from './figures.ts'
import { asLines, moreText } from './foreign-text.ts'
import { ask, dropInput, userName } from './person.ts'
import { type PythonKind, pythonWords } from './python-words.ts'
import { REJECTED } from './review-lines.ts'
import { wrapWords } from './rows.ts'
import { escapeForMessage, escapeInvisible } from './terminal-text.ts'

const MAX_PLAN_LINES = 20
const MAX_DIFF_LINES = 60
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
    wrapWords(words).map((row, part) => {
      const number = part === 0 ? String(index + 1) : ''
      const text = row.map(({ text: word, kind }) => (kind === undefined ? word : paint(COLOURS[kind], word)))
      return `  ${paint(DIM, `${number.padStart(width)} |`)} ${text.join('')}`
    }),
  )
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
