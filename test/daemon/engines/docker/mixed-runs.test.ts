import { readdirSync, readlinkSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { dockerEngine } from '../../../../src/engines/docker/index.ts'
import { createSandglass, type Sandglass } from '../../../../src/sandglass.ts'
import { requireDockerEngine } from '../../../support/docker-engine.ts'
import { containers, docker } from '../../../support/containers.ts'
import { eventually } from '../../../support/eventually.ts'
import { findLeftContainers } from './own-containers.ts'

const { skip, image } = await requireDockerEngine()
const RUNS = 300
const AT_ONCE = 4

type Kind = readonly [script: (number: number) => string, status: string]
const OK: Kind = [(number) => `emit_result(${number})`, 'completed']
const EXCEPTION: Kind = [() => 'raise ValueError("no")', 'failed']
const TIMEOUT: Kind = [() => 'while True:\n    pass', 'timed-out']
const CRASH: Kind = [() => 'import os\nos.kill(os.getpid(), 11)', 'crashed']
const MIX: readonly Kind[] = [OK, OK, EXCEPTION, OK, OK, TIMEOUT, OK, OK, CRASH, OK]

/** The open sockets of this process, and the number of all its descriptors. */
function descriptors(): { all: number; sockets: number } {
  const targets = readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return []
    }
  })
  return { all: targets.length, sockets: targets.filter((target) => target.startsWith('socket:')).length }
}

async function runAll(sandglass: Sandglass): Promise<Set<string>> {
  const ids = new Set<string>()
  let next = 0
  const work = async (): Promise<void> => {
    while (next < RUNS) {
      const number = next
      next += 1
      const [script, status] = MIX[number % MIX.length] ?? OK
      const executionTimeoutSec = status === 'timed-out' ? 0.05 : 30
      const result = await sandglass.run(script(number), { limits: { executionTimeoutSec } })
      expect([number, result.status, result.finalData]).toEqual([
        number,
        status,
        status === 'completed' ? number : null,
      ])
      ids.add(result.sandbox.id)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return ids
}

describe.skipIf(skip)(`${RUNS} mixed runs, ${AT_ONCE} at a time`, () => {
  test('leave no container, volume, descriptor or socket', async () => {
    // Loads the client and the resources that it keeps.
    await (await createSandglass({ engine: dockerEngine({ image }), poolSize: 1 })).close()
    const volumes = (): string => docker(undefined, 'volume', 'ls', '--quiet')
    const before = { ...descriptors(), volumes: volumes() }
    const engine = dockerEngine({ image })
    const sandglass = await createSandglass({ engine, poolSize: AT_ONCE, maxOverflow: 0 })
    const ids = await runAll(sandglass)
    expect(containers(undefined).filter(({ name }) => ids.has(name)).length).toBeLessThanOrEqual(AT_ONCE)
    await sandglass.close()
    await engine.close()
    expect(await findLeftContainers(undefined, 0)).toBeUndefined()
    const problem = await eventually(() => {
      const { all, sockets } = descriptors()
      return all - before.all <= 5 && sockets <= before.sockets ? undefined : `${all} descriptors, ${sockets} sockets`
    }, 5000)
    expect(problem).toBeUndefined()
    expect(volumes()).toBe(before.volumes)
  }, 240_000)
})
