import { SandglassError } from '../errors/index.ts'
import type { Workspace as SandboxWorkspace } from '../options/index.ts'
import { formatValue } from '../support/index.ts'
import { withoutSpans } from '../telemetry/index.ts'
import { metaFileName } from './constants.ts'
import type { Workspace } from './contract.ts'
import { invalid } from './invalid.ts'
import { metadataText, newMetadata, type WorkspaceMetadata } from './metadata.ts'

/** The time limit of a write of the metadata's view: a script may have put a slow file in its place. */
const VIEW_MS = 5000

/** A workspace of an engine, and its state on the host. */
export class OpenWorkspace {
  readonly id: string
  readonly execId: string
  readonly path: string
  readonly sandbox: SandboxWorkspace
  /** Directories that are mounted from the host, and read-only: the path in the workspace, and where programs really find it. */
  readonly mounted: Map<string, string> = new Map()
  #metadata: WorkspaceMetadata = newMetadata()
  #view: Promise<void> = Promise.resolve()

  constructor(id: string, execId: string, path: string, sandbox: SandboxWorkspace) {
    this.id = id
    this.execId = execId
    this.path = path
    this.sandbox = sandbox
  }

  /** The host's own copy, which nothing in the sandbox can change. */
  get metadata(): WorkspaceMetadata {
    return this.#metadata
  }

  /** Changes the metadata, and writes a view of them into the workspace. A script may overwrite the view; it is never read. */
  async update(change: (metadata: WorkspaceMetadata) => WorkspaceMetadata): Promise<void> {
    this.#metadata = change(this.#metadata)
    this.#view = this.#view.then(() => this.#writeView())
    await this.#view
  }

  async #writeView(): Promise<void> {
    const files = { [metaFileName]: metadataText(this.#metadata) }
    const options = { signal: AbortSignal.timeout(VIEW_MS) }
    await withoutSpans(() => this.sandbox.put(files, options)).catch(() => undefined)
  }
}

/** The workspaces of one engine that were not cleaned up. */
export class OpenWorkspaces {
  readonly #open = new Map<string, OpenWorkspace>()

  add(workspace: OpenWorkspace): void {
    this.#open.set(workspace.id, workspace)
  }

  /** Removes a workspace from the list; returns undefined if there is none. */
  take(ws: Workspace): OpenWorkspace | undefined {
    const found = this.find(ws)
    this.#open.delete(ws.id)
    return found
  }

  find({ id }: Workspace): OpenWorkspace | undefined {
    return this.#open.get(id)
  }

  /** @throws SandglassError `workspace_closed`, `invalid_request` */
  of(ws: Workspace): OpenWorkspace {
    if (typeof ws?.id !== 'string') throw invalid('ws', `${formatValue(ws)} is not a workspace`)
    const found = this.find(ws)
    if (found !== undefined) return found
    throw new SandglassError(
      'workspace_closed',
      `the workspace ${formatValue(ws.id)} was cleaned up, or belongs to another engine; create another one`,
    )
  }
}
