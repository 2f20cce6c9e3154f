import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { V1Pod } from '@kubernetes/client-node'
import { messageOf, SandglassError } from '../../errors/index.ts'
import type { SandboxReport } from '../../sandbox/index.ts'
import type { Cluster } from './cluster.ts'
import {
  addressesOf,
  type ControlPlan,
  type ControlPod,
  distinct,
  LISTEN_PORT,
  nodeAddressesOf,
  startControlPod,
} from './control-pod.ts'
import {
  contradicts,
  explain,
  familiesOf,
  familyOf,
  judgeNetwork,
  LINK,
  LISTENER,
  type NetworkEvidence,
  type NetworkVerdict,
  type PolicyState,
  readPolicies,
} from './network-verdict.ts'
import { pause } from './pod.ts'
import { RELAY, reachCommand } from './pod-spec.ts'
import {
  type Attempt,
  isOwnAddress,
  nodeTargets,
  type Reach,
  reachFrom,
  type ReachingPod,
  type Target,
} from './reach.ts'

/** The time of an attempt: the kernel sends the first packet of a connection again after 1 s. */
const ATTEMPT_SEC = 2.5
/** The same while a sandbox starts, where somebody waits. */
const CHECK_SEC = 1.5
/** The time that `recheckNetwork` adds to the start of a sandbox, at most, in seconds: an IPv6 address may be new (harness/reach.py). */
export const RECHECK_SEC: number = CHECK_SEC + 3
/** The time in which control pods must reach each other: one may still be starting to listen. */
const CONTROL_MS = 6000
const PAUSE_MS = 200
/** The services of clouds that hand out credentials to whoever asks from a machine. */
const METADATA: Target = { what: 'the metadata of a cloud', protocol: 'tcp', address: '169.254.169.254', port: 80 }

/** The facts about the network of sandboxes. */
export interface NetworkFinding extends NetworkVerdict {
  /** The targets that other pods reach, with the outcome for the sandbox. Each later sandbox is checked against it. Empty without a proof. */
  readonly watched: readonly Attempt[]
  /** The families of addresses whose isolation was shown. */
  readonly families: readonly string[]
  readonly facts: SandboxReport['probes']
}

interface NetworkProbe {
  readonly cluster: Cluster
  /** The name of the pod of a running sandbox with the production spec. */
  readonly sandbox: string
  readonly plan: ControlPlan
  /** Called with the name of a pod that could not be removed now. */
  readonly abandon: (name: string) => void
}

/**
 * Compares what a sandbox reaches with what two pods without its label reach. What cannot be shown is open, and the finding says
 * why.
 * @throws SandglassError `aborted`.
 */
export async function probeNetwork(probe: NetworkProbe): Promise<NetworkFinding> {
  try {
    return await compare(probe)
  } catch (error) {
    if (!(error instanceof SandglassError) || error.code === 'aborted') throw error
    const message = `what a sandbox reaches could not be tried: ${messageOf(error)}`
    const remedy = 'let the account create two more pods for the probe, of 0.05 CPU and 64 MiB each'
    return { access: 'open', why: { message, remedy }, watched: [], families: [], facts: {} }
  }
}

async function compare({ cluster, sandbox, plan, abandon }: NetworkProbe): Promise<NetworkFinding> {
  const started = await Promise.allSettled([
    startControlPod(cluster, plan, abandon),
    startControlPod(cluster, plan, abandon),
  ])
  try {
    const [listener, control] = started.map((one) => {
      if (one.status === 'rejected') throw one.reason
      return one.value
    }) as [ControlPod, ControlPod]
    return await observe(cluster, { sandbox: ownPod(sandbox, plan.python), listener, control, signal: plan.signal })
  } finally {
    const made = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    await Promise.all(made.map((one) => one[Symbol.asyncDispose]()))
  }
}

interface Observed {
  readonly sandbox: ReachingPod
  readonly listener: ControlPod
  readonly control: ControlPod
  readonly signal: AbortSignal | undefined
}

async function observe(cluster: Cluster, { sandbox, listener, control, signal }: Observed): Promise<NetworkFinding> {
  const { namespace } = cluster
  const look = (pod: ReachingPod): Promise<Reach> => reachFrom(cluster, pod, [], 0, signal)
  const [pod, ownReach, ofListener] = await Promise.all([
    cluster.call('read a pod', (api) => api.readNamespacedPod({ name: sandbox.name, namespace }), signal),
    look(sandbox),
    look(listener),
  ])
  const listening = distinct([...listener.addresses, ...ofListener.addresses])
  const first = await untilListening(cluster, control, listening, signal)
  const targets = [
    ...listenTargets(LISTENER, listening),
    ...surroundings(first),
    ...(await serverTargets(cluster)),
    ...nodeTargets(nodeAddressesOf(pod)),
    METADATA,
    LINK,
  ]
  const inward = listenTargets('a sandbox', distinct([...addressesOf(pod), ...ownReach.addresses]))
  const [outOfControl, own, policies] = await Promise.all([
    reachFrom(cluster, control, [...targets, ...inward], ATTEMPT_SEC, signal),
    reachFrom(cluster, sandbox, targets, ATTEMPT_SEC, signal),
    policiesOf(cluster, pod, signal),
  ])
  const evidence = {
    policies,
    control: outOfControl.attempts.slice(0, targets.length),
    own: own.attempts,
    inward: outOfControl.attempts.slice(targets.length, targets.length + inward.length),
    interfaces: own.interfaces,
  }
  const verdict = judgeNetwork(evidence)
  if (verdict.access !== 'none') return { ...verdict, watched: [], families: [], facts: factsOf(evidence) }
  return { ...verdict, watched: watchedOf(evidence), families: familiesOf(evidence), facts: factsOf(evidence) }
}

