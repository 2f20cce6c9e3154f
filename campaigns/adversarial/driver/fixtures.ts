import { createHash, randomBytes } from 'node:crypto'
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { closeSync, chmodSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { openDirectory } from '../../../test/support/state-directory.ts'
import type { EngineUnderTest } from './engine.ts'

/** Targets on the host that the cases attack. They record every attack that reached them. */
export interface Fixtures extends AsyncDisposable {
  /** Values of the placeholders `@@NAME@@` in scripts. */
  readonly values: ReadonlyMap<string, string>
  /** A directory for the option `packages`. It contains a file that only root may read. */
  readonly packages: string
  /** An open descriptor of this process. A sandbox that inherits it is recognised by the name of the file. */
  readonly markedFd: number
  /** Describes the attacks that reached a target. */
  breaches(): string[]
}

/** Makes real listeners, canaries and secrets. */
export async function makeFixtures(engine: EngineUnderTest): Promise<Fixtures> {
  const directory = openDirectory('fixtures')
  const canary = join(directory, 'canary.txt')
  writeFileSync(canary, `canary ${randomBytes(8).toString('hex')}`)
  const canaryHash = hashOf(canary)
  const packages = join(directory, 'packages')
  mkdirSync(packages)
  chmodSync(packages, 0o755)
  writeFileSync(join(packages, 'root-only.txt'), 'rootsecret', { mode: 0o600 })
  const fdMarker = `fd-marker-${randomBytes(4).toString('hex')}`
  const markedFd = openSync(join(directory, fdMarker), 'w+')

  const contacts = new Map<string, number>()
  const contacted = (what: string): void => void contacts.set(what, (contacts.get(what) ?? 0) + 1)
  const tcp = await startListener({ host: '::', port: 0 }, () => contacted('the TCP listener'))
  const udp = await startUdpEcho(() => contacted('the UDP echo'))
  const socketName = `host-socket-${randomBytes(4).toString('hex')}`
  const unix = await startListener({ path: join('/tmp', socketName) }, () => contacted('the Unix socket'))

  const [envHalf1, envHalf2] = [`env-canary-${randomBytes(6).toString('hex')}`, randomBytes(9).toString('hex')]
  const [otherHalf1, otherHalf2] = [`other-tool-${randomBytes(6).toString('hex')}`, randomBytes(9).toString('hex')]
  const values = new Map<string, string>([
    ['HOST_IP', hostIp()],
    ['HOST_LISTENER_PORT', String((tcp.address() as AddressInfo).port)],
    ['HOST_UDP_ECHO_PORT', String(udp.address().port)],
    ['HOST_SOCKET_NAME', socketName],
    ['PEER_PORT', '47113'],
    ['CANARY_FILE', canary],
    ['BOUND_ROOT_ONLY_FILE', `${engine.packagesInside}/root-only.txt`],
    ['HOST_WORKSPACE_ROOT', engine.hostPath],
    ['HOST_FD_MARKER', fdMarker],
    ['HOST_ENV_CANARY', envHalf1 + envHalf2],
    ['HOST_ENV_CANARY_HALF1', envHalf1],
    ['HOST_ENV_CANARY_HALF2', envHalf2],
    ['SECRET_OF_OTHER_TOOL', otherHalf1 + otherHalf2],
    ['SECRET_OF_OTHER_TOOL_HALF1', otherHalf1],
    ['SECRET_OF_OTHER_TOOL_HALF2', otherHalf2],
    ['SECRET_A', `secret-a-${randomBytes(9).toString('hex')}`],
    ['SECRET_OF_PREVIOUS_RUN', `previous-${randomBytes(9).toString('hex')}`],
    ['EXECUTION_ID', 'adversarial-run'],
  ])
  return {
    values,
    packages,
    markedFd,
    breaches: () => [
      ...[...contacts].map(([what, times]) => `${what} was contacted ${times} times`),
      ...(hashOf(canary) === canaryHash ? [] : ['the canary file was changed']),
    ],
    async [Symbol.asyncDispose]() {
      for (const server of [tcp, unix]) server.close()
      udp.close()
      await Promise.all([tcp, unix].map((server) => once(server, 'close')))
      closeSync(markedFd)
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Returns the value of a placeholder. @throws Error for an unknown placeholder. */
export function valueOf(fixtures: Fixtures, name: string): string {
  const value = fixtures.values.get(name)
  if (value === undefined) throw new Error(`no fixture has the placeholder @@${name}@@`)
  return value
}

/** Replaces the placeholders in a text. @throws Error for an unknown placeholder. */
export function fillIn(text: string, fixtures: Fixtures, extra: ReadonlyMap<string, string> = new Map()): string {
  return text.replaceAll(/@@([A-Z0-9_]+)@@/g, (_, name: string) => extra.get(name) ?? valueOf(fixtures, name))
}

function hashOf(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

function hostIp(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address ?? '127.0.0.1'
}

async function startListener(
  where: { host: string; port: number } | { path: string },
  onContact: () => void,
): Promise<Server> {
  const server = createServer((socket) => {
    onContact()
    socket.destroy()
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(where, resolve)
  })
  server.unref()
  return server
}

async function startUdpEcho(onContact: () => void): Promise<UdpSocket> {
  const socket = createSocket('udp4')
  socket.on('message', (message, from) => {
    onContact()
    socket.send(message, from.port, from.address)
  })
  await new Promise<void>((resolve) => {
    socket.bind(0, '0.0.0.0', resolve)
  })
  socket.unref()
  return socket
}
