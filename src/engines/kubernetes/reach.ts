import { isIP } from 'node:net'
import type { WebSocket } from 'ws'
import { SandglassError } from '../../errors/index.ts'
import type { Cluster } from './cluster.ts'
import { attach } from './relay-channel.ts'

/** An address that a pod tries, and what is there, for messages. */
export interface Target {
  readonly what: string
  readonly protocol: 'tcp' | 'udp' | 'icmp'
  readonly address: string
  readonly port: number
}

/**
 * The end of an attempt. `refused`: something answered, but not at this port. `silent`: nothing did. Otherwise the name of an error,
 * such as `ENETUNREACH`.
 */
export type Outcome = 'connected' | 'refused' | 'silent' | (string & {})

/** A target with its outcome. */
export interface Attempt extends Target {
  readonly outcome: Outcome
}

/** The targets that a pod reaches, and what it knows of its surroundings. */
export interface Reach {
  readonly attempts: readonly Attempt[]
  /** The address of the API server inside the cluster. */
  readonly service: readonly [address: string, port: number] | null
  readonly nameServers: readonly string[]
  /** The interfaces that are up, beside the loopback. */
  readonly interfaces: readonly string[]
  /** All IPv6 addresses of the pod, also those that Kubernetes does not know: of the link, and announced by a router. */
  readonly addresses: readonly string[]
}

/** A container of a running pod, and the start of its command that runs harness/reach.py. */
export interface ReachingPod {
  readonly name: string
  readonly container: string
  readonly command: readonly string[]
}

const KUBELET_PORT = 10_250
const MAX_ANSWER_CHARS = 65_536

/** True for an address that means the pod itself wherever it is used. */
export function isOwnAddress(address: string): boolean {
  return isIP(address) === 0 || /^(127\.|0\.0\.0\.0$|::1?$|::ffff:127\.)/.test(address)
}

/** The node at these addresses. A kubelet listens there, and whatever else runs on it. */
export function nodeTargets(addresses: readonly string[]): readonly Target[] {
  return addresses
    .filter((address) => !isOwnAddress(address))
    .map((address) => ({ what: 'its node', protocol: 'tcp', address, port: KUBELET_PORT }))
}

/**
 * Tries targets from within a pod, and its gateways.
 * @throws SandglassError as `Cluster.exec`; `sandbox_setup_failed` when the pod gives no answer; `aborted`.
 */
export async function reachFrom(
  cluster: Cluster,
  { name, container, command }: ReachingPod,
  targets: readonly Target[],
  seconds: number,
  signal?: AbortSignal,
): Promise<Reach> {
  const given = JSON.stringify(targets.map(({ protocol, address, port }) => [protocol, address, port]))
  const socket = await cluster.exec(name, container, [...command, 'try', given, String(seconds)], signal)
  const text = await readOutput(socket, seconds * 1000 + cluster.timeoutMs, signal)
  if (signal?.aborted === true) throw new SandglassError('aborted', 'aborted while a pod tried what it reaches')
  const answer = parse(text)
  if (answer?.outcomes.length !== targets.length) {
    throw new SandglassError(
      'sandbox_setup_failed',
      `the pod ${name} did not tell what it reaches: ${text.slice(0, 500)}`,
    )
  }
  const { outcomes, gateways, service, name_servers: nameServers, interfaces, addresses } = answer
  const attempts = [
    ...targets.map((target, place) => ({ ...target, outcome: outcomes[place] ?? 'silent' })),
    ...gateways.map(([address, outcome]) => ({
      what: 'its gateway',
      protocol: 'tcp' as const,
      address,
      port: KUBELET_PORT,
      outcome,
    })),
  ]
  return { attempts, service, nameServers, interfaces, addresses }
}

async function readOutput(socket: WebSocket, withinMs: number, signal: AbortSignal | undefined): Promise<string> {
  const attached = attach(socket)
  const { channel } = attached
  const onAbort = (): void => channel.close()
  const timer = setTimeout(onAbort, withinMs)
  signal?.addEventListener('abort', onAbort)
  if (signal?.aborted === true) onAbort()
  try {
    let text = ''
    const decoder = new TextDecoder()
    for (let piece = await channel.receive(); piece !== null; piece = await channel.receive()) {
      text += decoder.decode(piece, { stream: true })
      if (text.includes('\n') || text.length > MAX_ANSWER_CHARS) break
    }
    return text === '' ? attached.lastOutput() : text
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
    channel.close()
  }
}

interface Answer {
  readonly outcomes: readonly string[]
  readonly gateways: readonly (readonly [string, string])[]
  readonly service: readonly [string, number] | null
  readonly name_servers: readonly string[]
  readonly interfaces: readonly string[]
  readonly addresses: readonly string[]
}

/** The answer of harness/reach.py; undefined if the text is none. No script has run in its pod. */
function parse(text: string): Answer | undefined {
  try {
    const answer = JSON.parse(text) as Answer
    return Array.isArray(answer.outcomes) && Array.isArray(answer.gateways) ? answer : undefined
  } catch {
    return undefined
  }
}
