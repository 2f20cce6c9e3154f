import type { V1NetworkPolicy } from '@kubernetes/client-node'
import { describe, expect, test } from 'vitest'
import {
  judgeNetwork,
  LISTENER,
  type NetworkEvidence,
  readPolicies,
} from '../../../../src/engines/kubernetes/network-verdict.ts'
import type { Attempt } from '../../../../src/engines/kubernetes/reach.ts'

const LABELS = { 'app.kubernetes.io/managed-by': 'sandglass', 'sandglass.dev/network': 'none' }

function attempt(outcome: string, more: Partial<Attempt> = {}): Attempt {
  return { what: LISTENER, protocol: 'tcp', address: '10.0.0.7', port: 7777, outcome, ...more }
}

const NODE = { what: 'its node', address: '192.0.2.9', port: 10_250 }
/** A cluster that enforces the policy. */
const SHUT: NetworkEvidence = {
  policies: { kind: 'denies' },
  control: [attempt('connected'), attempt('connected', NODE)],
  own: [attempt('silent'), attempt('EHOSTUNREACH', NODE)],
  inward: [attempt('silent', { what: 'a sandbox' })],
}

describe('the network is', () => {
  test('none where a sandbox reaches nothing that another pod reaches, in both directions', () => {
    expect(judgeNetwork(SHUT)).toEqual({ access: 'none' })
    // A plugin that rejects answers in the place of a target that is known to listen.
    expect(judgeNetwork({ ...SHUT, own: [attempt('refused')] })).toEqual({ access: 'none' })
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
    ['pods do not reach each other', { control: [attempt('silent')] }, /nothing shows that the policy is enforced/],
    [
      'only a protocol without connections shows that pods reach each other',
      { control: [attempt('connected', { protocol: 'icmp' })] },
      /nothing shows that the policy is enforced/,
    ],
    ['nothing is left for later sandboxes to try', { control: [attempt('connected')] }, /no later sandbox/],
    ['there is no policy', { policies: { kind: 'missing' } }, /no NetworkPolicy denies/],
    ['the policies cannot be read', { policies: { kind: 'unreadable' } }, /cannot be read/],
    ['a policy allows something', { policies: { kind: 'allows', name: 'dns' } }, /NetworkPolicy dns allows/],
  ])('open where %s', (_, change, message) => {
    const { access, why } = judgeNetwork({ ...SHUT, ...change })
    expect([access, why?.message]).toEqual(['open', expect.stringMatching(message)])
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
})
