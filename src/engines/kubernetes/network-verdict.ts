import { isIP } from 'node:net'
import type { V1NetworkPolicy } from '@kubernetes/client-node'
import type { NetworkAccess } from '../../sandbox/index.ts'
import type { Attempt, Target } from './reach.ts'

/** The statement of the NetworkPolicies of a namespace about a pod. */
export type PolicyState =
  | { readonly kind: 'denies' | 'missing' | 'unreadable' }
  /** A policy that selects the pod, and allows something. */
  | { readonly kind: 'allows'; readonly name: string }

/** The observations about the network of a sandbox. */
export interface NetworkEvidence {
  readonly policies: PolicyState
  /** The attempts of a pod that no policy isolates, at the targets of the sandbox. */
  readonly control: readonly Attempt[]
  /** The attempts of the sandbox. */
  readonly own: readonly Attempt[]
  /** The attempts of the pod without a policy to reach the sandbox. */
  readonly inward: readonly Attempt[]
  /** The interfaces of the sandbox that are up, beside the loopback. */
  readonly interfaces: readonly string[]
}

/** The access of sandboxes to the network, and why it is not `none`. */
export interface NetworkVerdict {
  readonly access: NetworkAccess
  readonly why?: { readonly message: string; readonly remedy: string }
}

/** The target whose listener the probe itself started: the attempts at it decide whether a silence says anything. */
export const LISTENER = 'another pod'
/** All nodes of the link. Whoever answers there can be reached without an address that the cluster knows. */
export const LINK: Target = { what: 'a neighbour on its link', protocol: 'icmp', address: 'ff02::1', port: 0 }

const APPLY =
  'apply a NetworkPolicy that denies sandboxes all ingress and egress, as deploy/kubernetes/sandglass.yaml has it'
const ENFORCE = 'use a network plugin that enforces NetworkPolicies, such as Calico, Cilium or OVN-Kubernetes'

/** Says whether a script reaches nothing. Whatever is not shown counts as open. */
export function judgeNetwork(evidence: NetworkEvidence): NetworkVerdict {
  const { policies, control, own, inward, interfaces } = evidence
  const out = own.filter((one) => isReached(one, control))
  // Nothing in a sandbox listens, so a refusal comes from its kernel.
  const into = inward.filter(({ outcome }) => ['connected', 'refused'].includes(outcome))
  if (out.length > 0) return open(`a sandbox reaches ${listOf(out)}${ignoredBy(policies)}`, remedyFor(policies))
  if (into.length > 0) {
    return open(`other pods reach a sandbox by ${protocolsOf(into)}${ignoredBy(policies)}`, remedyFor(policies))
  }
  if (policies.kind !== 'denies') return open(explain(policies), remedyFor(policies))
  if (interfaces.length !== 1) {
    return open(
      `a sandbox has ${interfaces.length} network interfaces (${interfaces.join(', ')}), and a NetworkPolicy is about one`,
      'give the pods of sandboxes no other networks',
    )
  }
  const families = familiesOf(evidence)
  const missing = families.find((family) => !isShown(family, evidence))
  if (missing !== undefined || inward.length === 0) {
    return open(
      `a sandbox reached nothing${missing === undefined ? '' : ` by ${missing}`}, but pods without a policy do not reach each other ` +
        'by TCP and UDP here either: nothing shows that the policy is enforced',
      missing === OF_LINK
        ? 'turn IPv6 off on the interfaces of pods, or let pods send ICMP echoes (the sysctl net.ipv4.ping_group_range)'
        : 'let two pods of the namespace that carry no label of a sandbox reach each other',
    )
  }
  if (!control.some((one) => isLasting(one))) {
    return open(
      'a sandbox reached nothing, but nothing else that other pods reach outlives the probe: no later sandbox could be checked against it',
      'let pods without the label of a sandbox reach the API server, as they normally do',
    )
  }
  return { access: 'none' }
}

const OF_LINK = 'IPv6 addresses of the link'

/** The version of IP of an address. Plugins treat the addresses of the link apart, if at all. */
export function familyOf(address: string): string {
  if (isIP(address) === 4) return 'IPv4'
  return /^fe[89ab]/i.test(address) ? OF_LINK : 'IPv6'
}

/** The families of the addresses that a sandbox and the listening pod have. */
export function familiesOf({ control, inward }: NetworkEvidence): readonly string[] {
  const listening = control.filter(({ what }) => what === LISTENER)
  return [...new Set([...inward, ...listening].map(({ address }) => familyOf(address)))]
}

