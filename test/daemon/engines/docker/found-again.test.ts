import { afterEach, describe, expect, test } from 'vitest'
import { dockerEngine } from '../../../../src/engines/docker/index.ts'
import { resolveLimits, sandboxLimits } from '../../../../src/sandbox/index.ts'
import { requireDockerEngine } from '../../../support/docker-engine.ts'
import { type DaemonProxy, proxyDaemon } from './daemon-proxy.ts'
import { findLeftContainers } from './own-containers.ts'

const { skip, image } = await requireDockerEngine()
const SPEC = { limits: sandboxLimits(resolveLimits()) }

describe.skipIf(skip)("the engine's findings about its daemon and image", () => {
  afterEach(async () => expect(await findLeftContainers()).toBeUndefined())

  const looksAt = (proxy: DaemonProxy): number =>
    proxy.requests.filter((request) => request === `GET /images/${image}/json`).length

  test('are used for all containers, also after a spec that cannot be met and an aborted creation', async () => {
    await using proxy = await proxyDaemon()
    const engine = dockerEngine({ image, host: proxy.host })
    await (await engine.create(SPEC)).destroy()
    await expect(engine.create({ ...SPEC, packages: '/no/such/directory' })).rejects.toMatchObject({
      code: 'packages_unreadable',
    })
    await expect(engine.create(SPEC, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'aborted' })
    await (await engine.create(SPEC)).destroy()
    expect(looksAt(proxy)).toBe(1)
    await engine.close()
  })

  test('are updated once after a failure of the daemon, however many creations failed', async () => {
    await using proxy = await proxyDaemon()
    const engine = dockerEngine({ image, host: proxy.host })
    await (await engine.create(SPEC)).destroy()
    let fails = 3
    const late = Promise.withResolvers<void>()
    proxy.treat = (request) => {
      if (request !== 'POST /containers/create' || fails === 0) return undefined
      fails -= 1
      // The last of them fails only after others have probed again.
      const answer = (_chunk: Buffer, client: { destroy(): void }): void => client.destroy()
      return fails === 0 ? { answer, answerAfter: late.promise } : { answer }
    }
    const failing = [engine.create(SPEC), engine.create(SPEC)].map((one) => one.catch((error: unknown) => error))
    const slow = engine.create(SPEC).catch((error: unknown) => error)
    expect(await Promise.all(failing)).toMatchObject([{ code: 'docker_unreachable' }, { code: 'docker_unreachable' }])
    await (await engine.create(SPEC)).destroy()
    late.resolve()
    expect(await slow).toMatchObject({ code: 'docker_unreachable' })
    await (await engine.create(SPEC)).destroy()
    expect(looksAt(proxy)).toBe(2)
    await engine.close()
  })
})
