import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { createArtifactService, storeInDirectory } from '../../src/artifacts/index.ts'

/** Found by a campaign of kills. */
export interface KillReport {
  readonly kills: number
  /** Versions whose save was acknowledged. */
  readonly saved: number
  readonly deleted: number
  /** One line for each version that is lost, half or given twice. */
  readonly problems: readonly string[]
}

const WRITER = join(import.meta.dirname, 'writer.main.ts')
const MAX_WAIT_MS = 120
/** Writers that use the store at once. */
const WRITERS = 2

/** Kills writers of artifacts at random moments, each pair in the same store, and compares it with what they were told. */
export async function killWriters(directory: string, kills: number): Promise<KillReport> {
  const lines: string[] = []
  for (let done = 0; done < kills; done += WRITERS) {
    await Promise.all(Array.from({ length: Math.min(WRITERS, kills - done) }, () => killOne(directory, lines)))
  }
  return { kills, ...(await compare(directory, lines)) }
}

async function killOne(directory: string, lines: string[]): Promise<void> {
  const writer = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', WRITER, directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const reading = createInterface({ input: writer.stdout })
  reading.on('line', (line) => lines.push(line))
  const closed = once(reading, 'close')
  await once(reading, 'line')
  await sleep(Math.random() * MAX_WAIT_MS)
  writer.kill('SIGKILL')
  await closed
}

async function compare(directory: string, lines: readonly string[]): Promise<Omit<KillReport, 'kills'>> {
  const saved = new Map<string, string>()
  const deleting = new Set<string>()
  const deleted = new Set<string>()
  const problems: string[] = []
  for (const [word, name = '', version = '', sha256 = ''] of lines.map((line) => line.split(' '))) {
    const id = `${name}@${version}`
    if (word === 'saved' && saved.has(id)) problems.push(`${id} was given twice`)
    if (word === 'saved') saved.set(id, sha256)
    if (word === 'deleting') deleting.add(id)
    if (word === 'deleted') deleted.add(id)
  }
  const artifacts = createArtifactService(storeInDirectory(directory))
  const found = new Set<string>()
  for (const { name } of await artifacts.list()) {
    for (const { version } of await artifacts.versions(name)) {
      const id = `${name}@${version}`
      found.add(id)
      const { data, sha256 } = await artifacts.load(name, { version })
      const actual = createHash('sha256').update(data).digest('hex')
      if (actual !== sha256 || actual !== (saved.get(id) ?? actual)) problems.push(`${id} has other content`)
      if (deleted.has(id)) problems.push(`${id} was deleted and is there`)
    }
  }
  for (const id of saved.keys()) if (!found.has(id) && !deleting.has(id)) problems.push(`${id} is lost`)
  return { saved: saved.size, deleted: deleted.size, problems }
}
