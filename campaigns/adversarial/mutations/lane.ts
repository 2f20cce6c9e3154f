import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { allProcesses, commandLineOf } from '../../../test/support/processes.ts'
import { type Copy, patchCopy } from './copy.ts'
import { type Patch, SUITES, type TestSelection } from './mutation.ts'
import { environmentOf, isMeant, type RanTest, type Trial, triedTest } from './trial.ts'

/**
 * One vitest in a copy of the tree runs the trials one after the other: its start, the probe of the engine and the compilation of
 * unchanged files take longer than a trial.
 */
export interface Lane extends AsyncDisposable {
  /** Runs the selected tests on the engine `local`, in the copy with these patches, which are gone afterwards. */
  tryOut(selections: readonly TestSelection[], patches: readonly Patch[], signal?: AbortSignal): Promise<Trial>
}

/** A request to a lane. */
export interface LaneRequest {
  readonly files: readonly string[]
  /** Of the full names of tests. */
  readonly pattern: string
  /** Files that were changed for this request or after the last one, below the root of the tree. */
  readonly patched: readonly string[]
}

/** The answer of a lane, and its first message, when it is ready. */
export interface LaneMessage {
  readonly ran: readonly RanTest[]
}

/** More than the slowest mutation takes on a busy machine. A lane with a longer trial is ended. */
const TRIAL_MS = 15 * 60_000

/** Opens a lane in a copy, which belongs to it from now on. */
export async function openLane(copy: Copy): Promise<Lane> {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', 'campaigns/adversarial/mutations/lane.main.ts'],
    {
      cwd: copy.root,
      env: environmentOf(copy),
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    },
  )
  const lane = new ChildLane(copy, child)
  try {
    await lane.nextMessage()
  } catch (error) {
    await lane[Symbol.asyncDispose]()
    throw error
  }
  return lane
}

class ChildLane implements Lane {
  readonly #copy: Copy
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  #output = ''
  #patched: readonly string[] = []

  constructor(copy: Copy, child: ChildProcess) {
    this.#copy = copy
    this.#child = child
    this.#ended = once(child, 'close')
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#output += text))
    }
  }

  async tryOut(selections: readonly TestSelection[], patches: readonly Patch[], signal?: AbortSignal): Promise<Trial> {
    signal?.throwIfAborted()
    // A host without a defence leaves what the next one must not find.
    // Workers of the last trial may still be ending.
    rmSync(this.#copy.state, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
    mkdirSync(this.#copy.state, { recursive: true, mode: 0o755 })
    using _patched = patchCopy(this.#copy, patches)
    const patched = patches.map(({ file }) => file)
    const request: LaneRequest = {
      files: [...new Set(selections.map(({ suite }) => join(this.#copy.root, SUITES[suite])))],
      pattern: selections.flatMap(({ titles }) => titles.map(literal)).join('|'),
      patched: [...this.#patched, ...patched],
    }
    this.#patched = patched
    this.#output = ''
    const end = (): boolean => this.#child.kill('SIGTERM')
    const timer = setTimeout(end, TRIAL_MS)
    signal?.addEventListener('abort', end)
    try {
      const answer = this.nextMessage()
      this.#child.send(request)
      const tests = (await answer).ran.map(triedTest)
      return {
        tests: tests.filter((test) => selections.some((selected) => isMeant(test, selected))),
        output: this.#output,
      }
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      killProgramsOf(this.#copy)
    }
  }

  /** The next message; an error if the lane ends without one. */
  async nextMessage(): Promise<LaneMessage> {
    const message = once(this.#child, 'message').then(([value]) => value as LaneMessage)
    const ended = this.#ended.then(() => {
      throw new Error(`vitest ended without a result:\n${this.#output.slice(-4000)}`)
    })
    return Promise.race([message, ended])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Not by a disconnect, after which Node reports no `close`.
    this.#child.kill('SIGTERM')
    await this.#ended
    killProgramsOf(this.#copy)
    this.#copy[Symbol.dispose]()
  }
}

/**
 * Kills the programs that a copy started: without a defence, a judge or a sandbox can outlive its host, and would take processor time
 * from the trials that follow. The lane itself runs by a relative path.
 */
function killProgramsOf({ root }: Copy): void {
  const marked = allProcesses().filter(({ pid }) => commandLineOf(pid).includes(join(root, '/')))
  for (const { pid } of marked) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It ended by itself.
    }
  }
}

function literal(words: string): string {
  return words.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`)
}
