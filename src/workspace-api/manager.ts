import { SandglassError } from '../errors/index.ts'
import type { WorkspaceOptions } from '../options/index.ts'
import type { Sandglass } from '../sandglass.ts'
import { formatValue, refuseUnknown } from '../support/index.ts'
import { dirOut, dirRuns, dirSkills, dirWork } from './constants.ts'
import type { CallOptions, Capabilities, Workspace, WorkspaceManager, WorkspacePolicy } from './contract.ts'
import { invalid } from './invalid.ts'
import { markUpdated } from './metadata.ts'
import { OpenWorkspace, type OpenWorkspaces } from './open-workspaces.ts'
import { safeExecId } from './refs.ts'

const LAYOUT = [dirSkills, dirWork, dirRuns, dirOut]
const PATH = '/workspace'
const MAX_EXEC_ID = 60
/** The instance of a workspace whose sandbox has ended. */
const GONE = 'gone'

/** The part of a Sandglass that an engine uses. */
export type WorkspaceSource = Pick<Sandglass, 'workspace' | 'report'>

/** Makes workspaces from a Sandglass. */
export class SandglassManager implements WorkspaceManager {
  readonly #source: WorkspaceSource
  readonly #capabilities: Capabilities
  readonly #open: OpenWorkspaces
  readonly #options: WorkspaceOptions

  constructor(source: WorkspaceSource, capabilities: Capabilities, open: OpenWorkspaces, options: WorkspaceOptions) {
    this.#source = source
    this.#capabilities = capabilities
    this.#open = open
    this.#options = options
  }

  async createWorkspace(
    execId: string,
    policy: WorkspacePolicy = {},
    { signal }: CallOptions = {},
  ): Promise<Workspace> {
    if (typeof execId !== 'string') throw invalid('execId', `${formatValue(execId)} is not a string`)
    const options = { ...this.#options, ...this.#optionsOf(policy) }
    const sandbox = await this.#openSandbox(execId === '' ? options : { ...options, executionId: execId }, signal)
    // The sandbox's own id keeps workspaces with the same execution id distinct.
    const id = [safeExecId(execId).slice(0, MAX_EXEC_ID), sandbox.id].filter((part) => part !== '').join('.')
    const workspace = new OpenWorkspace(id, execId, PATH, sandbox)
    try {
      for (const name of LAYOUT) await sandbox.makeDirectory(name)
      await workspace.update(markUpdated)
    } catch (error) {
      await sandbox.close()
      throw error
    }
    this.#open.add(workspace)
    return { id, path: PATH }
  }

  async cleanup(ws: Workspace): Promise<void> {
    await this.#open.take(ws)?.sandbox.close()
  }

  async instanceOf(ws: Workspace, { signal }: CallOptions = {}): Promise<string> {
    const workspace = this.#open.find(ws)
    try {
      await workspace?.sandbox.stat('', signal === undefined ? {} : { signal })
      return workspace?.sandbox.id ?? GONE
    } catch (error) {
      if (error instanceof SandglassError && ['workspace_closed', 'workspace_lost'].includes(error.code)) return GONE
      throw error
    }
  }

  #optionsOf(policy: WorkspacePolicy): Pick<WorkspaceOptions, 'limits'> {
    refuseUnknown('policy', policy, ['isolated', 'persist', 'maxDiskBytes'])
    const { isolated = false, persist = false, maxDiskBytes = 0 } = policy
    const { isolation } = this.#capabilities
    if (isolated && ['language-only', 'none'].includes(isolation))
      throw new SandglassError(
        'limit_not_enforceable',
        `policy.isolated: the isolation of this engine is ${isolation}; use the engine local or docker`,
      )
    if (persist)
      throw new SandglassError(
        'feature_unavailable',
        'policy.persist: this engine ends a workspace with its files; save outputs as artifacts, or use sg.workspace({ persist, store })',
      )
    if (!Number.isSafeInteger(maxDiskBytes) || maxDiskBytes < 0)
      throw invalid('policy.maxDiskBytes', `${formatValue(maxDiskBytes)} is not a whole number of bytes`)
    if (maxDiskBytes === 0) return {}
    return { limits: { ...this.#options.limits, diskBytes: maxDiskBytes } }
  }

  /** The signal of a call aborts the opening of a workspace, but does not close the open workspace. */
  async #openSandbox(options: WorkspaceOptions, signal: AbortSignal | undefined): Promise<OpenWorkspace['sandbox']> {
    const making = new AbortController()
    const onAbort = (): void => making.abort()
    signal?.addEventListener('abort', onAbort, { once: true })
    if (signal?.aborted === true) onAbort()
    try {
      return await this.#source.workspace({ ...options, signal: making.signal })
    } finally {
      signal?.removeEventListener('abort', onAbort)
    }
  }
}
