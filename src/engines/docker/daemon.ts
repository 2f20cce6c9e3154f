import type Docker from 'dockerode'
import { messageOf, SandglassError } from '../../errors/index.ts'
import { resolveAddress, type Target } from './address.ts'
import { explainError, timeoutError } from './explain.ts'
import type { DockerEngineOptions } from './options.ts'
import { makeQuietAgent } from './quiet-agent.ts'

export { statusOf } from './explain.ts'

/** A connection to a Docker daemon; nothing is sent before the first call. */
export interface Daemon {
  readonly docker: Docker
  /** Its address, for messages. */
  readonly address: string
  /** True if it may run on another machine, which does not have the files of this one. */
  readonly remote: boolean
  /** The time that it may take to answer, in milliseconds. */
  readonly timeoutMs: number
  /**
   * Waits for a call for at most `timeoutMs`. A function receives a signal that aborts its request if the wait ends
   * early; pass a promise if the daemon does the work in any case.
   * @throws SandglassError with a code that names the problem with the daemon, the image or the request.
   */
  call<T>(
    what: string,
    work: Promise<T> | ((over: AbortSignal) => Promise<T>),
    signal?: AbortSignal,
    timeoutMs?: number,
  ): Promise<T>
}

/**
 * Loads the client and resolves the address.
 * @throws SandglassError `docker_client_missing` when the package dockerode is not installed, `invalid_request` for an
 * invalid address, `docker_tls` for certificates that cannot be read.
 */
export async function connect(options: DockerEngineOptions): Promise<Daemon> {
  const address = resolveAddress(options)
  const docker = createClient(await loadClient(), address.target)
  const apiTimeoutMs = options.apiTimeoutMs ?? 10_000
  return {
    docker,
    address: address.name,
    remote: address.remote,
    timeoutMs: apiTimeoutMs,
    async call(what, work, signal, timeoutMs = apiTimeoutMs) {
      const over = new AbortController()
      const { promise: interrupted, reject } = Promise.withResolvers<never>()
      const timer = setTimeout(() => reject(timeoutError(address.name, what, timeoutMs)), timeoutMs)
      const onAbort = (): void => reject(new SandglassError('aborted', `aborted while waiting for Docker to ${what}`))
      signal?.addEventListener('abort', onAbort)
      if (signal?.aborted === true) onAbort()
      try {
        return await Promise.race([typeof work === 'function' ? work(over.signal) : work, interrupted])
      } catch (error) {
        over.abort()
        throw error instanceof SandglassError ? error : explainError(error, what, address.name)
      } finally {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
      }
    },
  }
}

async function loadClient(): Promise<typeof Docker> {
  try {
    return (await import('dockerode')).default
  } catch (error) {
    throw new SandglassError(
      'docker_client_missing',
      'the engine docker needs the package dockerode: npm install dockerode',
      { cause: error },
    )
  }
}

/** Sends a request through the client, for requests where it offers no signal or reads the whole response first. */
export function dial<T>(daemon: Daemon, request: DialledRequest): Promise<T> {
  const { modem } = daemon.docker as unknown as { modem: Dialling<T> }
  return new Promise((resolve, reject) => {
    modem.dial(request, (error, answer) => {
      if (error === null) resolve(answer)
      else reject(error)
    })
  })
}

interface DialledRequest {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly options?: Readonly<Record<string, unknown>>
  readonly isStream?: boolean
  /** The meaning of each status; true for success. */
  readonly statusCodes: Readonly<Record<number, string | true>>
  readonly abortSignal?: AbortSignal
}

interface Dialling<T> {
  dial(request: DialledRequest, done: (error: Error | null, answer: T) => void): void
}

/** Creates the client. Every option is set, because the client fills missing ones from the environment. */
function createClient(Client: typeof Docker, target: Target): Docker {
  const nothing = {
    socketPath: undefined,
    host: undefined,
    port: undefined,
    ca: undefined,
    cert: undefined,
    key: undefined,
  }
  const given = { ...nothing, ...target, timeout: undefined, agent: makeQuietAgent(target.protocol) }
  try {
    return new Client(given)
  } catch (error) {
    throw new SandglassError(
      'invalid_request',
      `DOCKER_HOST, DOCKER_CERT_PATH: the environment cannot be used: ${messageOf(error)}; correct or unset them`,
      { cause: error },
    )
  }
}
