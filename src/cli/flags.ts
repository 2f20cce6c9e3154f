import { didYouMean, nearest } from '../support/index.ts'
import type { FlagSpec } from './args.ts'

type Specs = Readonly<Record<string, FlagSpec>>

const COMMON: Specs = { '--help': {}, '--json': {} }

/** What `run`, `batch` and `solve` share: the engine, and how each script is run. */
const SANDBOX: Specs = {
  ...COMMON,
  '--engine': { value: 'auto|local|docker|pyodide' },
  '--image': { value: 'REF' },
  '--policy': { value: 'off|standard|strict' },
  '--timeout': { value: 'S' },
  '--memory': { value: 'SIZE' },
  '--cpus': { value: 'N' },
  '--pids': { value: 'N' },
  '--max-output': { value: 'SIZE' },
  '--require': { value: 'ITEM,…' },
  '--tools': { value: 'FILE' },
  '--tools-dir': { value: 'DIR' },
}
const MODE: Specs = { '--mode': { value: 'interactive|plan' } }
const JOURNAL: Specs = { '--journal': { value: 'PATH' } }

/** A command of this version. */
export type CommandName = 'run' | 'batch' | 'check' | 'solve' | 'runs' | 'show' | 'doctor' | 'ps' | 'prune' | 'image'

/** The flags of each command. */
export const FLAGS: Readonly<Record<CommandName, Specs>> = {
  run: {
    ...SANDBOX,
    ...MODE,
    '--events': {},
    '--secret': { value: 'NAME' },
    '--input': { value: 'NAME=JSON' },
    '--file': { value: 'HOST[:PATH]' },
    '--collect': { value: 'GLOB' },
    '--save': { value: 'DIR' },
  },
  batch: {
    ...SANDBOX,
    ...MODE,
    '--out': { value: 'FILE' },
    '--concurrency': { value: 'N' },
    '--pool-size': { value: 'N' },
    '--max-uses': { value: 'N' },
  },
  check: {
    ...COMMON,
    '--engine': { value: 'auto|local|docker|pyodide' },
    '--image': { value: 'REF' },
    '--mode': { value: 'interactive|plan' },
    '--policy': { value: 'standard|strict' },
    '--tools': { value: 'FILE' },
    '--tools-dir': { value: 'DIR' },
    '--input': { value: 'NAME[=JSON]' },
  },
  solve: {
    ...SANDBOX,
    ...JOURNAL,
    '--events': {},
    '--model': { value: 'MODEL' },
    '--model-url': { value: 'URL' },
    '--record': { value: 'FILE' },
    '--interactive': {},
    '--max-retries': { value: 'N' },
    '--max-steps': { value: 'N' },
    '--budget-tokens': { value: 'N' },
    '--budget-seconds': { value: 'S' },
    '--secret': { value: 'NAME' },
    '--input': { value: 'NAME=JSON' },
  },
  runs: { ...COMMON, ...JOURNAL, '--limit': { value: 'N' } },
  show: { ...COMMON, ...JOURNAL, '--html': {}, '--out': { value: 'FILE' } },
  doctor: COMMON,
  ps: COMMON,
  prune: COMMON,
  image: {
    ...COMMON,
    '--tag': { value: 'NAME' },
    '--suite': { value: 'SUITE' },
    '--mirror': { value: 'URL' },
    '--fresh': {},
  },
}

/** Every command. */
export const COMMANDS: readonly CommandName[] = Object.keys(FLAGS) as CommandName[]

/** The message for a flag that a command does not have: which one does, or which flag was meant. */
export function unknownFlag(name: string, command: CommandName): string {
  const help = `See sandglass ${command} --help`
  const owners = ownersOf(name)
  if (owners !== '') return `${command} has no flag ${name}; ${owners}. ${help}`
  const own = didYouMean(name, Object.keys(FLAGS[command]))
  if (own !== '') return `no flag ${name}.${own}`
  const other = nearest(name, ALL_FLAGS)
  return other === undefined
    ? `no flag ${name}. ${help}`
    : `no flag ${name}. Did you mean ${JSON.stringify(other)} of ${listed(commandsWith(other))}?`
}

/** Every flag of any command. */
export const ALL_FLAGS: ReadonlySet<string> = new Set(Object.values(FLAGS).flatMap((specs) => Object.keys(specs)))

function ownersOf(flag: string): string {
  const commands = commandsWith(flag)
  return commands.length === 0 ? '' : `${listed(commands)} ${commands.length === 1 ? 'has' : 'have'} it`
}

function commandsWith(flag: string): CommandName[] {
  return COMMANDS.filter((command) => Object.hasOwn(FLAGS[command], flag))
}

/** `run`, `run and batch`, `run, batch and check`. */
function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}
