import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { messageOf, SandglassError } from '../../errors/index.ts'
import type { DockerEngineOptions, DockerTls } from './options.ts'

/** The location of a daemon, and the way to connect to it. */
export interface Address {
  /** For messages. */
  readonly name: string
  /** True if it may run on another machine, which does not have the files of this one. */
  readonly remote: boolean
  /** The options of the client. */
  readonly target: Target
}

/** The part of an address that a connection needs. */
export interface Target {
  /** The socket of a daemon on this machine. */
  readonly socketPath?: string
  readonly host?: string
  readonly port?: number
  readonly protocol: 'http' | 'https'
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
}

const SOCKET = '/var/run/docker.sock'
const PIPE = '//./pipe/docker_engine'

/**
 * Resolves the address that options and environment name, as Docker's own client does.
 * @throws SandglassError `invalid_request` for an invalid address, `docker_tls` for certificates that cannot be read.
 */
export function resolveAddress(
  { host, tls }: DockerEngineOptions,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Address {
  const given = host ?? readVariable(env, 'DOCKER_HOST')
  const wrong = (why: string): SandglassError => {
    const source = host === undefined ? 'DOCKER_HOST' : 'docker.host'
    return new SandglassError('invalid_request', `${source}: ${JSON.stringify(given)} ${why}`)
  }
  const socket = (path: string): Address => {
    if (tls !== undefined)
      throw new SandglassError(
        'invalid_request',
        `docker.tls: ${path} is a socket and does not use TLS; remove docker.tls`,
      )
    return { name: `unix://${path}`, remote: false, target: { socketPath: path, protocol: 'http' } }
  }
  if (given === undefined) return socket(defaultSocket())
  if (given.startsWith('unix://')) {
    const path = given.slice('unix://'.length)
    if (path !== '' && !path.startsWith('/')) throw wrong('has no absolute path; use unix:///path')
    return socket(path === '' ? defaultSocket() : path)
  }
  if (given.startsWith('npipe://')) return socket(given.slice('npipe://'.length) || PIPE)
  if (given.startsWith('ssh://')) {
    throw wrong(
      'is not supported: forward the socket (ssh -NL /tmp/docker.sock:/var/run/docker.sock HOST) and set that socket',
    )
  }
  const url = URL.parse(given.includes('://') ? given : `tcp://${given}`)
  if (url === null || url.hostname === '' || !['tcp:', 'http:', 'https:'].includes(url.protocol)) {
    throw wrong('must be unix:///path or tcp://host:port')
  }
  if (!['', '/'].includes(url.pathname) || url.search !== '' || url.username !== '') {
    throw wrong('must be tcp://host:port, without a path, a query or a user')
  }
  const verifies = readVariable(env, 'DOCKER_TLS_VERIFY') !== undefined
  const secure = tls !== undefined || url.protocol === 'https:' || verifies || url.port === '2376'
  return {
    name: given,
    remote: true,
    target: {
      host: url.hostname,
      port: Number(url.port === '' ? (secure ? 2376 : 2375) : url.port),
      protocol: secure ? 'https' : 'http',
      ...(tls !== undefined ? decodeCertificates(tls) : secure ? readCertificates(env, verifies) : {}),
    },
  }
}

/** Docker Desktop has its socket in the home directory. */
function defaultSocket(): string {
  if (process.platform === 'win32') return PIPE
  const desktop = join(homedir(), '.docker/run/docker.sock')
  return existsSync(desktop) ? desktop : SOCKET
}

/**
 * Reads the certificates that the environment names. Without DOCKER_CERT_PATH and DOCKER_TLS_VERIFY, those of the machine
 * apply.
 */
function readCertificates(
  env: Readonly<Record<string, string | undefined>>,
  verifies: boolean,
): { ca?: string; cert?: string; key?: string } {
  const directory = readVariable(env, 'DOCKER_CERT_PATH') ?? (verifies ? join(homedir(), '.docker') : undefined)
  if (directory === undefined) return {}
  try {
    const [ca, cert, key] = ['ca.pem', 'cert.pem', 'key.pem'].map((name) => readFileSync(join(directory, name), 'utf8'))
    return { ca: ca ?? '', cert: cert ?? '', key: key ?? '' }
  } catch (error) {
    throw new SandglassError(
      'docker_tls',
      `the certificates for Docker cannot be read: ${messageOf(error)}; set DOCKER_CERT_PATH to the directory of ca.pem, ` +
        'cert.pem and key.pem, or use the option docker.tls',
      { cause: error },
    )
  }
}

function decodeCertificates({ ca, cert, key }: DockerTls): { ca: string; cert: string; key: string } {
  const toText = (pem: string | Uint8Array): string =>
    typeof pem === 'string' ? pem : Buffer.from(pem).toString('utf8')
  return { ca: toText(ca), cert: toText(cert), key: toText(key) }
}

/** Reads an environment variable; an empty one counts as missing. */
function readVariable(env: Readonly<Record<string, string | undefined>>, name: string): string | undefined {
  const value = env[name]
  return value === '' ? undefined : value
}
