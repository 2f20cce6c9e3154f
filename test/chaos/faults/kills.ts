import type { FaultKind, Ground } from '../fault.ts'
import { docker } from '../../support/containers.ts'
import { type Roles, rolesIn } from '../site.ts'
import { COMPLETED, GRACE_MS, HOST_DEATH_MS, HOST_GONE, LONG_SEC, LOST, LOST_MS, PYODIDE_DEATH_MS } from './bounds.ts'

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
  strike: ({ host }: Ground) => {
    host.signal('SIGKILL')
    return () => {}
  },
} as const

/** Something of the product is killed. */
export const KILLS: readonly FaultKind[] = [
  {
    ...hostKilled,
    engines: ['local', 'docker'],
    boundMs: HOST_DEATH_MS,
    boundWhy: 'all processes gone, test/adversarial/suites/host-death.ts',
  },
  {
    ...hostKilled,
    engines: ['pyodide'],
    boundMs: PYODIDE_DEATH_MS,
    boundWhy: 'all processes gone, test/engines/pyodide/host-death.test.ts',
  },
  {
    fault: 'kill -9',
    target: 'broker',
    engines: ['local', 'docker'],
    ...ENDLESS,
    victim: LOST,
    boundMs: LOST_MS,
    boundWhy: 'FLT-010',
    strike: (ground) => killed(ground, ({ broker }) => broker),
  },
  {
    fault: 'kill -9',
    target: 'bwrap',
    engines: ['local'],
    ...ENDLESS,
    victim: LOST,
    boundMs: LOST_MS,
    boundWhy: 'FLT-010',
    strike: (ground) => killed(ground, ({ launcher }) => launcher),
  },
  {
    // The broker ends the run in its place, or lets it come to its end and gives the sandbox up then.
    fault: 'kill -9',
    target: 'zygote',
    engines: ['local', 'docker'],
    workSec: 4,
    deadlineSec: LONG_SEC,
    victim: [...COMPLETED, ...LOST],
    others: COMPLETED,
    boundMs: LONG_SEC * 1000 + GRACE_MS,
    boundWhy: 'deadline of 20 s + 1 s',
    strike: (ground) => killed(ground, ({ zygote }) => zygote),
  },
  {
    fault: 'kill -9',
    target: 'instance',
    engines: ['pyodide'],
    ...ENDLESS,
    victim: [/^crashed\/crash: .*SIGKILL/, ...LOST],
    // The sandbox's next instance is killed, too: a run may be given to it before its end is noticed.
    meanwhile: [...COMPLETED, /^crashed\/crash: .*SIGKILL/],
    boundMs: LOST_MS,
    boundWhy: 'FLT-010',
    strike: (ground) => {
      for (const pid of rolesIn(ground.site.engine.processesOf(ground.victim)).all) process.kill(pid, 'SIGKILL')
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
    strike: (ground) => asked(ground, 'kill'),
  },
  {
    fault: 'docker rm -f',
    target: 'container',
    engines: ['docker'],
    ...ENDLESS,
    victim: LOST,
    boundMs: LOST_MS,
    boundWhy: 'FLT-010',
    strike: (ground) => asked(ground, 'rm', '--force'),
  },
]

function killed({ site, victim }: Ground, which: (roles: Roles) => number | undefined): () => void {
  const pid = which(rolesIn(site.engine.processesOf(victim)))
  if (pid === undefined) throw new Error(`the process to kill was not found in ${victim}`)
  process.kill(pid, 'SIGKILL')
  return () => {}
}

function asked({ site, victim }: Ground, ...command: readonly string[]): () => void {
  docker(site.daemon?.host, ...command, victim)
  return () => {}
}
