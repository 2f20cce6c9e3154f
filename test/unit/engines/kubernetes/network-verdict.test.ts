import type { V1NetworkPolicy } from '@kubernetes/client-node'
import { describe, expect, test } from 'vitest'
import {
  contradicts,
  judgeNetwork,
  LINK,
  LISTENER,
  type NetworkEvidence,
  readPolicies,
} from '../../../../src/engines/kubernetes/network-verdict.ts'
import type { Attempt } from '../../../../src/engines/kubernetes/reach.ts'

const LABELS = { 'app.kubernetes.io/managed-by': 'sandglass', 'sandglass.dev/network': 'none' }

function attempt(outcome: string, more: Partial<Attempt> = {}): Attempt {
  return { what: LISTENER, protocol: 'tcp', address: '10.0.0.7', port: 7777, outcome, ...more }
}

/** The attempts at the listening pod that must succeed for pods without a policy, by each family of its addresses. */
function heard(outcome: string, address = '10.0.0.7'): Attempt[] {
  return [attempt(outcome, { address }), attempt(outcome, { address, protocol: 'udp' })]
}

const OF_LINK = 'fe80::7'
const SANDBOX = { what: 'a sandbox' }
const NODE = { what: 'its node', address: '192.0.2.9', port: 10_250 }
/** A cluster that enforces the policy. */
const SHUT: NetworkEvidence = {
  policies: { kind: 'denies' },
  control: [...heard('connected'), attempt('connected', NODE)],
  own: [...heard('silent'), attempt('EHOSTUNREACH', NODE)],
  inward: [attempt('silent', SANDBOX)],
  interfaces: ['eth0'],
}

