import type {
  V1Container,
  V1Pod,
  V1PodSpec,
  V1ResourceRequirements,
  V1SecurityContext,
  V1Volume,
  V1VolumeMount,
} from '@kubernetes/client-node'
import {
  gvisorMemoryBytes,
  harnessConfig,
  INSIDE,
  PYTHON_FLAGS,
  type SandboxLimits,
  type SandboxSpec,
  scratchSizes,
} from '../../sandbox/index.ts'
import type { KubernetesEngineOptions } from './options.ts'
import { ISOLATED, type OwnerMarks } from './owner.ts'
import { isSent, mountedOf, type PodDirectory, sentBytes } from './pod-directories.ts'
import type { PodPrograms } from './programs.ts'

/** The fields of a pod's spec that say where it runs, among which users, and how its image is pulled. */
export type Placement = Pick<V1PodSpec, 'hostUsers' | 'imagePullSecrets' | 'nodeSelector' | 'tolerations'>

/** Makes them from the options. */
export function placementOf(options: KubernetesEngineOptions): Placement {
  const { hostUsers, imagePullSecrets, nodeSelector, tolerations } = options
  return {
    ...(hostUsers === undefined ? {} : { hostUsers }),
    ...(imagePullSecrets === undefined ? {} : { imagePullSecrets: imagePullSecrets.map((name) => ({ name })) }),
    ...(nodeSelector === undefined ? {} : { nodeSelector: { ...nodeSelector } }),
    ...(tolerations === undefined ? {} : { tolerations: tolerations.map((one) => ({ ...one })) }),
  }
}

/** The plan from which a pod is made. */
export interface PodPlan {
  readonly name: string
  readonly image: string
  readonly python: string
  readonly runtimeClassName: string | undefined
  readonly placement: Placement
  readonly rootOnlyDir: string
  /** The CPUs to reserve; undefined for the limit. */
  readonly cpuRequest: number | undefined
  readonly spec: SandboxSpec
  /** The directories of the spec. */
  readonly directories: readonly PodDirectory[]
  /** The uid of the sandbox; the container beside it has the next one. */
  readonly uid: number
  readonly marks: OwnerMarks
  readonly programs: PodPrograms
  /** True for gVisor: the harness seals its channel, and the containers identify each other by messages. */
  readonly gvisor: boolean
  /** The time that the parts of the pod wait for each other, in seconds. */
  readonly startSec: number
}

/** The container with the sandbox; it runs as PID 1 of a pid namespace of its own. */
export const SANDBOX = 'sandbox'
/** The container beside it, in which an `exec` brings the channel. */
export const RELAY = 'relay'

/** The host is lost if the container beside the sandbox hears nothing from it for this time. */
export const SILENCE_SEC = 30
/** The last fence: the cluster ends the pod after this time, whatever else fails. */
const LIFETIME_SEC = 86_400
/** The file for the last message of a container. It is on the disk of the node, open to everybody, and has no size limit. */
export const TERMINATION_LOG = '.termination-log'
/** Its own streams are unused, so this holds nothing but the logs of a failed start. */
const EPHEMERAL_STORAGE = '64Mi'
const RELAY_CPUS = 0.2
const RELAY_IDLE_CPUS = 0.01
/** Its limit where that reserves nothing: unpacking pandas takes half a second of processor time. */
const RELAY_BURST_CPUS = 1
const RELAY_MEMORY_BYTES = 48 * 1024 * 1024

