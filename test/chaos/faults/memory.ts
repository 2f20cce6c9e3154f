import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { eventually } from '../../support/eventually.ts'
import { docker } from '../../support/containers.ts'
import type { FaultKind, Ground, Lift } from '../fault.ts'
import { rolesIn } from '../site.ts'
import { COMPLETED, HOST_DEATH_MS, HOST_GONE, LOST_MS, PYODIDE_DEATH_MS } from './bounds.ts'

const MiB = 1024 * 1024
/** What is left to the host above what it has, and to a sandbox. */
const HEADROOM_BYTES = 24 * MiB

const ofHost = {
  fault: 'ENOMEM by a small control group',
  target: 'host',
  workSec: 600,
  deadlineSec: 60,
  victim: HOST_GONE,
  others: HOST_GONE,
  meanwhile: [...HOST_GONE, ...COMPLETED],
  endsHost: true,
  load: 'none',
  strike: hostInSmallGroup,
} as const

/** Memory runs out, for the host and for one sandbox. */
export const MEMORY: readonly FaultKind[] = [
  {
    ...ofHost,
    engines: ['local', 'docker'],
    boundMs: HOST_DEATH_MS,
    boundWhy: 'after the kernel killed it: test/adversarial/suites/host-death.ts',
  },
  {
    ...ofHost,
    engines: ['pyodide'],
    boundMs: PYODIDE_DEATH_MS,
    boundWhy: 'after the kernel killed it: test/engines/pyodide/host-death.test.ts',
  },
  {
    fault: 'ENOMEM by a small control group',
    target: 'sandbox',
    engines: ['local', 'docker'],
    workSec: 600,
    deadlineSec: 60,
    script: 'grow',
    victim: [/^memory-limit\/oom: .*memory/],
    boundMs: LOST_MS,
    boundWhy: 'FLT-007 has no time: as for a lost sandbox',
    strike: sandboxWithLessMemory,
  },
]

/** The host takes memory in a group that is small; the kernel ends it. */
async function hostInSmallGroup({ host }: Ground): Promise<Lift> {
  const rss = Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${host.pid}/status`, 'utf8'))?.[1]) * 1024
  const group = makeGroup(`sandglass-chaos-${host.pid}`)
  writeFileSync(join(group, 'cgroup.procs'), String(host.pid))
  // What it has is charged elsewhere, if the kernel moves no charges: then it may take this much in all.
  const most = Math.max(currentOf(group), rss / 4) + HEADROOM_BYTES
  writeFileSync(join(group, limitFile(group)), String(Math.round(most)))
  void host.ask('grow')
  await host.gone
  return async () => {
    const problem = await eventually(() => {
      try {
        rmdirSync(group)
        return undefined
      } catch (error) {
        return `the group of the driver stays: ${String(error)}`
      }
    }, 5000)
    if (problem !== undefined) throw new Error(problem)
  }
}

function sandboxWithLessMemory({ site, victim }: Ground): Lift {
  const [pid] = rolesIn(site.engine.processesOf(victim)).all
  const group = memoryGroupOf(pid ?? 0)
  if (site.engine.name === 'docker' && !basename(group).includes(idOf(site.daemon?.host, victim))) {
    throw new Error(`the memory group of ${victim} is ${group}`)
  }
  writeFileSync(join(group, limitFile(group)), String(currentOf(group) + HEADROOM_BYTES))
  return () => {}
}

function idOf(daemon: string | undefined, name: string): string {
  return docker(daemon, 'inspect', '--format', '{{.Id}}', name).trim()
}

function makeGroup(name: string): string {
  const path = join(existsSync('/sys/fs/cgroup/memory') ? '/sys/fs/cgroup/memory' : '/sys/fs/cgroup', name)
  mkdirSync(path)
  return path
}

function memoryGroupOf(pid: number): string {
  const lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8').split('\n')
  const one = lines.find((line) => line.split(':')[1]?.split(',').includes('memory'))
  const two = lines.find((line) => line.startsWith('0::'))
  const [root, line] = one === undefined ? ['/sys/fs/cgroup', two] : ['/sys/fs/cgroup/memory', one]
  return join(root, line?.split(':').slice(2).join(':') ?? '')
}

function limitFile(group: string): string {
  return existsSync(join(group, 'memory.max')) ? 'memory.max' : 'memory.limit_in_bytes'
}

function currentOf(group: string): number {
  const file = existsSync(join(group, 'memory.current')) ? 'memory.current' : 'memory.usage_in_bytes'
  return Number(readFileSync(join(group, file), 'utf8'))
}
