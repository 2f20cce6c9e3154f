import { FOUNDATION, LIBRARY, type Room, ROOMS } from '../../test/unit/architecture.table.ts'
import { code, markdownTable } from './table.ts'

/** The contents of each room, by its name in the table of imports. */
const HOLDS: Readonly<Record<string, string>> = {
  errors: '`SandglassError` and its codes',
  support: 'small functions that several rooms need and none owns',
  judge: 'the process that judges hostile data, with a limit of memory and a deadline for each question',
  protocol: 'the wire: frames, their schemas, the line splitter, caps',
  sandbox: 'the contract of engines, limits, requirements, the input and the checks of a harness',
  'engines/local': 'bubblewrap, uids, control groups, the state directory, probes',
  'engines/docker': "containers over Docker's API, demultiplexer, images, mounts, probes",
  'engines/pyodide':
    'Python in WebAssembly: a broker on the host, the snapshot, probes; `guest/` is the program of the child process',
  'engines/kubernetes': "pods over Kubernetes' API, the channel by `exec`, probes",
  environments:
    'packages for sandboxes: requirements, the installer uv, the cache of read-only directories, trust in names',
  engines: 'the table of engines',
  pool: 'leases of warm sandboxes; it knows no engine',
  tools: 'tools of the host and of other libraries, Python tools, their schemas, signatures, stubs and calls',
  redaction: 'secrets in all their forms, taken out of text and data',
  outcomes: 'the tables of outcomes: statuses, error kinds, causes, warnings and exit codes, of runs and of tasks',
  executor: 'one run in one sandbox, and its result; it knows no engine',
  workspace: 'many activities in one sandbox: its channel, scripts, programs, files, connections; it knows no engine',
  stores: 'places where bytes last: content by its digest, and small records that change by condition',
  session: 'sessions: one activity that lasts, and its cells, one at a time',
  persistence: 'workspaces in a store: whose they are, and the files of each state',
  artifacts: 'the entry `sandglass/artifacts`: named, versioned results of sessions, and their context',
  skills: 'skills of the host: the front matter and the instructions of their `SKILL.md`',
  llm: 'models as one function; models of libraries and addresses; recorder and replay',
  telemetry: 'channels for logs, spans of workspaces, trace context, log adapter',
  script: 'prompts, scripts out of answers, feedback out of failures',
  journal: 'events of a task, stores, records as views of events',
  review: 'proposals of scripts, the decisions of reviewers about them',
  orchestrator: 'from a task to an answer, in PLAN and INTERACTIVE mode',
  checkers: 'the sandboxes that check scripts',
  dependencies: 'the packages that a run asks for, and the environment that holds them',
  'finish-environment': 'byte code and home files of an environment, made in a sandbox',
  preloads: 'which modules recent scripts imported, and when to load others ahead',
  'task-host': 'checks and runs the scripts of a task, with the packages that they name',
  'agent-tool': 'the tool of `asTool`: what its scripts have, and where they run',
  'reviewed-runs': 'the scripts of a tool of an agent: checked, shown to a reviewer, run',
  'run-spec': 'what a run asks of a sandbox: its limits, its spec, its place in the pool',
  'warm-sandboxes': 'lends warm sandboxes by limits and packages, with what recent scripts imported loaded ahead',
  'started-run': 'a run that is ready to begin: awaited, or read as events',
  sessions: 'opens sessions, and runs cells in them',
  workspaces: 'makes workspaces, closes them, and lends them to scripts',
  'script-runner': 'checks scripts and runs them in leased sandboxes',
  'typed-result': 'a result checked by a schema',
  options: 'the options of every method, and their checks',
  'engine-choice': 'the choice of an engine',
  sandglass: 'the library: it wires the rooms',
  root: 'the exports of the package',
  'review-entry': 'the entry `sandglass/review`: types of reviews of scripts and of approvals of calls',
  engine: 'the entry `sandglass/engine`, for authors of engines',
  'workspace-api':
    'the entry `sandglass/workspaces`: workspaces, staging, outputs and executors under the names of the Go package codeexecutor',
  'code-agent':
    'the entry `sandglass/code-agent`: the replies of a code agent, its instructions, and executors of its scripts',
  testing: 'helpers for tests of users and engines: scripted models, the conformance suite',
  cli: 'the command line',
}

/**
 * The table of rooms: contents and imports.
 * @throws Error for a room without a line above, and for a line without a room.
 */
export function roomsTable(rooms: readonly Room[] = ROOMS): string {
  const names = rooms.map(({ name }) => name)
  const gone = Object.keys(HOLDS).filter((name) => !names.includes(name))
  if (gone.length > 0) throw new Error(`there is no room ${gone.join(', ')}`)
  return markdownTable(
    ['room', 'holds', 'may import'],
    rooms.map((room) => [code(room.path), holdsOf(room), importsOf(room)]),
  )
}

function holdsOf({ name }: Room): string {
  const holds = HOLDS[name]
  if (holds === undefined) throw new Error(`scripts/docs/rooms.ts does not say what the room ${name} holds`)
  return holds
}

function importsOf({ name, mayImport }: Room): string {
  const above = LIBRARY.filter((other) => other !== name)
  const groups = [
    { word: 'every room of the library', names: above },
    { word: 'foundation', names: FOUNDATION },
  ]
  const group = groups.find(({ names }) => names.every((other) => mayImport.includes(other)))
  const others = mayImport.filter((other) => group === undefined || !group.names.includes(other))
  return [...(group === undefined ? [] : [group.word]), ...others.map(code)].join(', ') || 'nothing'
}