/** The pod of a sandbox, one measure a line. Namespaces with the Pod Security level `restricted` accept it. */
export function podOf(plan: PodPlan): V1Pod {
  const { marks } = plan
  return {
    metadata: {
      name: plan.name,
      labels: { ...marks.labels, ...ISOLATED },
      annotations: { ...marks.annotations },
      ownerReferences: [...marks.ownerReferences],
    },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      hostNetwork: false,
      hostPID: false,
      hostIPC: false,
      shareProcessNamespace: false,
      hostname: 'sandbox',
      // Scripts must not see the name servers and domains of the cluster.
      dnsPolicy: 'None',
      dnsConfig: { nameservers: ['127.0.0.1'], searches: ['.'] },
      // The harness ends by itself at the end of its channel, and not by SIGTERM.
      terminationGracePeriodSeconds: 1,
      activeDeadlineSeconds: LIFETIME_SEC,
      ...plan.placement,
      ...(plan.runtimeClassName === undefined ? {} : { runtimeClassName: plan.runtimeClassName }),
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          ...containerOf(SANDBOX, plan, plan.uid),
          resources: sandboxResources(plan),
          command: [plan.python, ...PYTHON_FLAGS, '-c', plan.programs.sandbox],
          args: [configOf(plan), joinConfig(plan)],
          volumeMounts: [...mountsOf(plan).map((one) => mountOf(one, plan)), ...plan.directories.map(mountOfDirectory)],
        },
        {
          ...containerOf(RELAY, plan, plan.uid + 1),
          resources: relayResources(plan),
          command: [plan.python, ...PYTHON_FLAGS, '-c', plan.programs.relay, 'keep', String(plan.startSec)],
          env: [
            { name: 'RELAY', value: plan.programs.relay },
            { name: REACH, value: plan.programs.reach },
            ...(plan.directories.some(isSent) ? [{ name: UNPACK, value: plan.programs.unpack }] : []),
          ],
          // It fills what the sandbox can only read.
          volumeMounts: plan.directories.filter(isSent).map(({ name, path }) => ({ name, mountPath: path })),
        },
      ],
      volumes: [...mountsOf(plan).map(({ name, bytes }) => inMemory(name, bytes)), ...plan.directories.map(volumeOf)],
    },
  }
}

/** The variable with the text of harness/reach.py: an `exec` has its command in the URL. */
export const REACH = 'REACH'

/** The start of the command that runs harness/reach.py, in a container with that variable. */
export function reachCommand(python: string): readonly string[] {
  return [python, ...PYTHON_FLAGS, '-c', `import os; exec(os.environ["${REACH}"])`]
}

/** The variable with the text of harness/unpack.py. */
const UNPACK = 'UNPACK'

/** The command of an `exec` that fills a directory of the sandbox. */
export function unpackCommand({ python }: PodPlan, path: string): readonly string[] {
  return [python, ...PYTHON_FLAGS, '-c', `import os; exec(os.environ["${UNPACK}"])`, path]
}

/** The command of the `exec` that brings the channel. */
export function relayCommand({ name, python, uid, startSec, gvisor }: PodPlan): readonly string[] {
  const program = 'import os; exec(os.environ["RELAY"])'
  const args = ['relay', name, String(uid), String(startSec), String(SILENCE_SEC), ...(gvisor ? ['gvisor'] : [])]
  return [python, ...PYTHON_FLAGS, '-c', program, ...args]
}

function containerOf(name: string, plan: PodPlan, uid: number): Omit<V1Container, 'command'> & { name: string } {
  return {
    name,
    image: plan.image,
    workingDir: '/',
    securityContext: securityContext(uid),
    terminationMessagePath: `${plan.rootOnlyDir}/${TERMINATION_LOG}`,
    terminationMessagePolicy: 'File',
  }
}

/**
 * The limits that hold a sandbox, as its kernel shows them. On gVisor, all containers of a pod are processes of one kernel, in the
 * control group of the pod: its memory is that of both containers, and they share the CPUs that were asked for.
 */
export function heldLimits(plan: PodPlan): Pick<SandboxLimits, 'memoryBytes' | 'cpus'> {
  const { limits } = plan.spec
  if (!plan.gvisor) return limits
  return { memoryBytes: sandboxMemory(plan) + relayMemory(plan), cpus: limits.cpus }
}

function sandboxMemory({ spec: { limits }, gvisor }: PodPlan): number {
  return limits.memoryBytes + (gvisor ? gvisorMemoryBytes(limits) : 0)
}

/** Directories that are sent stay in memory, which counts towards the container that wrote them. */
function relayMemory({ directories }: PodPlan): number {
  return RELAY_MEMORY_BYTES + sentBytes(directories)
}

function sandboxResources(plan: PodPlan): V1ResourceRequirements {
  const { cpus } = plan.spec.limits
  return resourcesOf(plan.gvisor ? cpus - relayShare(cpus) : cpus, plan.cpuRequest, sandboxMemory(plan))
}

function relayResources(plan: PodPlan): V1ResourceRequirements {
  const { cpuRequest, directories, gvisor, spec } = plan
  const idle = cpuRequest === undefined ? undefined : RELAY_IDLE_CPUS
  if (gvisor) return resourcesOf(relayShare(spec.limits.cpus), idle, relayMemory(plan))
  const bursts = idle !== undefined && directories.some(isSent)
  return resourcesOf(bursts ? RELAY_BURST_CPUS : RELAY_CPUS, idle, relayMemory(plan))
}

