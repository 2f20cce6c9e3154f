import { posix } from 'node:path'
import type Docker from 'dockerode'
import { harnessConfig, INSIDE, PYTHON_FLAGS, type SandboxLimits, scratchSizes } from '../../sandbox/index.ts'

/** The plan from which a container is configured. */
export interface ContainerPlan {
  readonly id: string
  readonly image: string
  /** Directories that the image declares as volumes. */
  readonly imageVolumes: readonly string[]
  /** The PATH of the image; undefined when it has none. */
  readonly path: string | undefined
  readonly python: string
  readonly runtime: string | undefined
  readonly uid: number
  readonly limits: SandboxLimits
  /** The CPU limit, at most the CPUs of the daemon, which accepts no higher one. */
  readonly cpus: number
  readonly preload: readonly string[]
  readonly checker: boolean
  readonly activities: boolean
  readonly packages: string | undefined
  readonly toolsDir: string | undefined
  /** Read-only mounts: path as the daemon sees it, path inside. */
  readonly resources: readonly { readonly source: string; readonly target: string }[]
  readonly labels: Readonly<Record<string, string>>
  /** The program that reads the harness from its standard input. */
  readonly program: string
  /** True if the harness authenticates its output (HMAC), because a script may open its descriptors. */
  readonly sealed: boolean
  /** The memory and threads that the runtime itself needs, added to the limits of the script. */
  readonly overhead: Overhead
}

/** Threads and memory of the runtime itself, which count towards the container's control group. */
export interface Overhead {
  readonly pids: number
  readonly memoryBytes: number
}

/** The request that creates a container, one measure per line (docs/docker.md explains each). */
export function containerConfig(plan: ContainerPlan): Docker.ContainerCreateOptions {
  const { limits, uid, overhead } = plan
  const memory = limits.memoryBytes + overhead.memoryBytes
  return {
    Image: plan.image,
    Entrypoint: [plan.python, ...PYTHON_FLAGS, '-c', plan.program],
    Cmd: [
      harnessConfig({
        limits,
        packages: plan.packages !== undefined,
        toolsDir: plan.toolsDir !== undefined,
        preload: plan.preload,
        checker: plan.checker,
        activities: plan.activities,
        boundsAddressSpace: false,
        installed: true,
        sealed: plan.sealed,
      }),
    ],
    Env: [`PATH=${plan.path ?? PATH}`],
    WorkingDir: '/',
    Hostname: 'sandbox',
    User: `${uid}:${uid}`,
    Labels: { ...plan.labels },
    Tty: false,
    OpenStdin: true,
    // When our connection ends, Docker closes the container's standard input, and the harness exits.
    StdinOnce: true,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    StopSignal: 'SIGKILL',
    // A health check of the image would start processes in the sandbox.
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      AutoRemove: true,
      Init: false,
      NetworkMode: 'none',
      // Scripts must not see the host's name servers and domains.
      Dns: ['127.0.0.1'],
      DnsSearch: ['.'],
      IpcMode: 'private',
      ReadonlyRootfs: true,
      Privileged: false,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges:true'],
      LogConfig: { Type: 'none', Config: {} },
      Memory: memory,
      MemorySwap: memory,
      NanoCpus: Math.round(plan.cpus * 1e9),
      // Broker and zygote are in the group and count towards the limit, as on the local engine.
      PidsLimit: limits.pids + overhead.pids,
      Ulimits: [
        { Name: 'core', Soft: 0, Hard: 0 },
        { Name: 'nofile', Soft: 1024, Hard: 4096 },
      ],
      ShmSize: scratchSizes(limits.diskBytes).shm,
      Tmpfs: makeTmpfs(plan),
      Mounts: makeMounts(plan),
      ...(plan.runtime === undefined ? {} : { Runtime: plan.runtime }),
    },
  }
}

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const COVER = 'ro,noexec,nosuid,nodev,size=4096,mode=0555'

function makeTmpfs(plan: ContainerPlan): Record<string, string> {
  const { limits, uid } = plan
  const sizes = scratchSizes(limits.diskBytes)
  // The daemon refuses two mounts at one place.
  const mounted = new Set(makeMounts(plan).map(({ Target }) => posix.resolve(Target)))
  const volumes = plan.imageVolumes.map((path) => posix.resolve('/', path)).filter((path) => !mounted.has(path))
  const formatOptions = (size: number, mode: string): string =>
    `rw,exec,nosuid,nodev,size=${size},mode=${mode},uid=${uid},gid=${uid}`
  return {
    // A volume would be a writable directory on the daemon's disk, without a size limit.
    ...Object.fromEntries(volumes.map((path) => [path, COVER])),
    [INSIDE.workspace]: formatOptions(sizes.workspace, '0755'),
    '/tmp': formatOptions(sizes.tmp, '1777'),
    '/var/tmp': formatOptions(sizes.varTmp, '1777'),
    '/dev/shm': formatOptions(sizes.shm, '1777'),
    // Message queues outlive the processes that made them: the file system that holds them is made inaccessible.
    '/dev/mqueue': COVER,
  }
}

function makeMounts(plan: ContainerPlan): Docker.MountSettings[] {
  const all = [
    ...(plan.packages === undefined ? [] : [{ source: plan.packages, target: INSIDE.packages }]),
    ...(plan.toolsDir === undefined ? [] : [{ source: plan.toolsDir, target: INSIDE.tools }]),
    ...plan.resources,
  ]
  return all.map(({ source, target }) => ({
    Type: 'bind' as const,
    Source: source,
    Target: target,
    ReadOnly: true,
    BindOptions: { Propagation: 'rprivate' as const },
  }))
}
