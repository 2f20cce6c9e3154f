import { SandglassError } from '../errors/index.ts'
import { UsageError } from './failure.ts'
import { sizeText } from './sizes.ts'

const KEYS: readonly [string, string][] = [
  ['limits.executionTimeoutSec', 'timeout_s'],
  ['memoryBytes', 'memory_bytes'],
  ['diskBytes', 'disk_bytes'],
  ['maxOutputBytes', 'max_output_bytes'],
  ['requiredSecrets', 'required_secrets'],
  ['executionId', 'execution_id'],
]
const FLAGS: readonly [string, string][] = [
  ['limits.executionTimeoutSec', '--timeout'],
  ['limits.maxToolWaitSec', '--max-tool-wait'],
  ['limits.memoryBytes', '--memory'],
  ['limits.maxOutputBytes', '--max-output'],
  ['limits.cpus', '--cpus'],
  ['limits.pids', '--pids'],
  ['requiredSecrets', '--secret'],
  ['call resume({ takeOver: true })', 'add --take-over'],
]

/** The library's names in messages about a request, as the caller wrote them: keys of a line, or flags. */
export function reword(error: unknown, as: 'keys' | 'flags'): unknown {
  if (!(error instanceof SandglassError) || error instanceof UsageError) return error
  const message = rewordText(error.message, as)
  return message === error.message ? error : new SandglassError(error.code, message, { cause: error })
}

/** Replaces the library's names in a text as {@link reword} does. */
export function rewordText(text: string, as: 'keys' | 'flags'): string {
  const names = as === 'keys' ? KEYS : FLAGS
  return readable(
    [...names, ...REMEDIES].reduce((so, [from, to]) => so.replaceAll(from, to), text),
    as,
  )
}

/** Remedies: as the library words them, and as the command line does. */
const REMEDIES: readonly [string, string][] = [
  [
    "name them in dependencies yourself, or set environments: { fromScript: 'declared' }",
    'name them with --with, or run the script as a file',
  ],
  ['name them in dependencies yourself, or list them in environments.allow', 'name them with --with'],
  [
    'raise limits.diskBytes, or use a workspace: its addInput() mounts large files without a copy',
    'the library takes larger ones (limits.diskBytes, or addInput() of a workspace)',
  ],
  // Only --skill shows a directory of the host, and always read-only.
  ['readOnly: the engine', '--skill: the engine'],
  ['use the engine local, or leave readOnly out', 'take --engine local'],
  ['name its directory with environments.wheels', 'name its directory with UV_FIND_LINKS'],
  ['name another directory with environments.cacheDir', 'name another directory with SANDGLASS_CACHE_DIR'],
]

const BYTES_OUT_OF_RANGE = /^(\S+): (\d+) is not a whole number of bytes from (\d+) to (\d+)$/

/** A number of bytes out of range, with units and with what to write instead. */
function readable(message: string, as: 'keys' | 'flags'): string {
  const [, name = '', ...found] = BYTES_OUT_OF_RANGE.exec(message) ?? []
  const [given = 0, min = 0, max = 0] = found.map(Number)
  if (name === '' || (given >= min && given <= max)) return message
  const isLittle = given < min
  const bound = isLittle ? min : max
  const what = isLittle ? 'too little; the least is' : 'too much; the most is'
  if (as === 'keys') return `${name}: ${given} is ${what} ${bound}${inBinaryUnit(bound)}`
  return `${name}: ${sizeText(given)} is ${what} ${sizeText(bound)}: write ${name} ${sizeText(bound)} or ${isLittle ? 'more' : 'less'}`
}

function inBinaryUnit(bytes: number): string {
  const [, digits, unit] = /^(\d+)([kmgt])$/.exec(sizeText(bytes)) ?? []
  return unit === undefined ? '' : ` (${digits} ${unit.toUpperCase()}iB)`
}
