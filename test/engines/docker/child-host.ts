/* A host process of its own, for what cannot be taken away from the test's. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DockerEngineOptions } from '../../../src/engines/docker/index.ts'
import type { SandboxReport } from '../../../src/sandbox/index.ts'

const ROOT = join(import.meta.dirname, '../../..')

/** What a child host is to do. */
export interface Order {
  readonly act: 'report'
  readonly engine?: DockerEngineOptions
  /** Becomes this user once its modules are loaded. */
  readonly uid?: number
  /** Runs from a copy of the sources that has no package of npm but zod. */
  readonly withoutClient?: boolean
}

/** Runs an order in a process of its own and gives what it printed. */
export function childHost(order: Order): SandboxReport {
  const place = order.withoutClient === true ? copyWithoutClient() : undefined
  try {
    const main = join(place ?? ROOT, 'test/engines/docker/child-host.main.ts')
    const child = spawnSync(process.execPath, [main, JSON.stringify(order)], { encoding: 'utf8' })
    if (child.status !== 0) throw new Error(`the child host ended with ${child.status}: ${child.stderr}`)
    return JSON.parse(child.stdout) as SandboxReport
  } finally {
    if (place !== undefined) rmSync(place, { recursive: true, force: true })
  }
}

function copyWithoutClient(): string {
  const place = mkdtempSync(join(tmpdir(), 'sandglass-no-client-'))
  for (const name of ['src', 'harness', 'node_modules/zod', 'package.json', 'test/engines/docker/child-host.main.ts']) {
    cpSync(join(ROOT, name), join(place, name), { recursive: true })
  }
  return place
}
