import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

/** Found by killing owners of a workspace. */
export interface PersistingReport {
  readonly kills: number
  /** States that were acknowledged. */
  readonly acknowledged: number
  /** The number of owners that were killed in the middle of each act. */
  readonly during: Readonly<Record<string, number>>
  /** One line for each owner that found less than was acknowledged, or a state that never was. */
  readonly problems: readonly string[]
}

/** The work of the owners: to write files and synchronise them, or to go from one checkpoint to another. */
export type PersistingWork = 'sync' | 'restore'

const OWNER = join(import.meta.dirname, '../../test/support/persisting-workspace.main.ts')
/** Every other owner is killed within this time after it began to open its workspace, the rest after a first state was acknowledged. */
const MAX_WAIT_MS = 800

/**
 * Kills the owners of one workspace at random moments. The next one takes over at once, since it sees that the process is gone, and
 * must find the state that was acknowledged last, or one that was begun after it, as a whole.
 */
export async function killPersisting(
  directory: string,
  kills: number,
  work: PersistingWork,
): Promise<PersistingReport> {
  const seen = new Seen()
  for (let done = 0; done < kills; done++) {
    const from = done % 2 === 0 ? /^(?:synced|restored)/ : /^opening/
    for (const line of await killOne([directory, work, work, ...seen.checkpoints], from)) seen.take(line)
    seen.endOwner()
  }
  const { acknowledged, during, problems } = seen
  return { kills, acknowledged, during: Object.fromEntries(during), problems }
}

/** All that the owners said, one after the other. */
class Seen {
  readonly checkpoints: string[] = []
  readonly during = new Map<string, number>()
  readonly problems: string[] = []
  acknowledged = 0
  #last = '0'
  #begun = new Set<string>()
  #act = 'starting'

  take(line: string): void {
    const [word = '', what = ''] = line.split(' ')
    this.#act = word
    if (word === 'broken') this.problems.push(line)
    else if (word === 'checkpoint') this.checkpoints.push(what)
    else if (word === 'writing' || word === 'restoring') this.#begun.add(what)
    else if (word === 'opened' || word === 'synced' || word === 'restored') {
      if (what !== this.#last && !this.#begun.has(what))
        this.problems.push(`${line}, after ${this.#last} was acknowledged and ${[...this.#begun].join(', ')} begun`)
      if (word !== 'opened') this.acknowledged += 1
      this.#last = what
      this.#begun.clear()
    }
  }

  endOwner(): void {
    this.during.set(this.#act, (this.during.get(this.#act) ?? 0) + 1)
    this.#act = 'starting'
  }
}

/** The lines of an owner that was killed at a random moment after a line. */
async function killOne(words: readonly string[], from: RegExp): Promise<readonly string[]> {
  const owner = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', OWNER, ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  const reading = createInterface({ input: owner.stdout })
  const closed = once(reading, 'close')
  const reached = Promise.withResolvers<void>()
  reading.on('line', (line) => {
    lines.push(line)
    if (from.test(line)) reached.resolve()
  })
  await Promise.race([reached.promise, closed])
  await sleep(Math.random() * MAX_WAIT_MS)
  if (owner.exitCode !== null) lines.push(`broken: the owner ended by itself with ${owner.exitCode}`)
  owner.kill('SIGKILL')
  await closed
  return lines
}
