import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

/** Found by killing owners of a workspace. */
export interface PersistingReport {
  readonly kills: number
  /** The number of the last state that was acknowledged. */
  readonly synced: number
  /** One line for each owner that found less than was acknowledged, or a state that never was. */
  readonly problems: readonly string[]
}

const OWNER = join(import.meta.dirname, '../../test/support/persisting-workspace.main.ts')
const MAX_WAIT_MS = 400

/** Kills the owners of one workspace at random moments: while they open it, while they synchronise, in between. */
export async function killPersisting(directory: string, kills: number): Promise<PersistingReport> {
  const problems: string[] = []
  let synced = 0
  for (let done = 0; done < kills; done++) {
    // Every third is killed on its way in.
    const lines = await killOne(directory, done % 3 === 2)
    for (const line of lines) {
      const [word, number = ''] = line.split(' ')
      const isWhole = /^\d+$/.test(number)
      if (word === 'opened' && (!isWhole || Number(number) < synced))
        problems.push(`${line}, but ${synced} was acknowledged`)
      if (word === 'half') problems.push(line)
      if (isWhole) synced = Math.max(synced, Number(number))
    }
  }
  return { kills, synced, problems }
}

async function killOne(directory: string, isEarly: boolean): Promise<readonly string[]> {
  const owner = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', OWNER, directory, 'killed'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  const reading = createInterface({ input: owner.stdout })
  reading.on('line', (line) => lines.push(line))
  const closed = once(reading, 'close')
  if (!isEarly) await once(reading, 'line')
  await sleep(Math.random() * MAX_WAIT_MS * (isEarly ? 4 : 1))
  owner.kill('SIGKILL')
  await closed
  return lines
}
