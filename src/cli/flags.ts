import type { FlagSpec } from './args.ts'

type Specs = Readonly<Record<string, FlagSpec>>

const COMMON: Specs = { '--help': {}, '--json': {} }

/** What `run` and `batch` share: the engine, and how each script is run. */
const SANDBOX: Specs = {
  ...COMMON,
  '--engine': { value: 'auto|local' },
  '--image': { value: 'REF' },
  '--mode': { value: 'interactive|plan' },
  '--policy': { value: 'off' },
  '--timeout': { value: 'S' },
  '--memory': { value: 'SIZE' },
  '--cpus': { value: 'N' },
  '--pids': { value: 'N' },
  '--max-output': { value: 'SIZE' },
  '--require': { value: 'ITEM,…' },
  '--tools': { value: 'FILE' },
  '--tools-dir': { value: 'DIR' },
}

/** A command of this version. */
export type CommandName = 'run' | 'batch' | 'doctor' | 'ps' | 'prune'

/** The flags of each command. */
export const FLAGS: Readonly<Record<CommandName, Specs>> = {
  run: {
    ...SANDBOX,
    '--events': {},
    '--secret': { value: 'NAME' },
    '--input': { value: 'NAME=JSON' },
    '--file': { value: 'HOST[:PATH]' },
    '--collect': { value: 'GLOB' },
    '--save': { value: 'DIR' },
  },
  batch: {
    ...SANDBOX,
    '--out': { value: 'FILE' },
    '--concurrency': { value: 'N' },
    '--pool-size': { value: 'N' },
    '--max-uses': { value: 'N' },
  },
  doctor: COMMON,
  ps: COMMON,
  prune: COMMON,
}

/** Every command. */
export const COMMANDS: readonly CommandName[] = Object.keys(FLAGS) as CommandName[]