describe('the network is', () => {
  test('none where a sandbox reaches nothing that another pod reaches, in both directions', () => {
    expect(judgeNetwork(SHUT)).toEqual({ access: 'none' })
    // A plugin that rejects answers in the place of a target that is known to listen.
    expect(judgeNetwork({ ...SHUT, own: [attempt('refused')] })).toEqual({ access: 'none' })
  })

  test('none where a name server that answers other pods outlives the probe', () => {
    const name = { what: 'a name server', protocol: 'udp' as const, address: '10.96.0.10', port: 53 }
    const own = [...heard('silent'), attempt('silent', name)]
    expect(judgeNetwork({ ...SHUT, own, control: [...heard('connected'), attempt('connected', name)] })).toEqual({
      access: 'none',
    })
    expect(judgeNetwork({ ...SHUT, own, control: [...heard('connected'), attempt('silent', name)] }).access).toBe(
      'open',
    )
    expect(judgeNetwork({ ...SHUT, own: [attempt('connected', name)] }).access).toBe('open')
  })

  test('none where addresses of the link are shown to be closed, by another pod or by the link itself', () => {
    const inward = [...SHUT.inward, attempt('silent', { ...SANDBOX, address: OF_LINK })]
    const byPod = { ...SHUT, inward, control: [...SHUT.control, ...heard('connected', OF_LINK)] }
    expect(judgeNetwork(byPod)).toEqual({ access: 'none' })
    const control = [...SHUT.control, { ...LINK, outcome: 'connected' }]
    const byLink = { ...SHUT, inward, control, own: [...SHUT.own, { ...LINK, outcome: 'silent' }] }
    expect(judgeNetwork(byLink)).toEqual({ access: 'none' })
    // A sandbox that may not ask learns nothing about its link.
    const mute = judgeNetwork({ ...byLink, own: [...SHUT.own, { ...LINK, outcome: 'EACCES' }] })
    expect(mute).toMatchObject({ access: 'open', why: { message: expect.stringContaining('of the link') as string } })
  })

  test.each<[string, Partial<NetworkEvidence>, RegExp]>([
    [
      'another pod answers',
      { own: [attempt('connected')] },
      /reaches another pod \(tcp 10\.0\.0\.7\), although .* does not enforce it/,
    ],
    ['a ping comes back', { own: [attempt('connected', { protocol: 'icmp' })] }, /another pod \(icmp /],
    [
      'a target refuses that no pod is known to reach',
      { own: [attempt('refused', { ...NODE, port: 1 })] },
      /reaches its node \(tcp 192\.0\.2\.9\)/,
    ],
    [
      'a pod reaches the sandbox',
      { inward: [attempt('refused', { protocol: 'udp' })] },
      /other pods reach a sandbox by udp/,
    ],
    ['pods do not reach each other', { control: heard('silent') }, /nothing shows that the policy is enforced/],
    [
      'pods reach each other by TCP only',
      { control: [attempt('connected'), attempt('connected', NODE)] },
      /by IPv4, .*nothing shows that the policy is enforced/,
    ],
    [
      'a sandbox reaches a neighbour by its link',
      { own: [{ ...LINK, outcome: 'connected' }] },
      /reaches a neighbour on its link \(icmp ff02::1\)/,
    ],
    [
      'a sandbox reaches another pod by the link',
      { own: [...SHUT.own, attempt('connected', { address: OF_LINK })] },
      /another pod \(tcp fe80::7\)/,
    ],
    [
      'the listening pod is not reached by IPv6',
      { control: [...SHUT.control, ...heard('silent', 'fd00::7')] },
      /by IPv6, .*nothing shows that the policy is enforced/,
    ],
    [
      'only the sandbox has IPv6',
      { inward: [...SHUT.inward, attempt('silent', { ...SANDBOX, address: 'fd00::8' })] },
      /by IPv6, /,
    ],
    [
      'nothing shows anything about the link',
      { inward: [...SHUT.inward, attempt('silent', { ...SANDBOX, address: OF_LINK })] },
      /by IPv6 addresses of the link, /,
    ],
    ['no address of the sandbox is known', { inward: [] }, /nothing shows that the policy is enforced/],
    ['a sandbox has a second network', { interfaces: ['eth0', 'net1'] }, /2 network interfaces \(eth0, net1\)/],
    ['no interface is seen', { interfaces: [] }, /0 network interfaces/],
    [
      'only a protocol without connections shows that pods reach each other',
      { control: [attempt('connected', { protocol: 'icmp' })] },
      /nothing shows that the policy is enforced/,
    ],
    ['nothing is left for later sandboxes to try', { control: heard('connected') }, /no later sandbox/],
    ['there is no policy', { policies: { kind: 'missing' } }, /no NetworkPolicy denies/],
    ['the policies cannot be read', { policies: { kind: 'unreadable' } }, /cannot be read/],
    ['a policy allows something', { policies: { kind: 'allows', name: 'dns' } }, /NetworkPolicy dns allows/],
  ])('open where %s', (_, change, message) => {
    const { access, why } = judgeNetwork({ ...SHUT, ...change })
    expect([access, why?.message]).toEqual(['open', expect.stringMatching(message)])
  })
})

describe('a later sandbox contradicts', () => {
  const name = { what: 'a name server', protocol: 'udp' as const, port: 53 }
  test.each<[string, string, string, boolean]>([
    ['if a connection comes through', 'silent', 'connected', true],
    ['if it is refused where the first met silence', 'silent', 'refused', true],
    ['not if a plugin rejects as it did', 'refused', 'refused', false],
    ['not in silence', 'refused', 'silent', false],
  ])('%s', (_, first, now, expected) => {
    expect(contradicts(attempt(now, name), [attempt(first, name), attempt('refused', NODE)])).toBe(expected)
  })
})

describe('the policies of a namespace', () => {
  const policy = (spec: Partial<V1NetworkPolicy['spec']>): V1NetworkPolicy => ({
    metadata: { name: 'one' },
    spec: {
      podSelector: { matchLabels: { 'sandglass.dev/network': 'none' } },
      policyTypes: ['Ingress', 'Egress'],
      ...spec,
    },
  })

  test.each<[string, V1NetworkPolicy[], unknown]>([
    ['deny', [policy({})], { kind: 'denies' }],
    ['deny if they select everything', [policy({ podSelector: {} })], { kind: 'denies' }],
    [
      'deny if two have a direction each',
      [policy({ policyTypes: ['Ingress'] }), policy({ policyTypes: ['Egress'] })],
      { kind: 'denies' },
    ],
    ['deny nothing if one direction is left', [policy({ policyTypes: ['Ingress'] })], { kind: 'missing' }],
    [
      'deny nothing if they select others',
      [policy({ podSelector: { matchLabels: { app: 'x' } } })],
      { kind: 'missing' },
    ],
    [
      'deny nothing for sure by an expression',
      [policy({ podSelector: { matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] } })],
      { kind: 'missing' },
    ],
    ['allow if one has a rule', [policy({}), policy({ egress: [{}] })], { kind: 'allows', name: 'one' }],
    [
      'allow, perhaps, by an expression',
      [policy({}), policy({ ingress: [{}], podSelector: { matchExpressions: [{ key: 'app', operator: 'Exists' }] } })],
      { kind: 'allows', name: 'one' },
    ],
  ])('%s', (_, policies, expected) => {
    expect(readPolicies(policies, LABELS)).toEqual(expected)
  })

  test('are about all labels of a pod, also those that a webhook adds', () => {
    const mesh = policy({ podSelector: { matchLabels: { injected: 'yes' } }, egress: [{}] })
    expect(readPolicies([policy({}), mesh], LABELS)).toEqual({ kind: 'denies' })
    expect(readPolicies([policy({}), mesh], { ...LABELS, injected: 'yes' })).toEqual({ kind: 'allows', name: 'one' })
  })
})
