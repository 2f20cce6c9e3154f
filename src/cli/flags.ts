import { ENGINES, type EngineTable } from '../engines/index.ts'
import { didYouMean, nearest } from '../support/index.ts'
import type { FlagSpec } from './args.ts'

type Specs = Readonly<Record<string, FlagSpec>>

const COMMON: Specs = { '--help': {}, '--json': {} }

/** The flags of commands in which a model writes the scripts. */
const MODEL: Specs = {
  '--model': { value: 'MODEL' },
  '--model-url': { value: 'URL' },
  '--record': { value: 'FILE' },
  '--review': { value: 'always|never' },
}

/** The flags that `run`, `batch` and `solve` share, without those of the engines. */
const SANDBOX: Specs = {
  ...COMMON,
  '--policy': { value: 'off|standard|strict' },
  '--timeout': { value: 'S' },
  '--max-tool-wait': { value: 'S' },
  '--memory': { value: 'SIZE' },
  '--cpus': { value: 'N' },
  '--pids': { value: 'N' },
  '--max-output': { value: 'SIZE' },
  '--require': { value: 'ITEM,…' },
  '--tools': { value: 'FILE' },
  '--tools-dir': { value: 'DIR' },
}
const LIMITS: readonly string[] = ['--memory', '--cpus', '--pids', '--require']
/** The flags that `exec` and `shell` share. */
const PROGRAM: Specs = {
  '--store': { value: 'DIR' },
  ...Object.fromEntries(LIMITS.map((flag) => [flag, SANDBOX[flag] ?? {}])),
  '--help': {},
  '--with': { value: 'PKG' },
  '--env': { value: 'NAME=VALUE' },
  '--secret': { value: 'NAME' },
  '--cwd': { value: 'DIR' },
  '--file': { value: 'HOST[:PATH]' },
}
const NOT_OF_AGENTS: readonly string[] = ['--policy', '--require', '--tools-dir']
const WITH: Specs = { '--with': { value: 'PKG' } }
/** Files in, and files out. */
const FILES: Specs = {
  '--file': { value: 'HOST[:PATH]' },
  '--collect': { value: 'GLOB' },
  '--save': { value: 'DIR' },
  '--overwrite': {},
}
const STORE: Specs = { '--store': { value: 'DIR' } }
/** The cluster of the engine kubernetes, for commands that start no sandbox. */
const CLUSTER: Specs = {
  '--kubeconfig': { value: 'FILE' },
  '--context': { value: 'NAME' },
  '--namespace': { value: 'NAME' },
}
const MODE: Specs = { '--mode': { value: 'interactive|plan' } }
const JOURNAL: Specs = { '--journal': { value: 'PATH' } }

/** A command of this version. */
export type CommandName =
  | 'run'
  | 'exec'
  | 'shell'
  | 'repl'
  | 'batch'
  | 'check'
  | 'solve'
  | 'agent'
  | 'env'
  | 'artifacts'
  | 'workspaces'
  | 'runs'
  | 'show'
  | 'doctor'
  | 'ps'
  | 'prune'

