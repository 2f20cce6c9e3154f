import { afterEach, describe, expect, test } from 'vitest'
import { dockerEngine } from '../../../../src/engines/docker/index.ts'
import { SandglassError } from '../../../../src/errors/index.ts'
import { resolveLimits, sandboxLimits } from '../../../../src/sandbox/index.ts'
import { requireDockerEngine } from '../../../support/docker-engine.ts'
import { eventually } from '../../../support/eventually.ts'
import { proxyDaemon } from './daemon-proxy.ts'
import { findLeftContainers, ownContainers } from './own-containers.ts'

const { skip, image } = await requireDockerEngine()
const SPEC = { limits: sandboxLimits(resolveLimits()) }
/** The requests of a creation to the daemon, in this order. */
const STEPS = [
  'GET /info',
  `GET /images/${image}/json`,
  'POST /containers/create',
  'POST /containers/ID/attach',
  'POST /containers/ID/wait',
  'POST /containers/ID/start',
]

/** The code that a creation is rejected with. */
function codeOf(creation: Promise<unknown>): Promise<unknown> {
  return creation.then(
    () => 'made',
    (error: unknown) => (error instanceof SandglassError ? error.code : error),
  )
}

describe.skipIf(skip)('a creation that is aborted', () => {
  afterEach(async () => expect(await findLeftContainers()).toBeUndefined())

  test.each(STEPS)('before the daemon receives %s ends at once and leaves no container', async (step) => {
    await using proxy = await proxyDaemon()
    const held = Promise.withResolvers<void>()
    const stop = new AbortController()
    proxy.treat = (request) => {
      if (request !== step) return undefined
      stop.abort()
      // It still reaches the daemon, after the caller has stopped waiting.
      return { after: held.promise }
    }
    const engine = dockerEngine({ image, host: proxy.host })
    const creation = engine.create(SPEC, { signal: stop.signal })
    const outcome = codeOf(creation)
    await eventually(() => (stop.signal.aborted ? undefined : 'not there yet'), 20_000)
    held.resolve()
    expect(await outcome).toBe('aborted')
    expect(ownContainers()).toEqual([])
    await engine.close()
    expect(await eventually(() => (proxy.open === 0 ? undefined : `${proxy.open} connections`), 5000)).toBeUndefined()
  })

  test.each(STEPS.slice(2))('while the answer to %s is on its way leaves no container', async (step) => {
    await using proxy = await proxyDaemon()
    const held = Promise.withResolvers<void>()
    const stop = new AbortController()
    let seen = false
    proxy.treat = (request) => {
      if (request !== step || seen) return undefined
      seen = true
      return { answerAfter: held.promise }
    }
    const engine = dockerEngine({ image, host: proxy.host })
    const creation = engine.create(SPEC, { signal: stop.signal })
    const outcome = codeOf(creation)
    // The daemon has served the request: the container exists, and for the last step it runs.
    const wanted = step.endsWith('/start') ? 'running' : 'created'
    const made = await eventually(
      () => (ownContainers().length === 1 && seen ? undefined : `no container ${wanted}`),
      20_000,
    )
    expect(made).toBeUndefined()
    stop.abort()
    held.resolve()
    expect(await outcome).toBe('aborted')
    expect(await findLeftContainers()).toBeUndefined()
    await engine.close()
  })

  test('while the harness starts leaves no container', async () => {
    const engine = dockerEngine({ image })
    const stop = new AbortController()
    const creation = engine.create(SPEC, { signal: stop.signal })
    const outcome = codeOf(creation)
    const running = await eventually(() => (ownContainers().length === 1 ? undefined : 'no container'), 20_000)
    expect(running).toBeUndefined()
    stop.abort()
    expect(await outcome).toBe('aborted')
    expect(ownContainers()).toEqual([])
    await engine.close()
  })

  test('before it began sends no request', async () => {
    await using proxy = await proxyDaemon()
    const engine = dockerEngine({ image, host: proxy.host })
    await expect(engine.create(SPEC, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'aborted' })
    expect(proxy.requests.filter((request) => request.startsWith('POST'))).toEqual([])
    await engine.close()
  })
})
