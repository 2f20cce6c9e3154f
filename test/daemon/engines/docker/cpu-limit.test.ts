import { afterEach, describe, expect, test } from 'vitest'
import { dockerEngine } from '../../../../src/engines/docker/index.ts'
import { ScriptExecutor } from '../../../../src/executor/index.ts'
import { resolveLimits, sandboxLimits } from '../../../../src/sandbox/index.ts'
import { createSandglass } from '../../../../src/sandglass.ts'
import { requireDockerEngine } from '../../../support/docker-engine.ts'
import { docker } from '../../../support/containers.ts'
import { eventually } from '../../../support/eventually.ts'
import { findLeftContainers } from './own-containers.ts'

const { skip, image } = await requireDockerEngine()

describe.skipIf(skip)('the limit of CPU time of a container', () => {
  afterEach(async () => expect(await findLeftContainers()).toBeUndefined())
  const cpusOf = (id: string): number =>
    Number(docker(undefined, 'inspect', '--format', '{{.HostConfig.NanoCpus}}', id)) / 1e9
  const ofDaemon = (): number => Number(docker(undefined, 'info', '--format', '{{.NCPU}}'))

  test('stays lifted until the handle is disposed of', async () => {
    const engine = dockerEngine({ image })
    await using sandbox = await engine.create({ limits: sandboxLimits(resolveLimits({ cpus: 0.5 })) })
    const lifted = sandbox.liftCpuLimit?.()
    const all = ofDaemon()
    const problem = await eventually(
      () => (cpusOf(sandbox.id) === all ? undefined : `${cpusOf(sandbox.id)} CPUs`),
      5000,
    )
    expect(problem).toBeUndefined()
    await lifted?.[Symbol.asyncDispose]()
    expect(cpusOf(sandbox.id)).toBe(0.5)
    await engine.close()
  })

  test('is lower for a run that asks for less, and restored after it', async () => {
    const engine = dockerEngine({ image })
    await using sandbox = await engine.create({ limits: sandboxLimits(resolveLimits()) })
    let during = 0
    const executor = new ScriptExecutor({
      limits: { cpus: 0.25 },
      onEvent: ({ type }) => {
        if (type === 'log') during = cpusOf(sandbox.id)
      },
    })
    expect(await executor.run({ sandbox, script: 'emit_log("up")\nemit_result(1)' })).toMatchObject({ error: null })
    expect([during, cpusOf(sandbox.id)]).toEqual([0.25, 1])
    await engine.close()
  })

  test('cannot be restored on a container that is gone, and says so', async () => {
    const engine = dockerEngine({ image })
    const sandbox = await engine.create({ limits: sandboxLimits(resolveLimits()) })
    const lifted = sandbox.liftCpuLimit?.()
    const all = ofDaemon()
    await eventually(() => (cpusOf(sandbox.id) === all ? undefined : 'not yet'), 5000)
    await sandbox.destroy()
    await expect(Promise.resolve(lifted?.[Symbol.asyncDispose]())).rejects.toMatchObject({ name: 'SandglassError' })
    await engine.close()
  })

  test('is restored after a run that was killed, and the sandbox serves the next run', async () => {
    await using sandglass = await createSandglass({
      engine: dockerEngine({ image }),
      poolSize: 1,
      maxOverflow: 0,
      limits: { cpus: 0.5 },
    })
    const stop = new AbortController()
    const run = sandglass.run('print("on", flush=True)\nwhile True:\n    pass', {
      signal: stop.signal,
      onEvent: ({ type }) => {
        if (type === 'stdout') stop.abort()
      },
    })
    const cancelled = await run
    expect([cancelled.status, cancelled.warnings]).toEqual(['cancelled', []])
    const next = await sandglass.run('emit_result(1)')
    expect([next.finalData, next.sandbox.id]).toEqual([1, cancelled.sandbox.id])
    expect(cpusOf(next.sandbox.id)).toBe(0.5)
  })

  test('is reduced to the CPUs of the daemon when it asks for more', async () => {
    const cpus = ofDaemon() + 2
    await using sandglass = await createSandglass({ engine: dockerEngine({ image }), poolSize: 1, limits: { cpus } })
    const { sandbox, finalData } = await sandglass.run('emit_result(1)')
    expect([finalData, sandbox.limitsEnforced.includes('cpu'), cpusOf(sandbox.id)]).toEqual([1, true, cpus - 2])
  })
})
