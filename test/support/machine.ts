import { readFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'

/** Describes the machine of a measurement for the documents: processors, memory, distribution and kernel. */
export function machine(): string {
  const distribution = /^PRETTY_NAME="?([^"\n]*)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'Linux'
  const model = cpus()[0]?.model.trim().replace(/\s+/g, ' ') ?? 'unknown CPU'
  return `${cpus().length} x ${model}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${distribution}, kernel ${release()}`
}
