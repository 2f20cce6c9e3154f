import type { SandglassError } from '../../errors/index.ts'
import {
  factsOfWorkspaces,
  harnessCapabilities,
  reportOfProbe,
  type ReportReason,
  type Sandbox,
  type SandboxReport,
  type SandboxSpec,
} from '../../sandbox/index.ts'
import type { EngineEnvironment } from './environment.ts'
import { explainMissing } from './findings.ts'
import type { NetworkFinding } from './network.ts'

/** Starts a pod with the production spec and reports what is in force. Never throws for a missing part. */
export function probe(engine: {
  readonly getEnvironment: () => Promise<EngineEnvironment>
  readonly create: (spec: SandboxSpec) => Promise<Sandbox>
  readonly image: string
  /** Finds what the sandbox in this pod reaches. */
  readonly probeNetwork: (pod: string) => Promise<NetworkFinding>
}): Promise<SandboxReport> {
  return reportOfProbe({
    engine: 'kubernetes',
    create: engine.create,
    found: async (sandbox) => {
      const network = sandbox.ready.checks['interfaces'] === 'lo' ? NO_INTERFACE : await engine.probeNetwork(sandbox.id)
      return makeReport(await engine.getEnvironment(), sandbox, engine.image, network)
    },
    servesActivities: true,
    remedies: REMEDIES,
  })
}

const NO_INTERFACE: NetworkFinding = { access: 'none', watched: [], families: [], facts: {} }

function makeReport(
  { cluster, housekeeping, archives }: EngineEnvironment,
  sandbox: Sandbox,
  image: string,
  network: NetworkFinding,
): SandboxReport {
  const { checks } = sandbox.ready
  return {
    engine: 'kubernetes',
    usable: true,
    level: sandbox.info.level,
    reasons: findWarnings(sandbox, network, housekeeping.problem),
    limitsEnforced: sandbox.info.limitsEnforced,
    network: network.access,
    capabilities: harnessCapabilities(sandbox, true),
    probes: {
      server: cluster.server,
      context: cluster.context,
      namespace: cluster.namespace,
      image,
      python_version: sandbox.info.python,
      // Beside the limit of a sandbox, and part of what its pod reserves.
      packages_in_memory: archives.inMemory,
      ...checks,
      ...network.facts,
      ...factsOfWorkspaces(checks),
    },
  }
}

function findWarnings(
  { info }: Sandbox,
  { why }: NetworkFinding,
  leaseProblem: SandglassError | undefined,
): ReportReason[] {
  const missing = (['memory', 'cpu'] as const).filter((one) => !info.limitsEnforced.includes(one))
  return [
    ...(why === undefined ? [] : [{ severity: 'warning' as const, code: 'network_open', ...why }]),
    ...(leaseProblem === undefined
      ? []
      : [
          {
            severity: 'warning' as const,
            code: 'lease_missing',
            message: `hosts on other machines cannot see that this one lives: ${leaseProblem.message}`,
            remedy:
              leaseProblem.code === 'kubernetes_permission'
                ? 'give the account the verbs for leases of docs/kubernetes.md; until then pods of dead hosts stay for 10 minutes'
                : 'see the message; the lease is tried again every 10 s, and until then pods of dead hosts stay for 10 minutes',
          },
        ]),
    ...(missing.length === 0
      ? []
      : [
          {
            severity: 'warning' as const,
            code: 'limits_not_seen',
            message: explainMissing(missing),
            remedy: 'use a runtime that shows a container its control group',
          },
        ]),
  ]
}

const REMEDIES: Record<string, string> = {
  kubernetes_client_missing: 'npm install @kubernetes/client-node ws',
  kubernetes_config: 'set KUBECONFIG, or the option kubernetes.kubeconfig, and check the context',
  kubernetes_unreachable: 'check that the cluster runs and answers: kubectl version',
  kubernetes_permission: 'see the message: renew the credentials, or give the account the verbs of docs/kubernetes.md',
  kubernetes_refused: 'see the message: quota, Pod Security or an admission webhook, or no node with room',
  image_missing: 'name an image that the nodes can pull with the option kubernetes.image',
  runtime_unknown: 'create the RuntimeClass, or leave out the option kubernetes.runtimeClassName',
  python_missing: 'choose an image with Python 3.10 or later',
}
