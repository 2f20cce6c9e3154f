/** One room of `src/` and what it may import. Imports point down; ARCHITECTURE.md shows the same table. */
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

const GROUND = ['errors', 'support']
const ENGINES = ['engines/local', 'engines/docker', 'engines/pyodide']
/** What the rooms export to the user: everything below the doors. */
const WORKING = [...GROUND, 'protocol', 'sandbox', ...ENGINES, 'pool', 'tools', 'executor']
const LIBRARY = [...WORKING, 'llm', 'telemetry', 'script', 'journal', 'orchestrator']

export const ROOMS: readonly Room[] = [
  { name: 'errors', path: 'src/errors/', mayImport: [], packages: [] },
  { name: 'support', path: 'src/support/', mayImport: [], packages: [] },
  { name: 'protocol', path: 'src/protocol/', mayImport: GROUND, packages: ['zod'] },
  { name: 'sandbox', path: 'src/sandbox/', mayImport: [...GROUND, 'protocol'], packages: [] },
  {
    name: 'engines/local',
    path: 'src/engines/local/',
    mayImport: [...GROUND, 'protocol', 'sandbox'],
    packages: [],
  },
  {
    name: 'engines/docker',
    path: 'src/engines/docker/',
    mayImport: [...GROUND, 'protocol', 'sandbox'],
    packages: ['dockerode'],
  },
  {
    name: 'engines/pyodide',
    path: 'src/engines/pyodide/',
    mayImport: [...GROUND, 'protocol', 'sandbox'],
    packages: ['pyodide'],
  },
  { name: 'pool', path: 'src/pool/', mayImport: [...GROUND, 'sandbox'], packages: [] },
  {
    name: 'tools',
    path: 'src/tools/',
    mayImport: [...GROUND, 'protocol'],
    packages: ['@modelcontextprotocol/client', 'ajv', 'ajv-formats', 'zod'],
  },
  { name: 'executor', path: 'src/executor/', mayImport: [...GROUND, 'protocol', 'sandbox'], packages: [] },
  { name: 'llm', path: 'src/llm/', mayImport: ['errors', 'executor'], packages: [] },
  { name: 'telemetry', path: 'src/telemetry/', mayImport: [], packages: [] },
  { name: 'script', path: 'src/script/', mayImport: [...GROUND, 'protocol', 'tools', 'executor'], packages: [] },
  { name: 'journal', path: 'src/journal/', mayImport: [...GROUND, 'executor'], packages: [] },
  {
    name: 'orchestrator',
    path: 'src/orchestrator/',
    mayImport: [
      ...GROUND,
      'sandbox',
      'pool',
      'tools',
      'executor',
      'llm',
      'telemetry',
      'script',
      'journal',
      'checkers',
      'typed-result',
    ],
    packages: [],
  },
  // The only files that wire rooms together.
  {
    name: 'checkers',
    path: 'src/checkers.ts',
    mayImport: [...GROUND, 'sandbox', 'pool', 'tools', 'executor'],
    packages: [],
  },
  { name: 'typed-result', path: 'src/typed-result.ts', mayImport: ['executor'], packages: [] },
  {
    name: 'options',
    path: 'src/options.ts',
    mayImport: [...GROUND, 'sandbox', ...ENGINES, 'tools', 'executor', 'llm', 'orchestrator', 'typed-result'],
    packages: [],
  },
  {
    name: 'engine-choice',
    path: 'src/engine-choice.ts',
    mayImport: ['errors', 'sandbox', ...ENGINES, 'options'],
    packages: [],
  },
  {
    name: 'sandglass',
    path: 'src/sandglass.ts',
    mayImport: [
      'support',
      'sandbox',
      'pool',
      'tools',
      'executor',
      'llm',
      'orchestrator',
      'options',
      'checkers',
      'engine-choice',
      'typed-result',
    ],
    packages: [],
  },
  {
    name: 'root',
    path: 'src/index.ts',
    mayImport: [...LIBRARY, 'sandglass', 'options', 'checkers', 'engine-choice', 'typed-result'],
    packages: [],
  },
  // Doors: nobody imports them.
  { name: 'testing', path: 'src/testing/', mayImport: [...LIBRARY, 'sandglass'], packages: [] },
  // A program, not a module: its door is what `bin` starts.
  { name: 'cli', path: 'src/cli/', door: 'main.ts', mayImport: [...LIBRARY, 'sandglass', 'root'], packages: [] },
]

/**
 * Breaches that are meant: the module that a user names is imported by its name, and Pyodide, in its own process, by the
 * path that the host found.
 */
export const EXCEPTIONS: readonly string[] = [
  'src/cli/tools-file.ts imports a computed specifier',
  'src/engines/pyodide/guest/interpreter.ts imports a computed specifier',
]

/** Clients too heavy for everyone: only ever imported lazily, inside the room that needs them. */
export const HEAVY_PACKAGES: readonly string[] = [
  'dockerode',
  'pyodide',
  '@kubernetes/client-node',
  '@langchain/core',
  '@langchain/langgraph',
  '@modelcontextprotocol/client',
  'ai',
  'ajv',
  'ajv-formats',
]
