import { execFileSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FaultKind, Ground, Lift } from '../fault.ts'
import type { EngineName } from '../site.ts'
import { keepFull } from '../small-disk.ts'
import { COMPLETED, DAEMON_LOST_MS, GRACE_MS, LONG_SEC, LOST, SHORT_SEC, TIMED_OUT } from './bounds.ts'

const HOUR_MS = 3_600_000
/** Fewer than the next sandbox takes: a container comes by one connection, and some are open. */
const FEW_FILES: Readonly<Record<EngineName, number>> = { local: 4, docker: 1, pyodide: 4 }

/** A fault that new sandboxes meet; those that are there come to their end. */
const FOR_THE_NEXT = {
  workSec: 4,
  deadlineSec: LONG_SEC,
  victim: COMPLETED,
  others: COMPLETED,
  boundMs: LONG_SEC * 1000 + GRACE_MS,
  boundWhy: 'deadline of 20 s + 1 s',
  refuses: true,
} as const

/** What the product stands on is missing, full, closed or wrong. */
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
      // It stays an hour behind for as long as this host lives.
      return () => {}
    },
  },
  {
    fault: 'full',
    target: 'disk of state and temporary files',
    engines: ['local'],
    ...FOR_THE_NEXT,
    meanwhile: [...COMPLETED, /^threw no_space: /, /^threw \w+: .*no space/i],
    strike: ({ site }) => site.disk.fill(),
  },
  {
    fault: 'full',
    target: 'disk of the daemon',
    engines: ['docker'],
    ...FOR_THE_NEXT,
    meanwhile: [...COMPLETED, /^threw no_space: /, /^threw \w+: .*no space/i],
    strike: ({ site }) => keepFull(join(site.daemon?.directory ?? '', 'data')),
  },
  {
    fault: 'full',
    target: 'disk of the journal',
    engines: ['local', 'docker', 'pyodide'],
    ...FOR_THE_NEXT,
    // The task says so in its result, or the call when there is no journal at all.
    // What is small fits into the journal's last block.
    meanwhile: [...COMPLETED, /^(infrastructure|threw \w+): .*(no space|ENOSPC)/i],
    load: 'tasks',
    strike: ({ site }) => site.disk.fill(),
  },
  {
    fault: 'read-only',
    target: 'state directory',
    engines: ['local'],
    ...FOR_THE_NEXT,
    meanwhile: [...COMPLETED, /^threw state_dir_unusable: /, /^threw pool_exhausted: .*state directory/],
    strike: readOnly,
  },
  {
    fault: 'EMFILE',
    target: 'host',
    engines: ['local', 'docker', 'pyodide'],
    ...FOR_THE_NEXT,
    meanwhile: [...COMPLETED, /^threw \w+: .*(EMFILE|too many open files)/i],
    strike: fewFiles,
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
      // A start that was under way when the daemon ended.
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

/** A mount that holds files open for writing cannot become read-only: a second one on top can. The host's mounts are its own. */
function readOnly({ site, host }: Ground): Lift {
  const inMounts = (...command: readonly string[]): void =>
    void execFileSync('nsenter', ['-t', String(host.pid), '-m', ...command])
  inMounts('mount', '--bind', site.engine.state, site.engine.state)
  inMounts('mount', '-o', 'remount,bind,ro', site.engine.state)
  return () => (host.isGone() ? undefined : inMounts('umount', site.engine.state))
}

function fewFiles({ host, site, random }: Ground): Lift {
  const most = FEW_FILES[site.engine.name as EngineName]
  const limit = (soft: number): void => void execFileSync('prlimit', ['--pid', String(host.pid), `--nofile=${soft}:`])
  const before = Number(
    execFileSync('prlimit', ['--pid', String(host.pid), '--nofile', '--noheadings', '--output=SOFT'], {
      encoding: 'utf8',
    }),
  )
  const open = new Set(readdirSync(`/proc/${host.pid}/fd`).map(Number))
  const free = Array.from({ length: open.size + most + 1 }, (_, number) => number).filter((fd) => !open.has(fd))
  // The kernel gives the lowest free number, and none from the limit on.
  limit(free[random.below(most)] ?? before)
  // A host that died of it says so by its runs.
  return () => (host.isGone() ? undefined : limit(before))
}