/** True if pods that no policy isolates reach each other by a family, so that the silence of a sandbox says something. */
function isShown(family: string, { control, own }: NetworkEvidence): boolean {
  const byListener = (['tcp', 'udp'] as const).every((protocol) =>
    control.some(
      (one) =>
        one.what === LISTENER &&
        one.protocol === protocol &&
        one.outcome === 'connected' &&
        familyOf(one.address) === family,
    ),
  )
  if (byListener || family !== OF_LINK) return byListener
  // On a link of its own, nobody but the node can answer a pod. One that may not ask learns nothing.
  const outcomeOf = (attempts: readonly Attempt[]): string | undefined =>
    attempts.find((one) => isSame(one, LINK))?.outcome
  return outcomeOf(control) === 'connected' && outcomeOf(own) === 'silent'
}

/** True for what another pod reaches, and what will still be there when the next sandbox starts. */
export function isLasting({ what, protocol, outcome }: Attempt): boolean {
  return what !== LISTENER && protocol !== 'icmp' && outcome === 'connected'
}

/** True if an attempt of a later sandbox contradicts what the first one met: it came through, or was refused where the first was not. */
export function contradicts({ outcome, ...target }: Attempt, known: readonly Attempt[]): boolean {
  if (outcome === 'connected') return true
  return outcome === 'refused' && !known.some((one) => one.outcome === 'refused' && isSame(one, target))
}

/**
 * True if an attempt came through. A target that is known to listen refuses nobody: there a refusal is the answer of a network
 * plugin that rejects.
 */
export function isReached({ outcome, ...target }: Attempt, control: readonly Attempt[]): boolean {
  if (outcome === 'connected') return true
  return outcome === 'refused' && !control.some((one) => one.outcome === 'connected' && isSame(one, target))
}

function isSame(one: Omit<Attempt, 'outcome'>, other: Omit<Attempt, 'outcome'>): boolean {
  return one.protocol === other.protocol && one.address === other.address && one.port === other.port
}

/** Reads what the policies say about a pod with these labels: all that it has, as an admission webhook may add some. An expression in a selector counts against a proof. */
export function readPolicies(items: readonly V1NetworkPolicy[], labels: Readonly<Record<string, string>>): PolicyState {
  const allowing = items.find(
    (one) => maySelect(one, labels) && (hasRules(one.spec?.ingress) || hasRules(one.spec?.egress)),
  )
  if (allowing !== undefined) return { kind: 'allows', name: allowing.metadata?.name ?? '' }
  const denying = items.filter((one) => maySelect(one, labels) && !hasExpressions(one))
  const directions = new Set(denying.flatMap(({ spec }) => spec?.policyTypes ?? []))
  return { kind: directions.has('Ingress') && directions.has('Egress') ? 'denies' : 'missing' }
}

function maySelect({ spec }: V1NetworkPolicy, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(spec?.podSelector?.matchLabels ?? {}).every(([name, value]) => labels[name] === value)
}

function hasExpressions({ spec }: V1NetworkPolicy): boolean {
  return (spec?.podSelector?.matchExpressions ?? []).length > 0
}

function hasRules(rules: readonly unknown[] | undefined): boolean {
  return (rules ?? []).length > 0
}

function open(message: string, remedy: string): NetworkVerdict {
  return { access: 'open', why: { message, remedy } }
}

function ignoredBy({ kind }: PolicyState): string {
  return kind === 'denies'
    ? ', although a NetworkPolicy denies it: the network plugin of the cluster does not enforce it'
    : ''
}

/** Says why the policies of a namespace do not isolate a pod. */
export function explain(policies: Exclude<PolicyState, { kind: 'denies' }>): string {
  if (policies.kind === 'allows') return `the NetworkPolicy ${policies.name} allows sandboxes something`
  if (policies.kind === 'missing') return 'no NetworkPolicy denies sandboxes both ingress and egress'
  return 'the NetworkPolicies of the namespace cannot be read'
}

function remedyFor(policies: PolicyState): string {
  if (policies.kind === 'denies') return ENFORCE
  if (policies.kind === 'allows')
    return `take the rules out of the NetworkPolicy ${policies.name}, or select other pods`
  if (policies.kind === 'missing') return APPLY
  return 'give the account the verb `list` of networkpolicies (deploy/kubernetes/sandglass.yaml)'
}

function listOf(attempts: readonly Attempt[]): string {
  return [...new Set(attempts.map(({ what, protocol, address }) => `${what} (${protocol} ${address})`))].join(', ')
}

function protocolsOf(attempts: readonly Attempt[]): string {
  return [...new Set(attempts.map(({ protocol }) => protocol))].join(', ')
}
