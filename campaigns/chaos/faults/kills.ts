import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FaultKind, FaultContext } from '../fault.ts'
import { docker } from '../../../test/support/containers.ts'
import { processOf } from '../../../test/support/processes.ts'
import { SESSIONS, sessionProcesses } from '../sessions.ts'
import { type Roles, rolesIn } from '../site.ts'
import {
  COMPLETED,
  DOCKER_DEATH_MS,
  GRACE_MS,
  HOST_DEATH_MS,
  HOST_GONE,
  LONG_SEC,
  LOST,
  LOST_MS,
  PYODIDE_DEATH_MS,
} from './bounds.ts'

const ENDLESS = { workSec: 600, deadlineSec: 60 }

const hostKilled = {
  fault: 'kill -9',
  target: 'host',
  ...ENDLESS,
  victim: HOST_GONE,
  others: HOST_GONE,
  meanwhile: [...HOST_GONE, ...COMPLETED],
  endsHost: true,
  load: 'none',
  strike: ({ host }: FaultContext) => {
    host.signal('SIGKILL')
    return () => {}
  },
} as const

/** Faults that kill a process or container of the product. */
export const KILLS: readonly FaultKind[] = [
  {
    ...hostKilled,
    engines: ['local', 'docker'],
    boundMs: HOST_DEATH_MS,
    boundWhy: 'all processes gone, campaigns/adversarial/suites/host-death.ts',
  },
  {
    ...hostKilled,
    engines: ['pyodide'],
    boundMs: PYODIDE_DEATH_MS,
    boundWhy: 'all processes gone, test/sandbox/engines/pyodide/host-death.test.ts',
  },
  {
    fault: 'kill -9',
    target: 'broker',
    engines: ['local', 'docker'],
    ...ENDLESS,
    victim: LOST,
    boundMs: LOST_MS,
    boundWhy: 'FLT-010',
    strike: (context) => kill(context, ({ broker }) => broker),
  },
  {
    fault: 'kill -9',
    target: 'bwrap',
    engines: ['local'],
    ...ENDLESS,
    victim: LOST,
    boundMs: LOST_MS,
    boundWhy: 'FLT-010',
    strike: (context) => kill(context, ({ launcher }) => launcher),
  },
  {
    // The broker ends the run itself, or waits for its end and then gives up the sandbox.
    fault: 'kill -9',
    target: 'zygote',
    engines: ['local', 'docker'],
    workSec: 4,
    deadlineSec: LONG_SEC,
    victim: [...COMPLETED, ...LOST],
    others: COMPLETED,
    boundMs: LONG_SEC * 1000 + GRACE_MS,
    boundWhy: 'deadline of 20 s + 1 s',
    strike: (context) => kill(context, ({ zygote }) => zygote),
  },
  {
    fault: 'kill -9',
    target: 'broker of a workspace',
    engines: ['local', 'docker'],
    ...ENDLESS,
    script: 'transfer',
    victim: [/^threw workspace_lost: ./],
    boundMs: LOST_MS,
    boundWhy: 'FLT-010',
    strike: (context) => kill(context, ({ broker }) => broker),
  },
  {
    // Its program dies with it. The transfer continues.
    fault: 'kill -9',
    target: 'keeper of a program',
    engines: ['local', 'docker'],
    workSec: 4,
    deadlineSec: LONG_SEC,
    script: 'transfer',
    victim: [/^completed, without its program$/],
    others: COMPLETED,
    boundMs: LONG_SEC * 1000 + GRACE_MS,
    boundWhy: 'as for a deadline of 20 s + 1 s',
    strike: (context) => kill(context, ({ all }) => keeperIn(all)),
  },
  {
    ...hostKilled,
    target: 'host of eight sessions',
    script: 'sessions',
    engines: ['local'],
    boundMs: HOST_DEATH_MS,
    boundWhy: 'as for a host of scripts',
  },
  {
    ...hostKilled,
    target: 'host of eight sessions',
    script: 'sessions',
    engines: ['docker'],
    boundMs: DOCKER_DEATH_MS,
    boundWhy: 'no other test: a container of eight sessions with 40 checkpoints takes longer than one script',
  },
  {
    // Heads, copies and checkpoints: a session goes back to a copy, or is lost; the others never notice.
    fault: 'kill -9',
    target: 'processes of sessions',
    engines: ['local', 'docker'],
    workSec: 4,
    deadlineSec: LONG_SEC,
    script: 'sessions',
    victim: [/^completed: [4-8] good$/],
    others: COMPLETED,
    boundMs: LONG_SEC * 1000 + GRACE_MS,
    boundWhy: 'as for a deadline of 20 s + 1 s',
    strike: killSessionProcesses,
  },
  {
    fault: 'kill -9',
    target: 'keeper of a session',
    engines: ['local', 'docker'],
    workSec: 4,
    deadlineSec: LONG_SEC,
    script: 'sessions',
    victim: [/^completed: 7 good$/],
    others: COMPLETED,
    boundMs: LONG_SEC * 1000 + GRACE_MS,
    boundWhy: 'as for a deadline of 20 s + 1 s',
    strike: (context) =>
      kill(context, ({ all }) => {
        const own = sessionProcesses(all)
        // The parent of a copy that is being made is a head.
        const keepers = own.flatMap((pid) => processOf(pid)?.parent ?? []).filter((pid) => !own.includes(pid))
        return context.random.pick(keepers)
      }),
  },
  {
    fault: 'kill -9',
    target: 'instance',
    engines: ['pyodide'],
    ...ENDLESS,
    victim: [/^crashed\/crash: .*SIGKILL/, ...LOST],
    // The next instance of the sandbox is killed as well. It may get a run before the host notices its end.
    meanwhile: [...COMPLETED, /^crashed\/crash: .*SIGKILL/],
    boundMs: LOST_MS,
    boundWhy: 'FLT-010',
    strike: (context) => {
      for (const pid of rolesIn(context.site.engine.processesOf(context.victim)).all) process.kill(pid, 'SIGKILL')
      return () => {}
    },
  },
  {
    fault: 'docker kill',
    target: 'container',
    engines: ['docker'],
    ...ENDLESS,
    victim: LOST,
    boundMs: LOST_MS,
    boundWhy: 'FLT-010',
    strike: (context) => runDocker(context, 'kill'),
  },
  {
    fault: 'docker rm -f',
    target: 'container',
    engines: ['docker'],
    ...ENDLESS,
    victim: LOST,
    boundMs: LOST_MS,
    boundWhy: 'FLT-010',
    strike: (context) => runDocker(context, 'rm', '--force'),
  },
]

