import type { EngineModule } from '../sandbox/index.ts'
import type { DockerEngineOptions } from './docker/index.ts'
import type { KubernetesEngineOptions } from './kubernetes/index.ts'
import type { LocalEngineOptions } from './local/index.ts'
import type { PyodideEngineOptions } from './pyodide/index.ts'

/** One row of the table. The code of the engine is loaded when it is used. */
export interface EngineRow {
  /** The means of isolation, for the docs. */
  readonly wall: string
  /** The machines that it works on, for the docs. */
  readonly machines: string
  /** The source of the Python of its sandboxes, for docs. */
  readonly python: string
  /** `yes`, `no`, or the condition on which it has workspaces, for docs. */
  readonly workspaces: string
  /** `yes`, `no`, or the condition on which workspaces have programs, for docs. */
  readonly programs: string
  /** `yes`, `no`, or the condition on which workspaces have sessions, for docs. */
  readonly sessions: string
  /** `yes`, `no`, or the condition on which sessions have checkpoints, rollbacks and branches, for docs. */
  readonly checkpoints: string
  /** Its page and the page of its limitations, below `docs/`. */
  readonly pages: readonly string[]
  /** Flags of the command line that set an option of this engine alone. */
  readonly flags: Readonly<Record<string, EngineFlag>>
  /** True if it is used only where it is named: `auto` never takes it, and `doctor`, `ps` and `prune` ask it by `--engine` alone. */
  readonly isNamedOnly?: boolean
  readonly load: () => Promise<EngineModule>
}

/** A flag of the command line that sets one option of one engine to a string. */
export interface EngineFlag {
  readonly option: string
  /** The placeholder of the value in help. */
  readonly value: string
  readonly help: string
}

/** Engines by name, in the order in which `auto` tries them. */
export type EngineTable = Readonly<Record<string, EngineRow>>

/** The engines of Sandglass: the only list of them. */
export const ENGINES = {
  /** Options of the local engine. */
  local: {
    wall: 'namespaces of Linux, made by bubblewrap',
    machines: 'Linux with bubblewrap and Python 3.10 or later',
    python: 'the first `python3` on PATH, or `local.python`',
    workspaces: 'yes',
    programs: 'yes',
    sessions: 'yes',
    checkpoints: 'yes',
    pages: ['sandbox-local.md', 'limitations/local.md'] as const,
    flags: {},
    load: async (): Promise<EngineModule<LocalEngineOptions>> => (await import('./local/index.ts')).localModule,
  },
  /** Options of the Docker engine. */
  docker: {
    wall: 'containers of Docker, with gVisor or Kata where the daemon has them',
    machines: 'any that reaches a Docker daemon with Linux containers',
    python: 'that of the image, or `docker.python`',
    workspaces: 'yes (on gVisor one activity at a time)',
    programs: 'yes (on gVisor `exec` alone)',
    sessions: 'yes (on gVisor cells alone)',
    checkpoints: 'yes (not on gVisor)',
    pages: ['docker.md', 'limitations/docker.md', 'limitations/gvisor.md'] as const,
    flags: {
      '--image': { option: 'image', value: 'REF', help: 'the container image, default python:3.12-slim' },
    },
    load: async (): Promise<EngineModule<DockerEngineOptions>> => (await import('./docker/index.ts')).dockerModule,
  },
  /** Options of the Pyodide engine. */
  pyodide: {
    wall: 'WebAssembly, and bubblewrap where it works',
    machines: 'any with Node',
    python: 'that of the package `pyodide`',
    workspaces: 'yes (scripts and files)',
    programs: 'no',
    sessions: 'yes (cells alone)',
    checkpoints: 'no',
    pages: ['limitations/pyodide.md'] as const,
    flags: {},
    load: async (): Promise<EngineModule<PyodideEngineOptions>> => (await import('./pyodide/index.ts')).pyodideModule,
  },
  /** Options of the Kubernetes engine. */
  kubernetes: {
    wall: 'pods of a Kubernetes cluster',
    machines: 'any that reaches the API server of a cluster',
    python: 'that of the image, or `kubernetes.python`',
    workspaces: 'yes',
    programs: 'yes',
    sessions: 'yes',
    checkpoints: 'yes',
    pages: ['kubernetes.md', 'limitations/kubernetes.md'] as const,
    flags: {
      '--image': { option: 'image', value: 'REF', help: 'the container image, default python:3.12-slim' },
      '--kubeconfig': { option: 'kubeconfig', value: 'FILE', help: 'the kubeconfig, default KUBECONFIG' },
      '--context': { option: 'context', value: 'NAME', help: 'a context of the kubeconfig, default its current one' },
      '--namespace': { option: 'namespace', value: 'NAME', help: 'the namespace of the pods' },
    },
    // A pod in the cluster of whatever context is current would be a surprise.
    isNamedOnly: true,
    load: async (): Promise<EngineModule<KubernetesEngineOptions>> =>
      (await import('./kubernetes/index.ts')).kubernetesModule,
  },
}

/** The name of an engine of Sandglass. */
export type EngineName = keyof typeof ENGINES

/** The names in the order of the table. */
export const ENGINE_NAMES: readonly EngineName[] = Object.keys(ENGINES) as EngineName[]

/** The options of each engine, under its name. */
export type EngineOptions = { readonly [Name in keyof typeof ENGINES]?: OptionsOf<(typeof ENGINES)[Name]> }

type OptionsOf<Row> = Row extends { load: () => Promise<EngineModule<infer Options>> } ? Options : never
