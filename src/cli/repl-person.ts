import { createInterface, type Interface } from 'node:readline/promises'
import { SandglassError } from '../errors/index.ts'
import type { CellResult, SessionVariable } from '../index.ts'
import { didYouMean } from '../support/index.ts'
import { CallLines } from './call-lines.ts'
import { type Context, note } from './context.ts'
import { cellFiles, displayText } from './display-files.ts'
import { EXIT } from './exit-codes.ts'
import { LiveLine } from './live-line.ts'
import { dataText } from './foreign-text.ts'
import { isWholeCell } from './python-lines.ts'
import type { ReplSession } from './repl-session.ts'
import { emittedLine } from './run-reporter.ts'
import { saveFiles, type Saving } from './save.ts'
import { escapeForMessage } from './terminal-text.ts'

const HELP = `:checkpoint [NAME]  keep the state of this branch   :restore NAME  go back to it
:branch [NAME]      switch to a new branch          :switch NAME   switch to another one; the first is main
:branches           list branches and checkpoints   :drop NAME     end a branch or a checkpoint
:vars               list the variables              :quit          end the session

A block ends with an empty line. Tab completes names. Ctrl-C interrupts a cell, whose changes stay; a second Ctrl-C ends it,
and the state is as it was before the cell.
`
/** The commands, and whether a NAME follows. */
const TAKES_NAME: ReadonlyMap<string, 'never' | 'optionally' | 'always'> = new Map([
  ['checkpoint', 'optionally'],
  ['restore', 'always'],
  ['branch', 'optionally'],
  ['switch', 'always'],
  ['branches', 'never'],
  ['drop', 'always'],
  ['vars', 'never'],
  ['help', 'never'],
  ['quit', 'never'],
])
const COMMANDS = [...TAKES_NAME.keys()].map((name) => `:${name}`)
const WORD = /[^\W\d]\w*$/u
const CONTINUED = '... '

/** Reads cells and commands from a terminal until it ends. Resolves to the exit code. */
export function servePerson(session: ReplSession, saving: Saving | undefined, context: Context): Promise<number> {
  return new Prompt(session, saving, context).serve()
}

class Prompt {
  readonly #session: ReplSession
  readonly #saving: Saving | undefined
  readonly #context: Context
  readonly #live: LiveLine
  readonly #lines: Interface
  #branch = 'main'
  #isRunning = false
  #isClosed = false
  /** Ends the last cell, if it still runs. */
  #end: AbortController | undefined
  #isInterrupted = false
  #typed: string[] = []

