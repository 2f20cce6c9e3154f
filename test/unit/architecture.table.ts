import { ENGINE_NAMES } from '../../src/engines/index.ts'

/** One room of `src/` and what it may import. Imports point down; `npm run docs` writes ARCHITECTURE.md's table from it. */
export interface Room {
  readonly name: string
  /** A folder (`src/errors/`), entered through its door only, or a single file. */
  readonly path: string
  /** The file in the folder that others import; `index.ts` when absent. */
  readonly door?: string
  /** Names of other rooms. */
  readonly mayImport: readonly string[]
  /** Packages from npm; every room may use Node's own modules under `node:`. */
  readonly packages: readonly string[]
}

/** The rooms below all others. */
export const FOUNDATION: readonly string[] = ['errors', 'support']
const ENGINES = ENGINE_NAMES.map((name) => `engines/${name}`)
/** The table of engines, which lists their rooms. */
const TABLE = 'engines'
/** The rooms whose exports users see: everything below the doors. */
const WORKING = [
  ...FOUNDATION,
  'protocol',
  'sandbox',
  ...ENGINES,
  TABLE,
  'pool',
  'tools',
  'redaction',
  'outcomes',
  'executor',
  'workspace',
  'session',
  'environments',
  'stores',
  'persistence',
  'artifacts',
]
/** The rooms below the files that wire rooms. */
export const LIBRARY: readonly string[] = [
  ...WORKING,
  'skills',
  'llm',
  'telemetry',
  'script',
  'journal',
  'review',
  'orchestrator',
]

