import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect } from 'vitest'

const AGENT = join(import.meta.dirname, 'reviewed-agent.main.ts')

/** Kills agents while a review is pending and while a script runs, and has another process continue. @param store the place of a checkpointer. */
export async function checkRestart(store: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'restart-'))
  const runs = join(directory, 'runs')
  const thread = `restart-${process.pid}`
  const start = (reviewer: string, ...pace: string[]): AgentProcess =>
    new AgentProcess(store, thread, reviewer, runs, ...pace)
  try {
    await using waiting = start('nobody', 'waits')
    const proposed = await waiting.lineOf(/^proposed/)
    await waiting.kill()
    // The same proposal waits for the next process, which is killed while the script runs.
    await using second = start('Ann', 'slow')
    expect(await second.lineOf(/^found/)).toBe('found waiting')
    expect(await second.lineOf(/^proposed/)).toBe(proposed)
    await second.lineOf(/^ran script-1/)
    // Meanwhile, another process leaves the script to it.
    await using beside = start('Bob')
    expect(await beside.lineOf(/^error/)).toMatch(
      /^error agent_busy .* was started by process \d+, and may still run there/,
    )
    await second.kill()
    await using last = start('Bob')
    expect(await last.lineOf(/^found/)).toBe('found unfinished')
    expect(await last.lineOf(/^answered/)).toBe('answered ["accept by Ann","may-have-run","accept by Bob","ran"]')
    expect(readFileSync(runs, 'utf8')).toBe(`${thread} script-1\n${thread} script-2\n`)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Two processes answer the same proposal at the same time. */
export async function checkTwoReviewers(store: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'reviewers-'))
  const runs = join(directory, 'runs')
  const thread = `reviewers-${process.pid}`
  try {
    await using first = new AgentProcess(store, thread, 'propose', runs)
    await first.lineOf(/^waiting/)
    await using ann = new AgentProcess(store, thread, 'Ann', runs, 'together')
    await using bob = new AgentProcess(store, thread, 'Bob', runs, 'together')
    const proposals = await Promise.all([ann.lineOf(/^proposed/), bob.lineOf(/^proposed/)])
    expect(proposals[0]).toBe(proposals[1])
    for (const agent of [ann, bob]) agent.go()
    const ends = await Promise.all([ann.lineOf(/^(?:answered|error)/), bob.lineOf(/^(?:answered|error)/)])
    expect(ends.filter((line) => line.startsWith('answered'))).toHaveLength(1)
    const by = ends[0]?.startsWith('answered') === true ? 'Ann' : 'Bob'
    expect(ends.find((line) => line.startsWith('error'))).toMatch(
      new RegExp(`^error proposal_decided this proposal was decided before: accept by ${by} at `),
    )
    expect(readFileSync(runs, 'utf8')).toBe(`${thread} script-1\n${thread} script-2\n`)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** An agent in a process of its own. */
class AgentProcess implements AsyncDisposable {
  readonly #process
  readonly #lines: string[] = []
  readonly #closed: Promise<unknown>
  #wake: (() => void) | undefined

  constructor(...words: readonly string[]) {
    this.#process = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', AGENT, ...words], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const reading = createInterface({ input: this.#process.stdout })
    reading.on('line', (line) => {
      this.#lines.push(line)
      this.#wake?.()
    })
    this.#closed = once(reading, 'close')
  }

  /** The first line of this kind. @throws Error if the process ends without it. */
  async lineOf(kind: RegExp): Promise<string> {
    for (;;) {
      const line = this.#lines.find((one) => kind.test(one))
      if (line !== undefined) return line
      const next = new Promise<string>((resolve) => {
        this.#wake = () => resolve('line')
      })
      const isOver = (await Promise.race([next, this.#closed.then(() => 'end')])) === 'end'
      if (isOver && !this.#lines.some((one) => kind.test(one)))
        throw new Error(`the agent ended without ${kind}: ${this.#lines.join('; ')}`)
    }
  }

  /** Lets a reviewer of the pace `together` answer. */
  go(): void {
    this.#process.stdin.end('go\n')
  }

  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#closed
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }
}
