import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

/** Found by killing code agents around the review of their scripts. */
export interface ReviewReport {
  readonly kills: number
  /** Scripts that ran to their end and are on record. */
  readonly ran: number
  /** Scripts that are on record as perhaps run: their process was killed meanwhile. */
  readonly uncertain: number
  /** The number of agents that were killed after each line that they said. */
  readonly after: Readonly<Record<string, number>>
  /** One line for each script that ran twice or was lost, and each proposal that was lost. */
  readonly problems: readonly string[]
}

const AGENT = join(import.meta.dirname, '../../test/support/code-agent/reviewed-agent.main.ts')
/** Agents are killed within this time after they found their thread, and after they proposed a script. */
const [MAX_FIND_MS, MAX_PROPOSE_MS] = [300, 100]
/** Scripts of a thread. */
const SCRIPTS = 2
/** Kills of one thread, which then goes on to its end. */
const KILLS_PER_THREAD = 3

/**
 * Kills code agents at random moments, from the start of a thread over its proposals to its end, and has the next one continue the thread.
 * @param store the place of a checkpointer.
 */
export async function killReviews(store: string, directory: string, kills: number): Promise<ReviewReport> {
  const runs = join(directory, 'runs')
  const after = new Map<string, number>()
  const problems: string[] = []
  const counts = { ran: 0, uncertain: 0 }
  for (let done = 0, thread = 0; done < kills; thread += 1) {
    const name = `thread-${thread}-${process.pid}`
    let pending: string | undefined
    for (let kill = 0; kill < KILLS_PER_THREAD && done < kills; kill += 1) {
      const words = [store, name, `killed-${kill}`, runs, 'hesitant']
      const lines = await oneAgent(words, kill === 0 ? /^found/ : /^proposed/)
      problems.push(...lostBetween(pending, lines).map((problem) => `${name}: ${problem}`))
      const last = lines.at(-1) ?? 'nothing'
      const [word = ''] = last.split(' ')
      // It came to the end before.
      if (word === 'answered') break
      done += 1
      after.set(word, (after.get(word) ?? 0) + 1)
      pending = word === 'proposed' ? last.slice('proposed '.length) : undefined
    }
    const lines = await oneAgent([store, name, 'last', runs], undefined)
    problems.push(...lostBetween(pending, lines).map((problem) => `${name}: ${problem}`))
    const found = judge(name, lines.at(-1) ?? '', existsSync(runs) ? readFileSync(runs, 'utf8') : '')
    problems.push(...found.problems)
    counts.ran += found.ran
    counts.uncertain += found.uncertain
  }
  return { kills, ...counts, after: Object.fromEntries(after), problems }
}

/** A proposal that waited is there again, unless the answer to it was recorded. */
function lostBetween(pending: string | undefined, lines: readonly string[]): string[] {
  const [found = '', next = ''] = lines
  if (pending === undefined || found === '' || found === 'found unfinished') return []
  const isThere = found === 'found waiting' && (next === '' || next === `proposed ${pending}`)
  return isThere || found === 'found answered' ? [] : [`${pending} waited, and then: ${found}, ${next}`]
}

/** Compares the record of a thread with what its scripts did. */
function judge(
  thread: string,
  last: string,
  runs: string,
): { readonly ran: number; readonly uncertain: number; readonly problems: string[] } {
  const [, records] = /^answered (\[.*\])$/.exec(last) ?? []
  if (records === undefined) return { ran: 0, uncertain: 0, problems: [`${thread} ended with ${last}`] }
  const outcomes = (JSON.parse(records) as string[]).filter((one) => !one.includes(' by '))
  const ran = outcomes.filter((one) => one === 'ran').length
  const uncertain = outcomes.length - ran
  const scripts = runs.split('\n').filter((line) => line.startsWith(`${thread} `))
  const problems: string[] = []
  if (new Set(scripts).size !== scripts.length) problems.push(`${thread}: a script ran twice: ${scripts.join(', ')}`)
  if (outcomes.length !== SCRIPTS || scripts.length < ran || scripts.length > SCRIPTS)
    problems.push(`${thread}: ${scripts.length} scripts ran, and the record has ${outcomes.join(', ')}`)
  return { ran, uncertain, problems }
}

/** The lines of an agent that continues a thread; killed at a random moment after the line `from`, if that is given. */
async function oneAgent(words: readonly string[], from: RegExp | undefined): Promise<readonly string[]> {
  const agent = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', AGENT, ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  const reading = createInterface({ input: agent.stdout })
  const closed = once(reading, 'close')
  const reached = Promise.withResolvers<void>()
  reading.on('line', (line) => {
    lines.push(line)
    if (from?.test(line) === true) reached.resolve()
  })
  await Promise.race([reached.promise, closed])
  if (from !== undefined) {
    await sleep(Math.random() * (from.source.includes('found') ? MAX_FIND_MS : MAX_PROPOSE_MS))
    agent.kill('SIGKILL')
  }
  await closed
  return lines
}
