import { readFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'

/** The machine that something was measured on: processors, memory, distribution and kernel, as the documents say it. */
export function machine(): string {
  const distribution = /^PRETTY_NAME="?([^"\n]*)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'Linux'
  const model = cpus()[0]?.model.trim().replace(/\s+/g, ' ') ?? 'unknown CPU'
  return `${cpus().length} x ${model}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${distribution}, kernel ${release()}`
}
