import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type * as Client from '@kubernetes/client-node'
import type {
  CoordinationV1Api,
  CoreV1Api,
  KubeConfig,
  NetworkingV1Api,
  V1MicroTime,
  VersionApi,
} from '@kubernetes/client-node'
import type { WebSocket } from 'ws'
import { messageOf, SandglassError } from '../../errors/index.ts'
import { unlessAborted } from '../../sandbox/index.ts'
import { askAgain } from './ask-again.ts'
import { explainError, statusOf, timeoutError } from './explain.ts'
import type { KubernetesEngineOptions } from './options.ts'
import { RequestRate } from './request-rate.ts'
import { ServerClock } from './server-clock.ts'

/** The groups of the API beside that of pods. */
export interface OtherApis {
  readonly networking: NetworkingV1Api
  readonly coordination: CoordinationV1Api
  readonly version: VersionApi
  /** Makes the time of a lease. */
  readonly microTime: (ms: number) => V1MicroTime
}

/** A connection to an API server; nothing is sent before the first call. */
export interface Cluster {
  /** The address of the API server, for messages. */
  readonly server: string
  readonly context: string
  readonly namespace: string
  /** The time that the API server may take to answer, in milliseconds. */
  readonly timeoutMs: number
  readonly clock: ServerClock
  /**
   * Waits for a request for at most `timeoutMs`, after its turn among all requests of this connection. A server that is busy or
   * starting (429, 5xx) is asked again.
   * @throws SandglassError with a code that names the problem.
   */
  call<T>(what: string, request: (api: CoreV1Api, other: OtherApis) => Promise<T>, signal?: AbortSignal): Promise<T>
  /** Starts a program in a container; a refusal is tried again as in `call`. @throws as `call` */
  exec(pod: string, container: string, command: readonly string[], signal?: AbortSignal): Promise<WebSocket>
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount/token'
/** The last version closes standard input alone; servers before 1.30 have the other. */
const EXEC_PROTOCOLS = ['v5.channel.k8s.io', 'v4.channel.k8s.io']
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024

/**
 * Loads the client and the configuration.
 * @throws SandglassError `kubernetes_client_missing`, `kubernetes_config`.
 */
export async function connect(options: KubernetesEngineOptions): Promise<Cluster> {
  const { client, Socket } = await loadClient()
  let config = loadConfig(client, options)
  const { server } = currentCluster(config)
  const context = config.getCurrentContext()
  const clock = new ServerClock()
  const configuration = client.createConfiguration({
    baseServer: new client.ServerConfiguration(server, {}),
    authMethods: {
      default: {
        getName: () => 'kubeconfig',
        applySecurityAuthentication: (to) => config.applySecurityAuthentication(to),
      },
    },
    promiseMiddleware: [
      {
        pre: (request) => Promise.resolve(request),
        post(response) {
          clock.note(response.headers['date'])
          return Promise.resolve(response)
        },
      },
    ],
  })
  const api = new client.CoreV1Api(configuration)
  const other = {
    networking: new client.NetworkingV1Api(configuration),
    coordination: new client.CoordinationV1Api(configuration),
    version: new client.VersionApi(configuration),
    microTime: (ms: number) => new client.V1MicroTime(ms),
  }
  const timeoutMs = options.apiTimeoutMs ?? 10_000
  const namespace = options.namespace ?? (config.getContextObject(context)?.namespace || 'default')
  const rate = new RequestRate()
  const turn = (): Promise<void> => rate.turn()
  /** Repeats a request whose credentials the server does not know, with those that the kubeconfig has now. */
  const renewing = async <T>(request: () => Promise<T>): Promise<T> => {
    try {
      return await request()
    } catch (error) {
      if (statusOf(error) !== 401) throw error
      const renewed = reloadConfig(client, { ...options, context }, server)
      if (renewed === undefined) throw error
      config = renewed
      await turn()
      return request()
    }
  }
  const within = async <T>(
    what: string,
    request: () => Promise<T>,
    signal: AbortSignal | undefined,
    onLate?: (late: T) => void,
  ): Promise<T> => {
    await unlessAborted(turn(), signal, `waiting to ${what}`)
    const over = new AbortController()
    const { promise: interrupted, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject(timeoutError(server, what, timeoutMs)), timeoutMs)
    const onAbort = (): void => reject(new SandglassError('aborted', `aborted while waiting for Kubernetes to ${what}`))
    signal?.addEventListener('abort', onAbort)
    if (signal?.aborted === true) onAbort()
    const asked = askAgain(() => renewing(request), { withinMs: timeoutMs, over: over.signal, turn })
    try {
      return await Promise.race([asked, interrupted])
    } catch (error) {
      if (onLate !== undefined) asked.then(onLate, () => undefined)
      throw error instanceof SandglassError ? error : explainError(error, what, { server, context })
    } finally {
      over.abort()
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
  }
  return {
    server,
    context,
    namespace,
    timeoutMs,
    clock,
    call: (what, request, signal) => within(what, () => request(api, other), signal),
    exec(pod, container, command, signal) {
      const query = new URLSearchParams([
        ['container', container],
        ...['stdin', 'stdout', 'stderr'].map((stream): [string, string] => [stream, 'true']),
        ...command.map((word): [string, string] => ['command', word]),
      ])
      const path = `/api/v1/namespaces/${namespace}/pods/${pod}/exec?${query.toString()}`
      const open = (): Promise<WebSocket> =>
        openSocket(Socket, config, `${server.replace(/^http/, 'ws')}${path}`, timeoutMs)
      return within('start a program in a pod', open, signal, (late) => late.terminate())
    },
  }
}

async function loadClient(): Promise<{
  readonly client: typeof Client
  readonly Socket: typeof WebSocket
}> {
  try {
    const [client, { WebSocket: Socket }] = await Promise.all([import('@kubernetes/client-node'), import('ws')])
    return { client, Socket }
  } catch (error) {
    throw new SandglassError(
      'kubernetes_client_missing',
      'the engine kubernetes needs the packages @kubernetes/client-node and ws: npm install @kubernetes/client-node ws',
      { cause: error },
    )
  }
}

/** True if a configuration is given, or the environment or the service account of a pod provides one. */
export function hasConfig({ kubeconfig }: KubernetesEngineOptions = {}): boolean {
  return kubeconfig !== undefined || isSet('KUBECONFIG') || existsSync(homeConfig()) || existsSync(SERVICE_ACCOUNT)
}

/** Reads the configuration again; undefined if it cannot be read, or its context is now one of another server. */
function reloadConfig(client: typeof Client, options: KubernetesEngineOptions, server: string): KubeConfig | undefined {
  try {
    const config = loadConfig(client, options)
    return currentCluster(config).server === server ? config : undefined
  } catch {
    return undefined // the refusal says more
  }
}

function loadConfig(client: typeof Client, options: KubernetesEngineOptions): KubeConfig {
  if (!hasConfig(options)) {
    throw configError(
      `no kubeconfig: KUBECONFIG is not set, ${homeConfig()} does not exist, and this process has no service account; ` +
        'set the option kubernetes.kubeconfig (--kubeconfig)',
    )
  }
  const config = new client.KubeConfig()
  try {
    if (options.kubeconfig !== undefined) config.loadFromFile(options.kubeconfig)
    else if (isSet('KUBECONFIG') || existsSync(homeConfig())) config.loadFromDefault()
    else config.loadFromCluster()
  } catch (error) {
    throw configError(`the kubeconfig cannot be read: ${placeOf(error) ?? messageOf(error).split('\n')[0]}`)
  }
  if (options.context === undefined) return config
  if (config.getContextObject(options.context) === null) {
    const names = config.getContexts().map(({ name }) => name)
    throw configError(`the kubeconfig has no context ${options.context}; it has ${names.join(', ') || 'none'}`)
  }
  config.setCurrentContext(options.context)
  return config
}

/** The place of a mistake in YAML. Everything else that its parser says may quote a token, and goes no further. */
function placeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== 'YAMLException') return undefined
  const { line, column } = (error as { mark?: { line?: number; column?: number } }).mark ?? {}
  return line === undefined || column === undefined
    ? 'it is no YAML'
    : `it is no YAML at line ${line + 1}, column ${column + 1}`
}

