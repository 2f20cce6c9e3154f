import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, expect, test } from 'vitest'
import { eventually } from '../../../support/eventually.ts'
import { commandLineOf, descendantsOf, processOf } from '../../../support/processes.ts'
import { sharedCache } from '../../../support/engines/pyodide/shared-cache.ts'
import { requireBubblewrap } from './fixture.ts'

const MAIN = join(import.meta.dirname, '../../../support/engines/pyodide/bursts.main.ts')
const GiB = 1024 ** 3
/** The reserve takes a quarter of what is available. */
const NEEDED_BYTES = 2 * GiB
const TIMEOUT_MS = 120_000

const { skip: noBox } = await requireBubblewrap()
const cache = sharedCache()
afterAll(() => cache[Symbol.dispose]())
const box = noBox ? 'open' : 'box'

/** A process that runs scripts in a row when it is told to. */
class Host implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string, undefined>

  constructor(where: 'open' | 'box') {
    const args = ['--no-warnings', MAIN, cache.path, where]
    this.#child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    const { stdout } = this.#child
    if (stdout === null) throw new Error('the host has no output')
    this.#lines = createInterface({ input: stdout })[Symbol.asyncIterator]()
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** The processes of instances that the host has started itself: bubblewrap, or Node. */
  get instances(): number[] {
    const below = descendantsOf(this.pid)
    return below.filter((pid) => processOf(pid)?.parent === this.pid && commandLineOf(pid).includes('guest/main'))
  }

  /** Runs so many scripts, each after the one before. Returns the memory of idle sandboxes, in bytes. */
  async run(scripts: number): Promise<number> {
    this.#child.stdin?.write(`${scripts}\n`)
    const line: IteratorResult<string, undefined> = await this.#lines.next()
    return Number(line.value)
  }

  /** Runs scripts in a row until so many instances wait, which are returned. */
  async grow(wanted: number): Promise<number[]> {
    const problem = await eventually(async () => {
      await this.run(wanted)
      return eventually(() => (this.instances.length < wanted ? `${this.instances.length} wait` : undefined), 3000)
    }, TIMEOUT_MS / 2)
    if (problem !== undefined) throw new Error(`of ${wanted} instances, ${problem}`)
    return this.instances
  }

  async end(how: 'close' | 'kill'): Promise<void> {
    if (how === 'kill') this.#child.kill('SIGKILL')
    else this.#child.stdin?.end()
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, 'exit')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('kill')
  }
}

/** Waits until these processes have ended. */
function awaitEnd(pids: readonly number[]): Promise<string | undefined> {
  return eventually(() => {
    const left = pids.filter((pid) => processOf(pid) !== undefined)
    return left.length === 0 ? undefined : `alive: ${left.join(', ')}`
  }, 5000)
}

/** The resident memory of these processes and all below them, as the kernel counts it. */
function residentBytes(pids: readonly number[]): number {
  const all = new Set(pids.flatMap((pid) => [pid, ...descendantsOf(pid)]))
  const sizes = [...all].map((pid) => /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  return sizes.reduce((sum, size) => sum + Number(size ?? 0) * 1024, 0)
}

const lacksMemory = process.availableMemory() < NEEDED_BYTES
if (lacksMemory) console.warn('the reserve of instances is not tested: less than 2 GiB of memory is available')

test.skipIf(lacksMemory)(
  'scripts in a row run in instances that waited, which count as idle memory and end with the sandbox',
  { timeout: TIMEOUT_MS },
  async () => {
    await using host = new Host(box)
    const waited = await host.grow(3)
    const reported = await host.run(0)
    expect(reported / residentBytes(host.instances)).toBeGreaterThan(0.7)
    await host.run(3)
    const used = await eventually(() => {
      const left = waited.filter((pid) => processOf(pid) !== undefined)
      return left.length === waited.length - 3 ? undefined : `of ${waited.length} that waited, ${left.length} are left`
    }, 5000)
    expect(used).toBeUndefined()
    const all = descendantsOf(host.pid)
    await host.end('close')
    expect(await awaitEnd(all)).toBeUndefined()
  },
)

test.skipIf(lacksMemory).for(['open', 'box'] as const)(
  'a host that is killed leaves none of several instances behind (%s)',
  { timeout: TIMEOUT_MS },
  async (where, { skip }) => {
    if (where === 'box' && noBox) skip('there is no box here, for the reason that is printed above')
    await using host = new Host(where)
    await host.grow(3)
    const all = descendantsOf(host.pid)
    await host.end('kill')
    expect(await awaitEnd(all)).toBeUndefined()
  },
)