/**
 * Tries once more what other pods reach, in a pod that is about to become a sandbox, and reads the policies again.
 * @throws SandglassError `sandbox_setup_failed` if something contradicts the finding; `aborted`.
 */
export async function recheckNetwork(
  { watched, families }: NetworkFinding,
  cluster: Cluster,
  pod: V1Pod,
  python: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const targets = [...watched, ...nodeTargets(nodeAddressesOf(pod))]
  const [{ attempts, interfaces, addresses }, policies] = await Promise.all([
    reachFrom(cluster, ownPod(pod.metadata?.name ?? '', python), targets, CHECK_SEC, signal),
    policiesOf(cluster, pod, signal),
  ])
  const at = `a pod on the node ${pod.spec?.nodeName ?? ''}`
  const refuse = (what: string): SandglassError =>
    new SandglassError(
      'sandbox_setup_failed',
      `${what}: the report that sandboxes reach nothing does not hold here; ` +
        'check the NetworkPolicies and the network plugin of this node',
    )
  if (policies.kind !== 'denies') throw refuse(explain(policies))
  const reached = attempts.find((one) => contradicts(one, watched))
  if (reached !== undefined) throw refuse(`${at} reaches ${reached.what} (${reached.address})`)
  if (interfaces.length !== 1) throw refuse(`${at} has the network interfaces ${interfaces.join(', ')}`)
  const other = [...addressesOf(pod), ...addresses].find((one) => !families.includes(familyOf(one)))
  if (other !== undefined) throw refuse(`${at} has the address ${other}, of a kind that was not tried`)
}

function ownPod(name: string, python: string): ReachingPod {
  return { name, container: RELAY, command: reachCommand(python) }
}

/** Waits until one control pod reaches the other, for a bounded time, and returns what it knows. */
async function untilListening(
  cluster: Cluster,
  control: ControlPod,
  addresses: readonly string[],
  signal: AbortSignal | undefined,
): Promise<Reach> {
  const deadline = performance.now() + CONTROL_MS
  for (;;) {
    const targets = listenTargets(LISTENER, addresses).filter(({ protocol }) => protocol === 'tcp')
    const reach = await reachFrom(cluster, control, targets, 1, signal)
    if (reach.attempts.some(({ what, outcome }) => what === LISTENER && outcome === 'connected')) return reach
    if (performance.now() > deadline) return reach
    await pause(PAUSE_MS)
  }
}

function listenTargets(what: string, addresses: readonly string[]): readonly Target[] {
  return addresses.flatMap((address) =>
    (['tcp', 'udp', 'icmp'] as const).map((protocol) => ({ what, protocol, address, port: LISTEN_PORT })),
  )
}

/** The targets that a pod without a policy is told of the cluster, and its gateways. */
function surroundings({ service, nameServers, attempts }: Reach): readonly Target[] {
  const tcp = (what: string, address: string, port: number): Target => ({ what, protocol: 'tcp', address, port })
  return [
    ...(service === null ? [] : [tcp('the API server', ...service)]),
    ...nameServers
      .filter((address) => !isOwnAddress(address))
      .flatMap((address): Target[] => [
        tcp('a name server', address, 53),
        { what: 'a name server', protocol: 'udp', address, port: 53 },
      ]),
    ...attempts.filter(({ what }) => what !== LISTENER).map(({ address, port }) => tcp('a gateway', address, port)),
  ]
}

/** The API server by the address that the host uses, which is often outside of the cluster. */
async function serverTargets({ server }: Cluster): Promise<readonly Target[]> {
  const { hostname, port, protocol } = new URL(server)
  const host = hostname.replace(/^\[|\]$/g, '')
  const found = isIP(host) === 0 ? await lookup(host, { all: true }).catch(() => []) : [{ address: host }]
  return found
    .filter(({ address }) => !isOwnAddress(address))
    .map(({ address }) => ({
      what: 'the API server from outside',
      protocol: 'tcp',
      address,
      port: port === '' ? (protocol === 'http:' ? 80 : 443) : Number(port),
    }))
}

async function policiesOf(cluster: Cluster, pod: V1Pod, signal: AbortSignal | undefined): Promise<PolicyState> {
  const { namespace } = cluster
  try {
    const { items } = await cluster.call(
      'list network policies',
      (_, { networking }) => networking.listNamespacedNetworkPolicy({ namespace }),
      signal,
    )
    return readPolicies(items, pod.metadata?.labels ?? {})
  } catch (error) {
    if (signal?.aborted === true) throw error
    return { kind: 'unreadable' }
  }
}

/** The targets that no later sandbox may reach, with what the first one met there. */
function watchedOf({ control, own }: Pick<NetworkEvidence, 'control' | 'own'>): readonly Attempt[] {
  return own.slice(0, control.length).filter((one, place) => {
    return one.what !== LISTENER && control[place]?.outcome === 'connected'
  })
}

function factsOf({
  control,
  own,
  inward,
}: Record<'control' | 'own' | 'inward', readonly Attempt[]>): SandboxReport['probes'] {
  const textOf = ({ what, protocol, address, outcome }: Attempt): string =>
    `${what} (${protocol} ${address}): ${outcome}`
  return {
    network_of_a_sandbox: own.map(textOf),
    network_of_a_pod_without_policy: control.map(textOf),
    network_into_a_sandbox: inward.map(textOf),
  }
}
