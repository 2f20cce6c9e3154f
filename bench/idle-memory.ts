import { readdirSync, readFileSync } from 'node:fs'
import { createSandglass } from './subject.ts'
import { pause } from './measure.ts'
import type { Row } from './row.ts'

/** The memory of an idle warm sandbox: the proportional set size of broker, zygote and spare child. */
export async function idleMemory(): Promise<Row[]> {
  const before = new Set(harnessProcesses())
  await using sg = await createSandglass({ poolSize: 1, maxOverflow: 0 })
  await sg.run('emit_result(1)')
  await pause(100)
  const parts = harnessProcesses()
    .filter((pid) => !before.has(pid))
    .map((pid) => ({ pid, kib: pss(pid) }))
    .toSorted((a, b) => a.pid - b.pid)
  const total = parts.reduce((sum, { kib }) => sum + kib, 0)
  return [
    {
      what: 'idle warm sandbox: PSS of broker + zygote + spare child',
      figure: `${(total / 1024).toFixed(1)} MiB (${parts.map(({ kib }) => (kib / 1024).toFixed(1)).join(' + ')})`,
    },
  ]
}

/** The pids of this process's harnesses and of the processes that they forked. */
export function harnessProcesses(): number[] {
  return descendantsOf(process.pid).filter((pid) => {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      return line.includes('from sandglass_harness import') && !line.includes('bwrap')
    } catch {
      return false
    }
  })
}

function descendantsOf(pid: number): number[] {
  try {
    const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
    )
    return children.flatMap((child) => [child, ...descendantsOf(child)])
  } catch {
    return []
  }
}

/** The proportional set size of a process, in KiB. */
export function pss(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? Number.NaN)
}