/** Kills some processes at once, and after a moment some of those that exist then. */
async function killSessionProcesses({ site, victim, random }: FaultContext): Promise<() => void> {
  for (const moment of [0, random.below(300)]) {
    await sleep(moment)
    const all = rolesIn(site.engine.processesOf(victim)).all
    for (const pid of random.shuffled(sessionProcesses(all)).slice(0, SESSIONS / 4)) killOne(pid)
  }
  return () => {}
}

function killOne(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // A copy that was replaced has ended by itself.
  }
}

function kill({ site, victim }: FaultContext, which: (roles: Roles) => number | undefined): () => void {
  const pid = which(rolesIn(site.engine.processesOf(victim)))
  if (pid === undefined) throw new Error(`the process to kill was not found in ${victim}`)
  process.kill(pid, 'SIGKILL')
  return () => {}
}

/** The kernel's name of a process; undefined if it has ended. */
function nameOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    return undefined
  }
}

/** The keeper of the program `cat`, which is its parent. */
function keeperIn(processes: readonly number[]): number | undefined {
  const program = processes.find((pid) => nameOf(pid) === 'cat')
  return program === undefined ? undefined : processOf(program)?.parent
}

function runDocker({ site, victim }: FaultContext, ...command: readonly string[]): () => void {
  docker(site.daemon?.host, ...command, victim)
  return () => {}
}
