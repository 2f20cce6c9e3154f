import { SandglassError } from '../../errors/index.ts'
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
  readonly runtimeClassName: string | undefined
  /** Finds what the sandbox in this pod reaches. */
  readonly probeNetwork: (pod: string) => Promise<NetworkFinding>
}): Promise<SandboxReport> {
  return reportOfProbe({
    engine: 'kubernetes',
    create: engine.create,
    found: async (sandbox) => {
      const network = sandbox.ready.checks['interfaces'] === 'lo' ? NO_INTERFACE : await engine.probeNetwork(sandbox.id)
      const at = await engine.getEnvironment()
      const { image, runtimeClassName: runtime = null } = engine
      return makeReport(at, sandbox, { image, runtime_class: runtime, server_version: await readVersion(at) }, network)
    },
    servesActivities: true,
    remedies: REMEDIES,
  })
}

const NO_INTERFACE: NetworkFinding = { access: 'none', watched: [], families: [], facts: {} }

function makeReport(
  { cluster, housekeeping, archives }: EngineEnvironment,
  sandbox: Sandbox,
  facts: SandboxReport['probes'],
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
      ...facts,
      python_version: sandbox.info.python,
      // No field of a pod has such a limit. A pod whose kernel does not count ends (harness/join.py).
      pids_counted_by: 'RLIMIT_NPROC of the uid of the sandbox',
      // Beside the limit of a sandbox, and part of what its pod reserves.
      packages_in_memory: archives.inMemory,
      ...checks,
      ...network.facts,
      ...factsOfWorkspaces(checks),
    },
  }
}

/** The version of the API server, which any account may read; null where the cluster does not allow it. */
async function readVersion({ cluster }: EngineEnvironment): Promise<string | null> {
  try {
    return (await cluster.call('read the version', (_, { version }) => version.getCode())).gitVersion
  } catch (error) {
    if (error instanceof SandglassError) return null
    throw error
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
  kubernetes_config:
    'set KUBECONFIG, or the option kubernetes.kubeconfig (--kubeconfig), and check the context (--context)',
  kubernetes_unreachable: 'check that the cluster runs and answers: kubectl version',
  kubernetes_permission:
    'see the message: renew the credentials, or give the account the verbs of docs/kubernetes.md in the namespace (--namespace)',
  kubernetes_refused: 'see the message: quota, Pod Security or an admission webhook, or no node with room',
  image_missing: 'name an image that the nodes can pull with the option kubernetes.image (--image)',
  runtime_unknown: 'create the RuntimeClass, or leave out the option kubernetes.runtimeClassName',
  python_missing: 'choose an image with Python 3.10 or later',
  feature_unavailable: 'leave out the option that the message names, or use a cluster that has it',
}
