import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SandboxReport } from '../../../../src/sandbox/index.ts'
import type { HostOrder } from './host.main.ts'

const ROOT = join(import.meta.dirname, '../../../..')
const MAIN = 'test/daemon/engines/docker/host.main.ts'

/** The report of the engine in a host process of another user. */
export function reportAs(uid: number): SandboxReport {
  return reportIn(ROOT, { act: 'report', uid })
}

/** Its report if zod is the only installed npm package. */
export function reportWithoutClient(): SandboxReport {
  const place = mkdtempSync(join(tmpdir(), 'sandglass-no-client-'))
  try {
    for (const name of ['src', 'harness', 'node_modules/zod', 'package.json', 'test/support/scripts.ts', MAIN]) {
      cpSync(join(ROOT, name), join(place, name), { recursive: true })
    }
    return reportIn(place, { act: 'report' })
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

function reportIn(root: string, order: HostOrder): SandboxReport {
  const child = spawnSync(process.execPath, [join(root, MAIN), JSON.stringify(order)], { encoding: 'utf8' })
  if (child.status !== 0) throw new Error(`the host ended with ${child.status}: ${child.stderr}`)
  return JSON.parse(child.stdout) as SandboxReport
}
