import {
  factsOfWorkspaces,
  harnessCapabilities,
  reportOfProbe,
  type ReportReason,
  type Sandbox,
  type SandboxReport,
  type SandboxSpec,
} from '../../sandbox/index.ts'
import { MISSING_REMEDY, explainMissing } from './findings.ts'
import type { EngineEnvironment } from './environment.ts'

/** Starts a container with the production flags and reports what is in force. Never throws for a missing part. */
export function probe(engine: {
  getEnvironment: () => Promise<EngineEnvironment>
  create: (spec: SandboxSpec) => Promise<Sandbox>
}): Promise<SandboxReport> {
  return reportOfProbe({
    engine: 'docker',
    create: engine.create,
    found: async (sandbox) => makeReport(await engine.getEnvironment(), sandbox),
    servesActivities: true,
    remedies: REMEDIES,
  })
}

function makeReport(at: EngineEnvironment, sandbox: Sandbox): SandboxReport {
  const { checks } = sandbox.ready
  return {
    engine: 'docker',
    usable: true,
    level: sandbox.info.level,
    reasons: findWarnings(at, sandbox),
    limitsEnforced: sandbox.info.limitsEnforced,
    network: sandbox.info.network,
    capabilities: harnessCapabilities(sandbox, true),
    probes: {
      daemon: at.daemon.address,
      daemon_version: at.info.version,
      runtime_default: at.info.defaultRuntime,
      runtimes: at.info.runtimes,
      image: at.image.name,
      python_version: sandbox.info.python,
      cgroup_version: at.info.cgroupVersion,
      daemon_security: at.info.securityOptions,
      ...checks,
      ...factsOfWorkspaces(checks),
    },
  }
}

function findWarnings(at: EngineEnvironment, sandbox: Sandbox): ReportReason[] {
  const result: ReportReason[] = []
  if (at.image.reason !== undefined) {
    result.push({
      severity: 'warning',
      code: 'image_replaced',
      message: `${at.image.name} is used: ${at.image.reason}`,
      remedy: 'docker pull the default image, or name one with the option image',
    })
  }
  const missing = (['memory', 'pids', 'cpu'] as const).filter((one) => !sandbox.info.limitsEnforced.includes(one))
  if (missing.length > 0) {
    result.push({
      severity: 'warning',
      code: 'limits_not_seen',
      message: explainMissing(missing),
      remedy: MISSING_REMEDY,
    })
  }
  const profile = at.info.securityOptions.flatMap((option) => SECCOMP.exec(option)?.[1] ?? [])[0]
  if (profile !== 'default' && profile !== 'builtin') {
    result.push({
      severity: 'warning',
      code: 'no_daemon_seccomp',
      message:
        `the daemon applies ${profile === undefined ? 'no seccomp profile' : `the seccomp profile ${profile}`} in place of ` +
        "Docker's default one; the harness's own filter is in force in any case",
      remedy: 'use a daemon built with seccomp, and its default profile',
    })
  }
  return result
}

const SECCOMP = /^name=seccomp,profile=(.*)$/

const REMEDIES: Record<string, string> = {
  docker_client_missing: 'npm install dockerode',
  docker_unreachable: 'start Docker (systemctl start docker), or set DOCKER_HOST to its address',
  docker_tls: 'check ca.pem, cert.pem and key.pem below DOCKER_CERT_PATH, and that the daemon serves TLS on its port',
  docker_permission: 'add the user to the group docker and log in again, or use a rootless daemon and set DOCKER_HOST',
  image_missing:
    'docker pull python:3.12-slim, or build an image with python3: docs/docker.md shows a Dockerfile of two lines',
  runtime_unknown: "register the runtime in the daemon's configuration: docs/docker.md",
  python_missing: 'choose an image with Python 3.10 or later',
  architecture_unsupported: "pull the image for the daemon's CPU architecture",
  no_space: 'docker system prune, or a larger disk',
}