/** The part of the CPUs of a pod on gVisor that stands with the relay. Only the sum has an effect. */
function relayShare(cpus: number): number {
  return Math.min(RELAY_CPUS, cpus / 2)
}

/** The node keeps what the sandbox may use: requests equal limits, but for CPUs if another request is asked for. */
function resourcesOf(cpus: number, request: number | undefined, memoryBytes: number): V1ResourceRequirements {
  const limits = { cpu: milliCpus(cpus), memory: String(memoryBytes), 'ephemeral-storage': EPHEMERAL_STORAGE }
  return { limits, requests: { ...limits, cpu: milliCpus(Math.min(cpus, request ?? cpus)) } }
}

function milliCpus(cpus: number): string {
  return `${Math.ceil(cpus * 1000)}m`
}

function securityContext(uid: number): V1SecurityContext {
  return {
    runAsUser: uid,
    runAsGroup: uid,
    runAsNonRoot: true,
    privileged: false,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
    seccompProfile: { type: 'RuntimeDefault' },
  }
}

function configOf({ spec, directories, gvisor }: PodPlan): string {
  const { limits, preload = [], checker = false, activities = false } = spec
  return harnessConfig({
    limits,
    packages: directories.some(({ name }) => name === 'packages'),
    toolsDir: directories.some(({ name }) => name === 'tools'),
    preload,
    checker,
    activities,
    boundsAddressSpace: false, // the container holds the sandbox as a whole
    installed: true,
    sealed: gvisor,
  })
}

/** The argument of harness/join.py. */
function joinConfig(plan: PodPlan): string {
  return JSON.stringify({
    name: plan.name,
    uid: plan.uid + 1,
    start_sec: plan.startSec,
    gvisor: plan.gvisor,
    sizes: Object.fromEntries(scratchOf(plan).map(({ path, bytes }) => [path, bytes])),
    // With the path that must be in the image: some runtimes mount all of it instead.
    volumes: Object.fromEntries(
      mountedOf(plan.directories).map((one) => [one.path, 'image' in one ? one.subPath : '']),
    ),
  })
}

interface Mount {
  readonly name: string
  readonly path: string
  readonly bytes: number
  readonly readOnly: boolean
}

function scratchOf({ spec: { limits } }: PodPlan): readonly Mount[] {
  const { workspace, tmp, varTmp, shm } = scratchSizes(limits.diskBytes)
  return [
    { name: 'workspace', path: INSIDE.workspace, bytes: workspace, readOnly: false },
    { name: 'tmp', path: '/tmp', bytes: tmp, readOnly: false },
    { name: 'var-tmp', path: '/var/tmp', bytes: varTmp, readOnly: false },
    { name: 'shm', path: '/dev/shm', bytes: shm, readOnly: false },
  ]
}

function mountsOf(plan: PodPlan): readonly Mount[] {
  // Message queues outlive the processes that made them: the file system that holds them is made inaccessible.
  return [...scratchOf(plan), { name: 'mqueue', path: '/dev/mqueue', bytes: 4096, readOnly: true }]
}

function mountOf({ name, path, readOnly }: Mount, { gvisor }: PodPlan): V1VolumeMount {
  // gVisor's shim puts a file system without a size on exactly /dev/shm, whatever was asked for there.
  return { name, mountPath: gvisor && path === '/dev/shm' ? `${path}/` : path, readOnly }
}

function mountOfDirectory(directory: PodDirectory): V1VolumeMount {
  const { name, path } = directory
  const within = isSent(directory) || directory.subPath === '' ? {} : { subPath: directory.subPath }
  return { name, mountPath: path, readOnly: true, ...within }
}

function volumeOf(directory: PodDirectory): V1Volume {
  const { name } = directory
  if (isSent(directory)) return inMemory(name, directory.listing.volumeBytes)
  if ('image' in directory) return { name, image: { reference: directory.image } }
  return { name, persistentVolumeClaim: { claimName: directory.claimName, readOnly: true } }
}

function inMemory(name: string, bytes: number): V1Volume {
  return { name, emptyDir: { medium: 'Memory', sizeLimit: String(bytes) } }
}
