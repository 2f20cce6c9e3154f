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
  LISTEN_PORT,
  nodeAddressesOf,
  startControlPod,
} from './control-pod.ts'
import {
  isLasting,
  isReached,
  judgeNetwork,
  LISTENER,
  type NetworkVerdict,
  type PolicyState,
  readPolicies,
} from './network-verdict.ts'
import { ISOLATED, MANAGED } from './owner.ts'
import { pause } from './pod.ts'
import { RELAY, reachCommand } from './pod-spec.ts'
import { type Attempt, isOwnAddress, nodeTargets, type Reach, reachFrom, type Target } from './reach.ts'

/** The time of an attempt: the kernel sends the first packet of a connection again after 1 s. */
const ATTEMPT_SEC = 2.5
/** The same while a sandbox starts, where somebody waits. */
const CHECK_SEC = 1.5
/** The time in which control pods must reach each other: one may still be starting to listen. */
const CONTROL_MS = 6000
const PAUSE_MS = 200
/** The services of clouds that hand out credentials to whoever asks from a machine. */
const METADATA: Target = { what: 'the metadata of a cloud', protocol: 'tcp', address: '169.254.169.254', port: 80 }

/** The facts about the network of sandboxes. */
export interface NetworkFinding extends NetworkVerdict {
  /** The targets that other pods reach, so that each later sandbox can be held to the finding. Empty without a proof. */
  readonly watched: readonly Target[]
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
 * Compares what a sandbox reaches with what two pods without its label reach. Never throws: what cannot be shown is open, and the
 * finding says why.
 */
export async function probeNetwork(probe: NetworkProbe): Promise<NetworkFinding> {
  try {
    return await compare(probe)
  } catch (error) {
    if (!(error instanceof SandglassError)) throw error
    const message = `what a sandbox reaches could not be tried: ${messageOf(error)}`
    const remedy = 'let the account create two more pods for the probe, of 0.05 CPU and 64 MiB each'
    return { access: 'open', why: { message, remedy }, watched: [], facts: {} }
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
    return await observe(cluster, { sandbox, python: plan.python, listener, control })
  } finally {
    const made = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    await Promise.all(made.map((one) => one[Symbol.asyncDispose]()))
  }
}

interface Observed {
  readonly sandbox: string
  readonly python: string
  readonly listener: ControlPod
  readonly control: ControlPod
}

async function observe(cluster: Cluster, { sandbox, python, listener, control }: Observed): Promise<NetworkFinding> {
  const { namespace } = cluster
  const pod = await cluster.call('read a pod', (api) => api.readNamespacedPod({ name: sandbox, namespace }))
  const first = await untilListening(cluster, control, listener)
  const targets = [
    ...listenTargets(LISTENER, listener.addresses),
    ...surroundings(first),
    ...(await serverTargets(cluster)),
    ...nodeTargets(nodeAddressesOf(pod)),
    METADATA,
  ]
  const inward = listenTargets('a sandbox', addressesOf(pod))
  const [outOfControl, own, policies] = await Promise.all([
    reachFrom(cluster, control, [...targets, ...inward], ATTEMPT_SEC),
    reachFrom(cluster, ownPod(sandbox, python), targets, ATTEMPT_SEC),
    policiesOf(cluster),
  ])
  const evidence = {
    policies,
    control: outOfControl.attempts.slice(0, targets.length),
    own: own.attempts,
    inward: outOfControl.attempts.slice(targets.length, targets.length + inward.length),
  }
  const verdict = judgeNetwork(evidence)
  return { ...verdict, watched: verdict.access === 'none' ? watchedOf(evidence.control) : [], facts: factsOf(evidence) }
}

/**
 * Tries once more what other pods reach, in a pod that is about to become a sandbox.
 * @throws SandglassError `sandbox_setup_failed` if it contradicts the finding.
 */
export async function holdTo(
  { watched }: NetworkFinding,
  cluster: Cluster,
  pod: V1Pod,
  python: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const name = pod.metadata?.name ?? ''
  const targets = [...watched, ...nodeTargets(nodeAddressesOf(pod))]
  const { attempts } = await reachFrom(cluster, ownPod(name, python), targets, CHECK_SEC, signal)
  const reached = attempts.find((one) =>
    isReached(
      one,
      watched.map((target) => ({ ...target, outcome: 'connected' })),
    ),
  )
  if (reached === undefined) return
  throw new SandglassError(
    'sandbox_setup_failed',
    `a pod on the node ${pod.spec?.nodeName ?? ''} reaches ${reached.what} (${reached.address}), where the report found that sandboxes ` +
      'reach nothing: check the NetworkPolicy of the namespace, and the network plugin of that node',
  )
}

function ownPod(name: string, python: string): { name: string; container: string; command: readonly string[] } {
  return { name, container: RELAY, command: reachCommand(python) }
}

/** Waits until one control pod reaches the other, for a bounded time, and returns what it knows. */
async function untilListening(cluster: Cluster, control: ControlPod, { addresses }: ControlPod): Promise<Reach> {
  const deadline = performance.now() + CONTROL_MS
  for (;;) {
    const targets = listenTargets(LISTENER, addresses).filter(({ protocol }) => protocol === 'tcp')
    const reach = await reachFrom(cluster, control, targets, 1)
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
      .flatMap((address): Target[] => [tcp('a name server', address, 53)]),
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

async function policiesOf(cluster: Cluster): Promise<PolicyState> {
  const { namespace } = cluster
  try {
    const { items } = await cluster.call('list network policies', (_, { networking }) =>
      networking.listNamespacedNetworkPolicy({ namespace }),
    )
    return readPolicies(items, { [MANAGED[0]]: MANAGED[1], ...ISOLATED })
  } catch {
    return { kind: 'unreadable' }
  }
}

/** The targets that no later sandbox may reach. */
function watchedOf(control: readonly Attempt[]): readonly Target[] {
  return control
    .filter((one) => isLasting(one))
    .map(({ what, protocol, address, port }) => ({ what, protocol, address, port }))
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
