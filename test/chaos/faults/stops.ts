import { docker } from '../../support/containers.ts'
import { processOf } from '../../support/processes.ts'
import type { FaultKind, Ground, Lift } from '../fault.ts'
import { type Roles, rolesIn } from '../site.ts'
import { BACKSTOP_MS, COMPLETED, DESTROY_MS, GRACE_MS, LONG_SEC, LOST, SHORT_SEC, TIMED_OUT } from './bounds.ts'

const TO_DEADLINE = { workSec: 600, deadlineSec: SHORT_SEC, victim: TIMED_OUT, others: TIMED_OUT }
const TO_ITS_END = { workSec: 4, deadlineSec: LONG_SEC, victim: COMPLETED, others: COMPLETED }
const held = (stopMs: number): number => stopMs
const BY_HOST = {
  boundMs: SHORT_SEC * 1000 + GRACE_MS + BACKSTOP_MS + GRACE_MS,
  boundWhy: 'FLT-011: deadline of 4 s + 1 s + 5 s + 1 s',
}

/** Something of the product is stopped, and goes on later. */
export const STOPS: readonly FaultKind[] = [
  {
    fault: 'SIGSTOP',
    target: 'host',
    engines: ['local', 'docker', 'pyodide'],
    ...TO_DEADLINE,
    boundMs: GRACE_MS + BACKSTOP_MS,
    boundFrom: 'lift',
    boundWhy: 'FLT-023, after SIGCONT: 1 s + 5 s',
    holdMs: held,
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
    // It is not waited for: its host ends it.
    strike: (ground) => stopped(ground, ({ broker }) => [broker]),
  },
  {
    fault: 'SIGSTOP',
    target: 'instance',
    engines: ['pyodide'],
    ...TO_DEADLINE,
    ...BY_HOST,
    // It is not waited for: its host ends it.
    strike: (ground) => stopped(ground, ({ all }) => all),
  },
  {
    fault: 'SIGSTOP',
    target: 'zygote',
    engines: ['local', 'docker'],
    ...TO_ITS_END,
    victim: [...COMPLETED, ...LOST],
    boundMs: LONG_SEC * 1000 + GRACE_MS,
    boundWhy: 'deadline of 20 s + 1 s',
    holdMs: held,
    strike: (ground) => stopped(ground, ({ zygote }) => [zygote]),
  },
  {
    fault: 'SIGSTOP',
    target: 'bwrap',
    engines: ['local'],
    ...TO_ITS_END,
    boundMs: LONG_SEC * 1000 + GRACE_MS,
    boundWhy: 'deadline of 20 s + 1 s',
    holdMs: held,
    strike: (ground) => stopped(ground, ({ launcher }) => [launcher]),
  },
  {
    fault: 'docker pause',
    target: 'container',
    engines: ['docker'],
    ...TO_DEADLINE,
    ...BY_HOST,
    // It is not waited for: its host removes it.
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
      // The daemon has not failed to answer yet, when the wait for a sandbox is over.
      /^threw pool_exhausted: .*(did not answer|\d starting)/,
    ],
    boundMs: SHORT_SEC * 1000 + BACKSTOP_MS + DESTROY_MS + GRACE_MS,
    boundWhy: 'test/engines/docker/hung-daemon.test.ts: deadline of 4 s + 5 s + 2 s + 1 s',
    holdMs: held,
    strike: ({ site }) => stop([site.daemon?.pid]),
  },
]

function stopped({ site, victim }: Ground, which: (roles: Roles) => readonly (number | undefined)[]): Lift {
  return stop(which(rolesIn(site.engine.processesOf(victim))))
}

function stop(which: readonly (number | undefined)[]): Lift {
  // A number may belong to somebody else when it goes on: parent and uid tell.
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
