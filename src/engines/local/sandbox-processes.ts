import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { shortageError } from '../../errors/index.ts'
import { isLiving, statusOf } from '../../support/index.ts'
import { readMark } from './mark.ts'
import { killMember, killSame } from './process-id.ts'

/** A process of a sandbox, as this machine sees it. */
export interface SandboxProcess {
  readonly pid: number
  /** The start time. With the number it identifies the process. */
  readonly start: string
  readonly sandbox: string
  /** True if its own command line names the sandbox: a launcher, or PID 1 and its children. */
  readonly isMarked: boolean
}

/** The facts that decide to which sandbox a process belongs. */
export interface ProcessLine {
  readonly pid: number
  readonly start: string
  readonly parent: number
  /** The sandbox that its command line names. */
  readonly mark: string | undefined
}

/**
 * Lists every living process of every sandbox on this machine, of any owner.
 * @throws SandglassError `sandbox_setup_failed` when no descriptor is left to read /proc.
 */
export function listSandboxProcesses(): SandboxProcess[] {
  return assignToSandboxes(readProcesses())
}

/** Assigns processes to sandboxes by the outermost mark: a script that changes its own command line changes nothing. */
export function assignToSandboxes(lines: readonly ProcessLine[]): SandboxProcess[] {
  const byPid = new Map(lines.map((line) => [line.pid, line]))
  return lines.flatMap((line) => {
    const { pid, start, mark } = line
    let sandbox = mark
    const passed = new Set<number>()
    for (let at = byPid.get(line.parent); at !== undefined && !passed.has(at.pid); at = byPid.get(at.parent)) {
      passed.add(at.pid)
      sandbox = at.mark ?? sandbox
    }
    return sandbox === undefined ? [] : [{ pid, start, sandbox, isMarked: mark === sandbox }]
  })
}

/** Kills everything of one sandbox, as {@link killProcesses} does. */
export function killSandbox(id: string): Promise<void> {
  return killProcesses(listSandboxProcesses().filter(({ sandbox }) => sandbox === id))
}

/**
 * Kills processes of sandboxes, and waits for at most 3 s until they are gone. Those without the mark that are not in the
 * group die with their PID 1.
 */
export async function killProcesses(processes: readonly SandboxProcess[]): Promise<void> {
  for (const { pid, start, sandbox, isMarked } of processes) {
    if (isMarked) killSame(pid, start)
    else killMember(pid, sandbox)
  }
  await awaitEnd(processes)
}

const END_MS = 3000

/** Waits until all of these have ended: at most 3 s. */
export async function awaitEnd(processes: readonly Pick<SandboxProcess, 'pid' | 'start'>[]): Promise<void> {
  const deadline = performance.now() + END_MS
  for (let pause = 1; processes.some(({ pid, start }) => isLiving(pid, start)); pause = Math.min(2 * pause, 50)) {
    if (performance.now() > deadline) return
    await sleep(pause)
  }
}

function readProcesses(): ProcessLine[] {
  // Systems other than Linux have no such directory, and no sandboxes.
  const names = existsSync('/proc') ? listProcessIds() : []
  return names.flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    const pid = Number(name)
    // Read before the command line: if the id is reused in between, a kill by this start time hits no process.
    const status = statusOf(pid)
    if (status?.lives !== true) return []
    return [{ pid, start: status.start, parent: status.parent, mark: readMarkOf(pid) }]
  })
}

/** Lists the names in /proc; those of processes are numbers. */
export function listProcessIds(): string[] {
  try {
    return readdirSync('/proc')
  } catch (error) {
    throw shortageError(error, 'the processes of this machine cannot be listed') ?? error
  }
}

function readMarkOf(pid: number): string | undefined {
  try {
    return readMark(readFileSync(`/proc/${pid}/cmdline`, 'latin1'))
  } catch (error) {
    // The process has ended, unless the host lacks the resources to read it: it would then seem to belong to no sandbox.
    const shortage = shortageError(error, 'the processes of this machine cannot be read')
    if (shortage !== undefined) throw shortage
    return undefined
  }
}
