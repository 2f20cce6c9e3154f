import { AsyncLocalStorage } from 'node:async_hooks'
import { SandglassError } from '../errors/index.ts'
import type { StoreContent } from '../stores/index.ts'
import { checkSession } from './names.ts'
import type { ArtifactService, ArtifactSession } from './service.ts'

const services = new AsyncLocalStorage<ArtifactService>()
const sessions = new AsyncLocalStorage<ArtifactSession>()

/** Runs a function. Everything that it calls, at any depth and also later, gets this service from {@link artifactServiceFromContext}. */
export function withArtifactService<T>(service: ArtifactService, act: () => T): T {
  if (typeof service?.save !== 'function')
    throw new TypeError('withArtifactService: service must be an ArtifactService')
  return services.run(service, act)
}

/** The service of {@link withArtifactService}; undefined outside of it. */
export function artifactServiceFromContext(): ArtifactService | undefined {
  return services.getStore()
}

/**
 * Runs a function. The artifacts that it saves and loads without naming a session belong to this one.
 * @throws SandglassError `invalid_request` for an id that is not a string.
 */
export function withArtifactSession<T>(session: ArtifactSession, act: () => T): T {
  return sessions.run(checkSession(session), act)
}

/** The session of {@link withArtifactSession}; outside of it, the one without any id. */
export function currentArtifactSession(): ArtifactSession {
  return sessions.getStore() ?? {}
}

/**
 * Loads an artifact of the context: the latest version, or the given one.
 * @throws SandglassError `invalid_request` outside of {@link withArtifactService}; else as {@link ArtifactService.load} does.
 */
export async function loadArtifactHelper(
  name: string,
  version?: number | null,
): Promise<{ readonly data: Uint8Array; readonly mimeType: string; readonly version: number }> {
  const session = currentArtifactSession()
  const {
    data,
    mimeType,
    version: actual,
  } = await requireService().load(name, { session, version: version ?? undefined })
  return { data, mimeType, version: actual }
}

/**
 * Saves an artifact of the context, and returns its version.
 * @param mimeType default: by the name's suffix, else application/octet-stream.
 * @throws SandglassError `invalid_request` outside of {@link withArtifactService}; else as {@link ArtifactService.save} does.
 */
export async function saveArtifactHelper(name: string, content: StoreContent, mimeType?: string): Promise<number> {
  const session = currentArtifactSession()
  return (await requireService().save(name, content, { session, mimeType })).version
}

function requireService(): ArtifactService {
  const service = services.getStore()
  if (service !== undefined) return service
  throw new SandglassError(
    'invalid_request',
    'there is no artifact service here: call this within withArtifactService(service, () => …)',
  )
}