/** The flags of each command, without those of the engines. */
const OWN_FLAGS: Readonly<Record<CommandName, Specs>> = {
  run: {
    ...SANDBOX,
    ...MODE,
    ...WITH,
    '-c': { value: 'CODE', takesAny: true },
    '--events': {},
    '--secret': { value: 'NAME' },
    '--input': { value: 'NAME=JSON' },
    '--skill': { value: 'DIR' },
    '--workspace': { value: 'ID' },
    ...STORE,
    '--stdin': { value: 'FILE' },
    ...FILES,
  },
  exec: { ...PROGRAM, '--new': {}, '--json': {}, '--timeout': { value: 'S' }, '--tty': {} },
  shell: PROGRAM,
  repl: {
    ...COMMON,
    ...WITH,
    ...STORE,
    ...Object.fromEntries([...LIMITS, '--timeout', '--tools'].map((flag) => [flag, SANDBOX[flag] ?? {}])),
    '--workspace': { value: 'ID' },
    '--save': { value: 'DIR' },
    '--overwrite': {},
  },
  batch: {
    ...SANDBOX,
    ...MODE,
    ...WITH,
    '--out': { value: 'FILE' },
    '--concurrency': { value: 'N' },
    '--pool-size': { value: 'N' },
    '--max-uses': { value: 'N' },
  },
  check: {
    ...COMMON,
    ...WITH,
    '--mode': { value: 'interactive|plan' },
    '--policy': { value: 'standard|strict' },
    '--tools': { value: 'FILE' },
    '--tools-dir': { value: 'DIR' },
    '--input': { value: 'NAME[=JSON]' },
  },
  solve: {
    ...SANDBOX,
    ...WITH,
    ...JOURNAL,
    '--keep-prompts': {},
    '--events': {},
    ...MODEL,
    '--interactive': {},
    '--session': {},
    '--on-error': { value: 'keep|rollback' },
    '--output': { value: 'SCHEMA' },
    '--allow-module': { value: 'NAME' },
    '--max-retries': { value: 'N' },
    '--max-steps': { value: 'N' },
    '--budget-tokens': { value: 'N' },
    '--budget-seconds': { value: 'S' },
    '--budget-cost': { value: 'N' },
    '--pricing': { value: 'FILE' },
    '--secret': { value: 'NAME' },
    '--input': { value: 'NAME=JSON' },
    ...FILES,
  },
  agent: {
    ...Object.fromEntries(Object.entries(SANDBOX).filter(([flag]) => !NOT_OF_AGENTS.includes(flag))),
    ...WITH,
    ...MODEL,
    '--resume': { value: 'ID' },
    '--take-over': {},
    '--file': { value: 'HOST[:PATH]' },
  },
  env: COMMON,
  artifacts: {
    ...COMMON,
    '--session': { value: 'ID' },
    ...STORE,
    '--save': { value: 'FILE' },
    '--overwrite': {},
  },
  workspaces: { ...COMMON, ...STORE },
  runs: { ...COMMON, ...JOURNAL, '--limit': { value: 'N' } },
  show: { ...COMMON, ...JOURNAL, '--html': {}, '--out': { value: 'FILE' } },
  doctor: COMMON,
  ps: { ...COMMON, '--engine': { value: 'NAME' }, ...CLUSTER },
  prune: { ...COMMON, '--engine': { value: 'NAME' }, ...CLUSTER },
}

/** The commands that start a sandbox, and so take the flags of the engines. */
const STARTS_SANDBOX: readonly CommandName[] = [
  'run',
  'exec',
  'shell',
  'repl',
  'batch',
  'check',
  'solve',
  'agent',
  'env',
  'doctor',
]

/** Every command. */
export const COMMANDS: readonly CommandName[] = Object.keys(OWN_FLAGS) as CommandName[]

/** The flags of each command with these engines. */
export function flagsFor(engines: EngineTable): Readonly<Record<CommandName, Specs>> {
  const flags: Specs = {
    '--engine': { value: ['auto', ...Object.keys(engines)].join('|') },
    ...Object.fromEntries(Object.values(engines).flatMap((row) => Object.entries(row.flags))),
  }
  const all = COMMANDS.map((name) => [
    name,
    STARTS_SANDBOX.includes(name) ? { ...flags, ...OWN_FLAGS[name] } : OWN_FLAGS[name],
  ])
  return Object.fromEntries(all) as Record<CommandName, Specs>
}

/** The flags of each command. */
export const FLAGS: Readonly<Record<CommandName, Specs>> = flagsFor(ENGINES)

/** Every flag of any command. */
export const ALL_FLAGS: ReadonlySet<string> = new Set(Object.values(FLAGS).flatMap((specs) => Object.keys(specs)))

/** The message for a flag that a command does not have: which one does, or which flag was meant. */
export function unknownFlag(name: string, command: CommandName, engines: EngineTable = ENGINES): string {
  const flags = flagsFor(engines)
  const commandsWith = (flag: string): CommandName[] => COMMANDS.filter((one) => Object.hasOwn(flags[one], flag))
  const help = `See sandglass ${command} --help`
  const owners = commandsWith(name)
  if (owners.length > 0) {
    return `${command} has no flag ${name}; ${formatList(owners)} ${owners.length === 1 ? 'has' : 'have'} it. ${help}`
  }
  const own = didYouMean(name, Object.keys(flags[command]).filter(isLong))
  if (own !== '') return `no flag ${name}.${own}`
  const other = nearest(name, [...ALL_FLAGS].filter(isLong))
  return other === undefined
    ? `no flag ${name}. ${help}`
    : `no flag ${name}. Did you mean ${JSON.stringify(other)} of ${formatList(commandsWith(other))}?`
}

/** Any letter is one edit away from `-c`. */
function isLong(flag: string): boolean {
  return flag.startsWith('--')
}

/** `run`, `run and batch`, `run, batch and check`. */
function formatList(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}