export const ROOMS: readonly Room[] = [
  { name: 'errors', path: 'src/errors/', mayImport: [], packages: [] },
  { name: 'support', path: 'src/support/', mayImport: ['errors'], packages: [] },
  { name: 'judge', path: 'src/judge/', mayImport: ['support'], packages: [] },
  { name: 'protocol', path: 'src/protocol/', mayImport: FOUNDATION, packages: ['zod'] },
  { name: 'sandbox', path: 'src/sandbox/', mayImport: [...FOUNDATION, 'protocol'], packages: [] },
  {
    name: 'engines/local',
    path: 'src/engines/local/',
    mayImport: [...FOUNDATION, 'protocol', 'sandbox'],
    packages: [],
  },
  {
    name: 'engines/docker',
    path: 'src/engines/docker/',
    mayImport: [...FOUNDATION, 'protocol', 'sandbox'],
    packages: ['dockerode'],
  },
  {
    name: 'engines/kubernetes',
    path: 'src/engines/kubernetes/',
    mayImport: [...FOUNDATION, 'protocol', 'sandbox'],
    packages: ['@kubernetes/client-node', 'ws'],
  },
  {
    name: 'engines/pyodide',
    path: 'src/engines/pyodide/',
    mayImport: [...FOUNDATION, 'protocol', 'sandbox'],
    packages: ['pyodide'],
  },
  {
    name: 'environments',
    path: 'src/environments/',
    mayImport: [...FOUNDATION, 'sandbox'],
    packages: ['fflate', 'smol-toml'],
  },
  { name: 'engines', path: 'src/engines/index.ts', mayImport: ['sandbox', ...ENGINES], packages: [] },
  { name: 'pool', path: 'src/pool/', mayImport: [...FOUNDATION, 'sandbox'], packages: [] },
  {
    name: 'tools',
    path: 'src/tools/',
    mayImport: [...FOUNDATION, 'judge', 'protocol', 'redaction'],
    packages: ['@modelcontextprotocol/client', 'ajv', 'ajv-formats', 'mime', 'zod'],
  },
  { name: 'redaction', path: 'src/redaction/', mayImport: ['protocol'], packages: [] },
  { name: 'outcomes', path: 'src/outcomes/', mayImport: ['sandbox'], packages: [] },
  {
    name: 'executor',
    path: 'src/executor/',
    mayImport: [...FOUNDATION, 'protocol', 'sandbox', 'redaction', 'outcomes'],
    packages: ['ws'],
  },
  {
    name: 'workspace',
    path: 'src/workspace/',
    mayImport: [...FOUNDATION, 'protocol', 'sandbox', 'redaction', 'executor', 'telemetry', 'persistence'],
    packages: [],
  },
  {
    name: 'session',
    path: 'src/session/',
    mayImport: [...FOUNDATION, 'protocol', 'executor', 'workspace'],
    packages: ['zod'],
  },
  { name: 'stores', path: 'src/stores/', mayImport: FOUNDATION, packages: ['aws4fetch'] },
  {
    name: 'persistence',
    path: 'src/persistence/',
    mayImport: [...FOUNDATION, 'executor', 'stores'],
    packages: ['zod'],
  },
  { name: 'artifacts', path: 'src/artifacts/', mayImport: [...FOUNDATION, 'stores'], packages: ['mime', 'zod'] },
  { name: 'skills', path: 'src/skills/', mayImport: FOUNDATION, packages: ['yaml'] },
  { name: 'llm', path: 'src/llm/', mayImport: [...FOUNDATION, 'redaction'], packages: [] },
  { name: 'telemetry', path: 'src/telemetry/', mayImport: [], packages: [] },
  { name: 'script', path: 'src/script/', mayImport: [...FOUNDATION, 'protocol', 'tools', 'executor'], packages: [] },
  {
    name: 'journal',
    path: 'src/journal/',
    mayImport: [...FOUNDATION, 'redaction', 'outcomes', 'executor'],
    packages: [],
  },
  { name: 'review', path: 'src/review/', mayImport: [...FOUNDATION, 'tools', 'executor'], packages: ['diff'] },
  {
    name: 'orchestrator',
    path: 'src/orchestrator/',
    mayImport: [
      ...FOUNDATION,
      'sandbox',
      'pool',
      'tools',
      'redaction',
      'outcomes',
      'executor',
      'llm',
      'telemetry',
      'script',
      'journal',
      'review',
      'checkers',
      'typed-result',
    ],
    packages: [],
  },
  // The only files that wire rooms together.
  {
    name: 'checkers',
    path: 'src/checkers.ts',
    mayImport: [...FOUNDATION, 'sandbox', 'environments', 'pool', 'tools', 'outcomes', 'executor'],
    packages: [],
  },
  { name: 'typed-result', path: 'src/typed-result.ts', mayImport: ['outcomes', 'executor', 'tools'], packages: [] },
  {
    name: 'dependencies',
    path: 'src/dependencies.ts',
    mayImport: ['errors', 'sandbox', 'tools', 'executor', 'environments'],
    packages: [],
  },
  {
    name: 'options',
    path: 'src/options/',
    mayImport: [
      ...FOUNDATION,
      'sandbox',
      'environments',
      TABLE,
      'tools',
      'executor',
      'llm',
      'review',
      'orchestrator',
      'typed-result',
      'stores',
      'persistence',
      'workspace',
    ],
    packages: [],
  },
  {
    name: 'engine-choice',
    path: 'src/engine-choice.ts',
    mayImport: ['errors', 'sandbox', TABLE, 'options'],
    packages: [],
  },
  {
    name: 'finish-environment',
    path: 'src/finish-environment.ts',
    mayImport: ['sandbox', 'executor', 'environments'],
    packages: [],
  },
  { name: 'preloads', path: 'src/preloads.ts', mayImport: ['environments'], packages: [] },
  {
    name: 'run-spec',
    path: 'src/run-spec.ts',
    mayImport: ['support', 'sandbox', 'pool', 'environments', 'options'],
    packages: [],
  },
  {
    name: 'warm-sandboxes',
    path: 'src/warm-sandboxes.ts',
    mayImport: ['support', 'sandbox', 'pool', 'executor', 'environments', 'options', 'preloads', 'run-spec'],
    packages: [],
  },
  { name: 'started-run', path: 'src/started-run.ts', mayImport: ['pool', 'executor'], packages: [] },
  {
    name: 'workspaces',
    path: 'src/workspaces.ts',
    mayImport: [
      'errors',
      'support',
      'sandbox',
      'engines',
      'executor',
      'environments',
      'dependencies',
      'options',
      'run-spec',
      'persistence',
      'workspace',
      'telemetry',
    ],
    packages: [],
  },
  {
    name: 'sessions',
    path: 'src/sessions.ts',
    mayImport: ['errors', 'support', 'redaction', 'executor', 'options', 'session', 'workspaces'],
    packages: [],
  },
  {
    name: 'script-runner',
    path: 'src/script-runner.ts',
    mayImport: [
      'support',
      'sandbox',
      'tools',
      'executor',
      'environments',
      'options',
      'checkers',
      'dependencies',
      'finish-environment',
      'run-spec',
      'sessions',
      'started-run',
      'typed-result',
      'warm-sandboxes',
      'workspaces',
      'review',
    ],
    packages: [],
  },
  {
    name: 'task-host',
    path: 'src/task-host.ts',
    mayImport: [
      'errors',
      'support',
      'sandbox',
      'tools',
      'executor',
      'environments',
      'orchestrator',
      'options',
      'checkers',
      'dependencies',
      'run-spec',
      'script-runner',
      'review',
    ],
    packages: [],
  },
  {
    name: 'reviewed-runs',
    path: 'src/reviewed-runs.ts',
    mayImport: [
      'support',
      'tools',
      'outcomes',
      'executor',
      'review',
      'options',
      'checkers',
      'dependencies',
      'script-runner',
    ],
    packages: [],
  },
  {
    name: 'agent-tool',
    path: 'src/agent-tool.ts',
    mayImport: ['support', 'tools', 'executor', 'options', 'reviewed-runs', 'script-runner'],
    packages: [],
  },
  {
    name: 'sandglass',
    path: 'src/sandglass.ts',
    mayImport: [
      'agent-tool',
      'support',
      'sandbox',
      'pool',
      'tools',
      'outcomes',
      'executor',
      'environments',
      'llm',
      'orchestrator',
      'options',
      'checkers',
      'dependencies',
      'engine-choice',
      'run-spec',
      'script-runner',
      'task-host',
      'review',
    ],
    packages: [],
  },
  {
    name: 'root',
    path: 'src/index.ts',
    mayImport: [
      ...LIBRARY,
      'sandglass',
      'options',
      'checkers',
      'dependencies',
      'engine-choice',
      'script-runner',
      'typed-result',
    ],
    packages: [],
  },
  // Doors: nobody imports them.
  {
    name: 'engine',
    path: 'src/engine.ts',
    mayImport: ['errors', 'protocol', 'sandbox', 'engines/docker'],
    packages: [],
  },
  { name: 'review-entry', path: 'src/review.ts', mayImport: ['review', 'tools'], packages: [] },
  {
    name: 'workspace-api',
    path: 'src/workspace-api/',
    mayImport: [
      ...FOUNDATION,
      'sandbox',
      'artifacts',
      'executor',
      'workspace',
      'skills',
      'telemetry',
      'options',
      'sandglass',
    ],
    packages: ['mime', 'zod'],
  },
  {
    name: 'code-agent',
    path: 'src/code-agent/',
    mayImport: [
      ...FOUNDATION,
      'sandbox',
      'engines',
      'environments',
      'tools',
      'redaction',
      'executor',
      'workspace',
      'persistence',
      'llm',
      'review',
      'options',
      'checkers',
      'dependencies',
      'script-runner',
      'sandglass',
    ],
    packages: ['@langchain/core', '@langchain/langgraph'],
  },
  { name: 'testing', path: 'src/testing/', mayImport: [...LIBRARY, 'sandglass'], packages: [] },
  // A program, not a module: `bin` starts its door.
  {
    name: 'cli',
    path: 'src/cli/',
    door: 'main.ts',
    mayImport: [...LIBRARY, 'sandglass', 'code-agent', 'root'],
    packages: ['@lezer/highlight', '@lezer/python', '@langchain/langgraph-checkpoint-sqlite'],
  },
]

/**
 * Permitted violations: the module that a user names is imported by its name, and Pyodide, in its own process, by the
 * path that the host found.
 */
export const EXCEPTIONS: readonly string[] = [
  'src/cli/tools-file.ts imports a computed specifier',
  'src/engines/pyodide/guest/interpreter.ts imports a computed specifier',
  // The module of a question is given by its address.
  'src/judge/child.ts imports a computed specifier',
]

/** Large packages, which only the room that needs them may import, and only lazily. */
export const HEAVY_PACKAGES: readonly string[] = [
  'dockerode',
  'pyodide',
  '@modelcontextprotocol/client',
  'ajv',
  'ajv-formats',
  'yaml',
  '@langchain/core',
  '@langchain/langgraph',
]
