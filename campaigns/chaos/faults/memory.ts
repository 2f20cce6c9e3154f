import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { eventually } from '../../../test/support/eventually.ts'
import { docker } from '../../../test/support/containers.ts'
import type { FaultKind, FaultContext, Lift } from '../fault.ts'
import { rolesIn } from '../site.ts'
import { COMPLETED, HOST_DEATH_MS, HOST_GONE, LOST_MS, PYODIDE_DEATH_MS } from './bounds.ts'

const MiB = 1024 * 1024
/** Memory that a host or a sandbox may take on top of its current use. */
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

/** Faults in which the host or one sandbox runs out of memory. */
export const MEMORY: readonly FaultKind[] = [
  {
    ...ofHost,
    engines: ['local', 'docker'],
    boundMs: HOST_DEATH_MS,
    boundWhy: 'after the kernel killed it: campaigns/adversarial/suites/host-death.ts',
  },
  {
    ...ofHost,
    engines: ['pyodide'],
    boundMs: PYODIDE_DEATH_MS,
    boundWhy: 'after the kernel killed it: test/sandbox/engines/pyodide/host-death.test.ts',
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

/** Moves the host to a small control group and lets it take memory until the kernel kills it. */
async function hostInSmallGroup({ host }: FaultContext): Promise<Lift> {
  const rss = Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${host.pid}/status`, 'utf8'))?.[1]) * 1024
  const group = makeGroup(`sandglass-chaos-${host.pid}`)
  writeFileSync(join(group, 'cgroup.procs'), String(host.pid))
  // Cgroup v2 does not move charges: the memory that the host already has stays charged to its old group.
  const max = Math.max(currentOf(group), rss / 4) + HEADROOM_BYTES
  writeFileSync(join(group, limitFile(group)), String(Math.round(max)))
  void host.ask('grow')
  await host.gone
  return async () => {
    const problem = await eventually(() => {
      try {
        rmdirSync(group)
        return undefined
      } catch (error) {
        return `the control group of the host could not be removed: ${String(error)}`
      }
    }, 5000)
    if (problem !== undefined) throw new Error(problem)
  }
}

function sandboxWithLessMemory({ site, victim }: FaultContext): Lift {
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