function currentCluster(config: KubeConfig): { readonly server: string } {
  const cluster = config.getCurrentCluster()
  if (cluster === null) {
    throw configError(`the context ${JSON.stringify(config.getCurrentContext())} of the kubeconfig names no cluster`)
  }
  return { server: cluster.server.replace(/\/+$/, '') }
}

function configError(message: string): SandglassError {
  return new SandglassError('kubernetes_config', message)
}

function isSet(name: string): boolean {
  return (process.env[name] ?? '') !== ''
}

function homeConfig(): string {
  return join(homedir(), '.kube', 'config')
}

/** Opens a WebSocket with the credentials of the configuration, which may run a program or refresh a token. */
async function openSocket(
  Socket: typeof WebSocket,
  config: KubeConfig,
  url: string,
  handshakeTimeout: number,
): Promise<WebSocket> {
  const tls = {}
  await config.applyToHTTPSOptions(tls)
  const socket = new Socket(url, EXEC_PROTOCOLS, {
    ...tls,
    perMessageDeflate: false,
    followRedirects: false,
    // A message is emitted while the chunk that completes it is read; ReceivedMemory relies on that.
    allowSynchronousEvents: true,
    maxPayload: MAX_MESSAGE_BYTES,
    handshakeTimeout,
  })
  return new Promise((resolve, reject) => {
    socket.on('error', reject) // stays: an error without a listener ends the host's process
    socket.once('unexpected-response', (_request, response) => {
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => {
        if (pieces.length < 16) pieces.push(piece)
      })
      response.once('close', () => {
        reject(
          Object.assign(new Error(`the server answered ${String(response.statusCode)}`), {
            statusCode: response.statusCode,
            body: Buffer.concat(pieces).toString(),
            headers: response.headers,
          }),
        )
        socket.terminate()
      })
    })
    socket.once('open', () => {
      socket.pause() // until the channel listens
      resolve(socket)
    })
  })
}
