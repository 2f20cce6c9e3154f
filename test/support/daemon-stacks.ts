import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PrivateDaemon } from './docker-daemon.ts'
import { eventually } from './eventually.ts'

/** The waits for a daemon. */
export interface Patience {
  readonly answerMs: number
  readonly dumpMs: number
}

/** A busy daemon needs seconds for each. */
const PATIENCE: Patience = { answerMs: 20_000, dumpMs: 10_000 }
const GROUPS = 25
const FRAMES = 10
const LOG_LINES = 40

/**
 * The state of a daemon that no longer answers: the stacks of its goroutines, counted, and the end of its log.
 * Undefined for one that answers.
 */
export async function whyStuck(
  daemon: PrivateDaemon,
  { answerMs, dumpMs }: Patience = PATIENCE,
): Promise<string | undefined> {
  const silence = new AbortController()
  const timer = setTimeout(() => silence.abort(`no answer after ${answerMs} ms`), answerMs)
  // Requests containers in every state: a hung daemon does not answer this request.
  const answers = await daemon.client.listContainers({ all: true, abortSignal: silence.signal }).then(
    () => true,
    (error: unknown) => String(error),
  )
  clearTimeout(timer)
  if (answers === true) return undefined
  const stacks = await goroutines(daemon, dumpMs)
  const log = daemon.log().trimEnd().split('\n').slice(-LOG_LINES).join('\n')
  return `the daemon ${daemon.host} does not tell about itself (${answers}).\nIts goroutines:\n${stacks}\nThe end of its log:\n${log}`
}

/** Reads the stacks that dockerd writes to a file in its state directory at SIGUSR1. */
async function goroutines(daemon: PrivateDaemon, dumpMs: number): Promise<string> {
  const directory = join(daemon.directory, 'exec')
  const written = (): string[] => readdirSync(directory).filter((name) => name.startsWith('goroutine-stacks-'))
  const before = new Set(written())
  process.kill(daemon.pid, 'SIGUSR1')
  let file: string | undefined
  const problem = await eventually(() => {
    file = written().find((name) => !before.has(name))
    return file === undefined ? 'it wrote none' : undefined
  }, dumpMs)
  return problem ?? summarizeStacks(readFileSync(join(directory, file ?? ''), 'utf8'))
}

/** Groups goroutines with the same state and stack, the longest waiting first. */
export function summarizeStacks(dump: string): string {
  const groups = new Map<string, { count: number; minutes: number }>()
  for (const block of dump.split('\n\n')) {
    const [head = '', ...lines] = block.trim().split('\n')
    const [, state = '', waited = '0'] = /^goroutine \d+ \[([^,\]]+)(?:, (\d+) minutes)?/.exec(head) ?? []
    if (state === '') continue
    // Every second line is a position in a file. Arguments differ between goroutines.
    const frames = lines.filter((line) => !line.startsWith('\t')).map((line) => line.replace(/\([^()]*\)$/, ''))
    const key = [`[${state}]`, ...frames.slice(0, FRAMES)].join('\n    ')
    const group = groups.get(key) ?? { count: 0, minutes: 0 }
    groups.set(key, { count: group.count + 1, minutes: Math.max(group.minutes, Number(waited)) })
  }
  return [...groups]
    .toSorted(([, a], [, b]) => b.minutes - a.minutes || b.count - a.count)
    .slice(0, GROUPS)
    .map(([key, { count, minutes }]) => `${count} x, up to ${minutes} min ${key}`)
    .join('\n')
}
