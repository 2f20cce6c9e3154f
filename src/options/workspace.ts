import { SandglassError } from '../errors/index.ts'
import type { FilesInput } from '../executor/index.ts'
import { checkWorkspaceId } from '../persistence/index.ts'
import type { ResourceLimits } from '../sandbox/index.ts'
import type { Store } from '../stores/index.ts'
import { formatValue, refuseUnknown } from '../support/index.ts'
import { unknownValueError } from './unknown-value.ts'

/** Options of `Sandglass.workspace`. */
export interface WorkspaceOptions {
  /** Files that it has from the start, by path. */
  readonly files?: FilesInput
  /** Packages that its scripts and programs can import, in place of those of `createSandglass`. */
  readonly dependencies?: readonly string[]
  /** Packages that a model named, added to the others, as in the options of a run. */
  readonly untrustedDependencies?: readonly string[]
  /** Limits of everything in it together, in place of those of `createSandglass`. */
  readonly limits?: ResourceLimits
  /**
   * The place of its files. `memory`, the default: they count as memory. `directory`, on a disk of the host, is refused with
   * `limit_not_enforceable`, because no engine can bound the size of a directory (docs/limitations/workspaces.md).
   */
  readonly disk?: 'memory' | 'directory'
  /**
   * Closes it when nobody has used it for this many seconds, from 0.1 to 604,800 (a week); default: never. Each call that has
   * not settled counts as use, and each byte that a started program or a connection sends or receives; a silent program does not.
   */
  readonly idleTimeoutSec?: number
  /** The name of the workspace in its spans (`exec_id`). It need not be unique. Default: its id. */
  readonly executionId?: string
  /**
   * Keeps its files in `store` under this id, of 1 to 128 letters, digits, `.`, `_` and `-`. It opens with the files of the store, before
   * `files` are added. It is synchronised when a script, a program or an operation on files ends, every 30 s while one runs, and when it is closed. One
   * owner at a time can have it open.
   */
  readonly persist?: string
  /** The store of `persist`. */
  readonly store?: Store
  /** With `persist`: how many seconds to wait until the current owner closes it, from 0 to 604,800. Default 0. */
  readonly waitSec?: number
  /**
   * With `persist`: called for a synchronisation that failed and that no call waits for. The next one tries again. If it throws, or its
   * promise rejects, the process gets the warning `SANDGLASS_ON_SYNC_ERROR`.
   */
  readonly onSyncError?: (error: unknown) => void
  /** Closes it, also while it is being opened. */
  readonly signal?: AbortSignal
}

/**
 * Checks the options of `workspace`.
 * @throws TypeError for an option that does not exist, SandglassError `invalid_request` for an invalid time and an
 * id that is not a string, `limit_not_enforceable` for a disk without a bound.
 */
export function checkWorkspaceOptions(options: WorkspaceOptions): void {
  refuseUnknown('workspace', options, WORKSPACE_OPTIONS)
  checkDisk(options.disk)
  checkPersistence(options)
  const { idleTimeoutSec: sec, executionId } = options
  if (executionId !== undefined && typeof executionId !== 'string')
    throw new SandglassError('invalid_request', `executionId: ${formatValue(executionId)} is not a string`)
  if (sec === undefined || (typeof sec === 'number' && sec >= MIN_IDLE_SEC && sec <= MAX_IDLE_SEC)) return
  throw new SandglassError(
    'invalid_request',
    `idleTimeoutSec: ${formatValue(sec)} is not a number of seconds from ${MIN_IDLE_SEC} to ${MAX_IDLE_SEC}`,
  )
}

function checkDisk(disk: unknown): void {
  if (disk === undefined || disk === 'memory') return
  if (disk !== 'directory') throw unknownValueError('disk', 'place', disk, ['memory', 'directory'])
  throw new SandglassError(
    'limit_not_enforceable',
    "disk: 'directory': no engine can bound the size of a directory, which takes project quotas or images that only root mounts. Leave it " +
      'out: files are in memory, up to limits.diskBytes; addInput() of the engine local shows a large file without a copy in memory',
  )
}

function checkPersistence({ persist, store, waitSec, onSyncError }: WorkspaceOptions): void {
  const refuse = (problem: string): never => {
    throw new SandglassError('invalid_request', problem)
  }
  if (persist === undefined) {
    const given = Object.entries({ store, waitSec, onSyncError }).find(([, value]) => value !== undefined)
    if (given !== undefined) refuse(`${given[0]}: requires the option persist, the id of the workspace`)
    return
  }
  checkWorkspaceId(persist)
  if (typeof store?.write !== 'function' || typeof store.put !== 'function')
    refuse('persist: requires the option store, such as storeInDirectory(path) of sandglass/artifacts')
  if (waitSec !== undefined && !(typeof waitSec === 'number' && waitSec >= 0 && waitSec <= MAX_IDLE_SEC))
    refuse(`waitSec: ${formatValue(waitSec)} is not a number of seconds from 0 to ${MAX_IDLE_SEC}`)
  if (onSyncError !== undefined && typeof onSyncError !== 'function')
    refuse(`onSyncError: ${formatValue(onSyncError)} is not a function`)
}

const WORKSPACE_OPTIONS: readonly (keyof WorkspaceOptions)[] = [
  'files',
  'dependencies',
  'untrustedDependencies',
  'limits',
  'disk',
  'idleTimeoutSec',
  'executionId',
  'persist',
  'store',
  'waitSec',
  'onSyncError',
  'signal',
]
const MIN_IDLE_SEC = 0.1
const MAX_IDLE_SEC = 7 * 86_400
