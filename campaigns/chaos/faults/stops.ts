import { docker } from '../../../test/support/containers.ts'
import { processOf } from '../../../test/support/processes.ts'
import type { FaultKind, FaultContext, Lift } from '../fault.ts'
import { type Roles, rolesIn } from '../site.ts'
import { BACKSTOP_MS, COMPLETED, DESTROY_MS, GRACE_MS, LONG_SEC, LOST, SHORT_SEC, TIMED_OUT } from './bounds.ts'

const TO_DEADLINE = { workSec: 600, deadlineSec: SHORT_SEC, victim: TIMED_OUT, others: TIMED_OUT }
const TO_ITS_END = { workSec: 4, deadlineSec: LONG_SEC, victim: COMPLETED, others: COMPLETED }
const holdForStop = (stopMs: number): number => stopMs
const BY_HOST = {
  boundMs: SHORT_SEC * 1000 + GRACE_MS + BACKSTOP_MS + GRACE_MS,
  boundWhy: 'FLT-011: deadline of 4 s + 1 s + 5 s + 1 s',
}

/** Faults that stop a process or container and continue it later. */
export const STOPS: readonly FaultKind[] = [
  {
    fault: 'SIGSTOP',
    target: 'host',
    engines: ['local', 'docker', 'pyodide'],
    ...TO_DEADLINE,
    boundMs: GRACE_MS + BACKSTOP_MS,
    boundFrom: 'lift',
    boundWhy: 'FLT-023, after SIGCONT: 1 s + 5 s',
    holdMs: holdForStop,
    load: 'none',
    strike: ({ host }) => {
      host.signal('SIGSTOP')
      return () => host.signal('SIGCONT')
    },
  },
  {
    fault: 'SIGSTOP',
    target: 'broker',
    engines: ['local', 'docker'],
    ...TO_DEADLINE,
    ...BY_HOST,
    // No wait for the end of the stop: the host kills the process earlier.
    strike: (context) => stopVictim(context, ({ broker }) => [broker]),
  },
  {
    fault: 'SIGSTOP',
    target: 'instance',
    engines: ['pyodide'],
    ...TO_DEADLINE,
    ...BY_HOST,
    // No wait for the end of the stop: the host kills the process earlier.
    strike: (context) => stopVictim(context, ({ all }) => all),
  },
  {
    fault: 'SIGSTOP',
    target: 'zygote',
    engines: ['local', 'docker'],
    ...TO_ITS_END,
    victim: [...COMPLETED, ...LOST],
    boundMs: LONG_SEC * 1000 + GRACE_MS,
    boundWhy: 'deadline of 20 s + 1 s',
    holdMs: holdForStop,
    strike: (context) => stopVictim(context, ({ zygote }) => [zygote]),
  },
  {
    fault: 'SIGSTOP',
    target: 'bwrap',
    engines: ['local'],
    ...TO_ITS_END,
    boundMs: LONG_SEC * 1000 + GRACE_MS,
    boundWhy: 'deadline of 20 s + 1 s',
    holdMs: holdForStop,
    strike: (context) => stopVictim(context, ({ launcher }) => [launcher]),
  },
  {
    fault: 'docker pause',
    target: 'container',
    engines: ['docker'],
    ...TO_DEADLINE,
    ...BY_HOST,
    // No wait for the end of the stop: the host removes the container earlier.
    strike: ({ site, victim }) => {
      docker(site.daemon?.host, 'pause', victim)
      return () => {}
    },
  },
  {
    fault: 'SIGSTOP',
    target: 'daemon',
    engines: ['docker'],
    ...TO_DEADLINE,
    meanwhile: [
      ...COMPLETED,
      ...TIMED_OUT,
      ...LOST,
      /^threw docker_unreachable: .*did not answer/,
      // The wait for a sandbox can end before the API timeout of the daemon.
      /^threw pool_exhausted: .*(did not answer|\d starting)/,
    ],
    boundMs: SHORT_SEC * 1000 + BACKSTOP_MS + DESTROY_MS + GRACE_MS,
    boundWhy: 'test/daemon/engines/docker/hung-daemon.test.ts: deadline of 4 s + 5 s + 2 s + 1 s',
    holdMs: holdForStop,
    strike: ({ site }) => stop([site.daemon?.pid]),
  },
]

function stopVictim({ site, victim }: FaultContext, which: (roles: Roles) => readonly (number | undefined)[]): Lift {
  return stop(which(rolesIn(site.engine.processesOf(victim))))
}

function stop(which: readonly (number | undefined)[]): Lift {
  // The pid may belong to another process later, so parent and uid are compared.
  const stoppedOnes = which.map((pid) => {
    const found = pid === undefined ? undefined : processOf(pid)
    if (found === undefined) throw new Error('the process to stop was not found')
    process.kill(found.pid, 'SIGSTOP')
    return found
  })
  return () => {
    for (const { pid, parent, uid } of stoppedOnes) {
      const now = processOf(pid)
      if (now?.state === 'T' && now.parent === parent && now.uid === uid) process.kill(pid, 'SIGCONT')
    }
  }
}