  constructor(session: ReplSession, saving: Saving | undefined, context: Context) {
    this.#session = session
    this.#saving = saving
    this.#context = context
    this.#live = new LiveLine(context.stderr, false, () => '')
    this.#lines = createInterface({
      input: process.stdin,
      output: process.stdout,
      completer: (line: string) => this.#complete(line),
    })
    this.#lines.on('SIGINT', () => this.#interrupt())
    this.#lines.on('close', () => (this.#isClosed = true))
    context.signal.addEventListener('abort', () => this.#lines.close())
  }

  async serve(): Promise<number> {
    this.#context.signal.throwIfAborted()
    await this.#context.stdout.write('Python whose variables survive a crash. :help shows the commands, Ctrl-D ends.\n')
    try {
      this.#ask()
      for await (const line of this.#lines) {
        this.#typed.push(line)
        const text = this.#typed.join('\n')
        if (text.startsWith(':') || isWholeCell(text)) {
          this.#typed = []
          if (text.trim() === ':quit') return EXIT.ok
          await this.#serveOne(text)
        }
        await this.#live.startLine(this.#context.stdout)
        this.#ask()
      }
      await this.#context.stdout.write('\n') // Ctrl-D leaves the prompt
      this.#context.signal.throwIfAborted()
      return EXIT.ok
    } finally {
      this.#lines.close()
      await this.#live.end()
    }
  }

  #ask(): void {
    if (this.#isClosed) return // by Ctrl-D while a cell ran
    const name = this.#branch === 'main' ? '' : this.#branch
    this.#lines.setPrompt(this.#typed.length > 0 ? CONTINUED : `${name}>>> `)
    this.#lines.prompt()
  }

  async #serveOne(text: string): Promise<void> {
    if (text.trim() === '') return
    this.#isRunning = true
    this.#isInterrupted = false
    try {
      await (text.startsWith(':') ? this.#obey(text.slice(1).trim()) : this.#run(text))
    } catch (error) {
      if (!(error instanceof SandglassError)) throw error
      await note(this.#context, error.message)
    } finally {
      this.#isRunning = false
    }
  }

  async #run(cell: string): Promise<void> {
    const { stdout, stderr, signal } = this.#context
    this.#end = new AbortController()
    const ending = AbortSignal.any([signal, this.#end.signal])
    const calls = new CallLines(this.#context)
    for await (const event of this.#session.branch(this.#branch).stream(cell, { signal: ending })) {
      if (event.type === 'stdout') await this.#live.pass(stdout, event.text)
      else if (event.type === 'stderr') await this.#live.pass(stderr, event.text)
      else if (event.type === 'log' || event.type === 'intermediate')
        await this.#live.write(stderr, emittedLine(this.#context, event))
      else if (event.type === 'tool_call' || event.type === 'tool_result')
        await this.#live.write(stderr, calls.lineOf(event))
      else if (event.type === 'result') await this.#show(event.result)
    }
  }

  async #show(result: CellResult): Promise<void> {
    const { stdout, stderr } = this.#context
    await this.#live.startLine(stdout)
    for (const display of result.displays) await this.#live.pass(stdout, `${displayText(display).replace(/^\n/, '')}\n`)
    await this.#save(result)
    for (const { message } of result.warnings) await note(this.#context, message)
    if (result.hasResult) await this.#live.pass(stdout, `${dataText(result.finalData)}\n`)
    const { status, traceback, error } = result
    if (traceback !== null) await this.#live.pass(stderr, `${traceback.trimEnd()}\n`)
    // The traceback of a timeout does not say why the cell ended. That of an exception does, in words of its own for a SyntaxError.
    const isTold = traceback !== null && (status === 'failed' || traceback.includes(error ?? ''))
    if (error !== null && !isTold) await this.#live.pass(stderr, `${error}\n`)
    if (result.state === 'kept') return
    const lost = [...result.missing, ...result.ended.map((name) => `${name} was ended`)]
    const what = result.state === 'lost' ? 'the session is lost' : 'the state is as it was before this cell'
    await note(this.#context, [what, ...lost].join('; '))
  }

  async #save({ number, displays }: CellResult): Promise<void> {
    if (this.#saving === undefined) return
    const files = cellFiles(this.#branch, number, displays)
    const problems = saveFiles(this.#saving, files)
    for (const problem of problems) await note(this.#context, problem)
    if (files.length > 0 && problems.length === 0) await this.#say(`saved ${files.map(({ path }) => path).join(', ')}`)
  }

  async #obey(line: string): Promise<void> {
    const [command = '', ...names] = line.split(/\s+/)
    const { stdout } = this.#context
    const problem = problemOf(command, names)
    if (problem !== undefined) return this.#say(problem)
    const [name] = names
    if (command === 'vars') {
      const variables = await this.#session.branch(this.#branch).variables()
      return variables.length === 0 ? this.#say('no variables yet') : stdout.write(tableOf(variables))
    }
    if (command === 'checkpoint') {
      const made = await this.#session.checkpoint(this.#branch, name)
      return this.#say(`checkpoint ${made.name ?? ''} (${[made.grade, ...made.lacks].join(', ')})`)
    }
    if (command === 'restore' && name !== undefined) {
      const { ended, missing } = await this.#session.restore(this.#branch, name)
      const lost = [...ended.map((one) => `${one} was ended`), ...missing]
      return this.#say([`the state is that of ${name}`, ...lost].join('; '))
    }
    if (command === 'branch') this.#branch = await this.#session.fork(this.#branch, name)
    else if (command === 'switch' && name !== undefined) {
      this.#session.branch(name)
      this.#branch = name
    } else if (command === 'drop' && name !== undefined) {
      await this.#session.drop(name)
      if (this.#branch === name) this.#branch = 'main'
    } else if (command === 'branches') {
      for (const branch of this.#session.branches) await this.#say(this.#lineOf(branch))
    } else {
      const meant = command === 'help' ? '' : didYouMean(`:${command}`, COMMANDS)
      if (command !== 'help') await this.#say(`there is no command :${command}${meant === '' ? '' : `.${meant}`}`)
      if (meant === '') await stdout.write(HELP)
    }
  }

  #lineOf(branch: string): string {
    const checkpoints = this.#session.checkpointsOf(branch).join(', ')
    return `${branch === this.#branch ? '*' : ' '} ${branch}: ${checkpoints === '' ? 'no checkpoints' : `checkpoints ${checkpoints}`}`
  }

  #say(text: string): Promise<void> {
    return this.#context.stdout.write(`${escapeForMessage(text)}\n`)
  }

  #interrupt(): void {
    if (this.#isRunning) {
      if (this.#isInterrupted) return this.#end?.abort()
      this.#isInterrupted = true
      this.#session
        .branch(this.#branch)
        .interrupt()
        .catch(() => undefined) // it has just ended
      return
    }
    this.#typed = []
    this.#lines.write(null, { ctrl: true, name: 'u' })
    process.stdout.write('\n')
    this.#ask()
  }

  async #complete(line: string): Promise<[string[], string]> {
    const word = WORD.exec(line)?.[0] ?? ''
    if (this.#isRunning || line.startsWith(':')) return [[], word]
    try {
      const names = await this.#session.branch(this.#branch).complete([...this.#typed, line].join('\n'))
      return [names.map(escapeForMessage), word]
    } catch {
      return [[], word]
    }
  }
}

/** The mistake in the words after a command, if there is one. */
function problemOf(command: string, names: readonly string[]): string | undefined {
  const takes = TAKES_NAME.get(command)
  if (takes === 'always' && names.length === 0) return `:${command} needs a NAME; :branches lists them`
  if (takes === 'never' && names.length > 0) return `:${command} takes no NAME`
  if (takes !== undefined && names.length > 1) return `:${command} takes one NAME, without spaces`
  return undefined
}

function tableOf(variables: readonly SessionVariable[]): string {
  const rows = variables.map(({ name, type, shape, bytes }) => [
    name,
    type,
    shape === null ? '' : shape.join(' x '),
    bytes === null ? '' : `${bytes} bytes`,
  ])
  const widths = [0, 1, 2].map((column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map((row) =>
      escapeForMessage(
        row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd(),
      ),
    )
    .map((line) => `${line}\n`)
    .join('')
}
