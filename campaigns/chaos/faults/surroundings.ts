import { execFileSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FaultKind, FaultContext, Lift } from '../fault.ts'
import type { MachineEngine } from '../../../test/support/walls.ts'
import { processOf } from '../../../test/support/processes.ts'
import { keepFull } from '../small-disk.ts'
import { COMPLETED, DAEMON_LOST_MS, GRACE_MS, LONG_SEC, LOST, SHORT_SEC, TIMED_OUT } from './bounds.ts'

const HOUR_MS = 3_600_000
/** Free descriptors, fewer than a new sandbox needs. A container needs one connection, and some are already open. */
const FEW_FILES: Readonly<Record<MachineEngine, number>> = { local: 4, docker: 1, pyodide: 4 }
/** Interval at which the limit of descriptors follows those that are open. */
const FOLLOW_MS = 50

/** Faults that affect only new sandboxes; running scripts complete. */
const ONLY_NEW_SANDBOXES = {
  workSec: 4,
  deadlineSec: LONG_SEC,
  victim: COMPLETED,
  others: COMPLETED,
  boundMs: LONG_SEC * 1000 + GRACE_MS,
  boundWhy: 'deadline of 20 s + 1 s',
  refuses: true,
} as const

/** Faults of the environment: clock, disks, descriptors, daemon. */
export const SURROUNDINGS: readonly FaultKind[] = [
  {
    fault: 'set back by an hour',
    target: 'clock of the host',
    engines: ['local', 'docker', 'pyodide'],
    workSec: 600,
    deadlineSec: SHORT_SEC,
    victim: TIMED_OUT,
    others: TIMED_OUT,
    boundMs: SHORT_SEC * 1000 + GRACE_MS,
    boundWhy: 'deadline of 4 s + 1 s',
    fakedClock: true,
    strike: async ({ host, clockFile }) => {
      writeFileSync(clockFile, '-1h')
      const { said } = await host.ask('clock')
      if (Math.abs(Date.now() - HOUR_MS - Number(said)) > 60_000) throw new Error(`the clock of the host shows ${said}`)
      // The clock of this host stays an hour behind.
      return () => {}
    },
  },
  {
    fault: 'full',
    target: 'disk of state and temporary files',
    engines: ['local'],
    ...ONLY_NEW_SANDBOXES,
    meanwhile: [...COMPLETED, /^threw no_space: /, /^threw \w+: .*no space/i],
    strike: ({ site }) => site.disk.fill(),
  },
  {
    fault: 'full',
    target: 'disk of the daemon',
    engines: ['docker'],
    ...ONLY_NEW_SANDBOXES,
    meanwhile: [...COMPLETED, /^threw no_space: /, /^threw \w+: .*no space/i],
    strike: ({ site }) => {
      const data = join(site.daemon?.directory ?? '', 'data')
      return keepFull(data, join(data, 'containers'))
    },
  },
  {
    fault: 'full',
    target: 'disk of the journal',
    engines: ['local', 'docker', 'pyodide'],
    ...ONLY_NEW_SANDBOXES,
    // The result of the task reports it, or the call throws when the journal cannot be opened.
    // A small entry still fits into the last block of the journal.
    meanwhile: [...COMPLETED, /^(infrastructure|threw \w+): .*(no space|ENOSPC)/i],
    load: 'tasks',
    strike: ({ site }) => site.disk.fill(),
  },
  {
    fault: 'read-only',
    target: 'state directory',
    engines: ['local'],
    ...ONLY_NEW_SANDBOXES,
    meanwhile: [...COMPLETED, /^threw state_dir_unusable: /, /^threw pool_exhausted: .*state directory/],
    strike: makeReadOnly,
  },
  {
    fault: 'EMFILE',
    target: 'host',
    engines: ['local', 'docker', 'pyodide'],
    ...ONLY_NEW_SANDBOXES,
    meanwhile: [...COMPLETED, /^threw \w+: .*(EMFILE|too many open files)/i],
    strike: limitDescriptors,
  },
  {
    fault: 'restart',
    target: 'daemon',
    engines: ['docker'],
    workSec: 600,
    deadlineSec: 60,
    victim: LOST,
    others: LOST,
    meanwhile: [
      ...COMPLETED,
      ...LOST,
      /^threw docker_unreachable: /,
      /^threw pool_exhausted: .*no Docker daemon/,
      // A sandbox was starting when the daemon ended.
      /^threw (sandbox_setup_failed|harness_start_failed): /,
    ],
    boundMs: DAEMON_LOST_MS,
    boundWhy: 'FLT-004',
    strike: async ({ site, random }) => {
      const how = random.pick(['stop', 'kill'] as const)
      const ended = how === 'stop' ? site.daemon?.stop() : site.daemon?.kill()
      return async () => {
        await ended
        await site.daemon?.restart()
      }
    },
  },
]

/** A mount with files open for writing cannot become read-only, but a second mount on top can. The host has private mounts. */
function makeReadOnly({ site, host }: FaultContext): Lift {
  const inMounts = (...command: readonly string[]): void =>
    void execFileSync('nsenter', ['-t', String(host.pid), '-m', ...command])
  inMounts('mount', '--bind', site.engine.state, site.engine.state)
  inMounts('mount', '-o', 'remount,bind,ro', site.engine.state)
  return () => (host.isGone() ? undefined : inMounts('umount', site.engine.state))
}

/**
 * Leaves the host a few free descriptors. The limit follows the open descriptors down for the whole fault, because a sandbox
 * that ends during it, such as one that was being removed when the fault began, would otherwise make room for a new one.
 */
function limitDescriptors({ host, site, random }: FaultContext): Lift {
  const spare = random.below(FEW_FILES[site.engine.name as MachineEngine])
  const limit = (soft: number): void => void execFileSync('prlimit', ['--pid', String(host.pid), `--nofile=${soft}:`])
  const before = Number(
    execFileSync('prlimit', ['--pid', String(host.pid), '--nofile', '--noheadings', '--output=SOFT'], {
      encoding: 'utf8',
    }),
  )
  let current = before
  const lower = (): void => {
    if (host.isGone()) return
    const open = new Set(readdirSync(`/proc/${host.pid}/fd`).map(Number))
    const free = Array.from({ length: open.size + spare + 1 }, (_, number) => number).filter((fd) => !open.has(fd))
    // The kernel assigns the lowest free number below the limit.
    const wanted = free[spare] ?? before
    if (wanted >= current) return
    current = wanted
    limit(current)
  }
  lower()
  const follow = (): void => {
    try {
      lower()
    } catch (error) {
      // Node reports the end of the host later than the kernel.
      if (processOf(host.pid) !== undefined) throw error
    }
  }
  const timer = setInterval(follow, FOLLOW_MS)
  return () => {
    clearInterval(timer)
    // If the host died, its runs have reported that.
    if (!host.isGone()) limit(before)
  }
}
