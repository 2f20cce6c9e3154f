import { pathProblem } from '../executor/index.ts'
import { formatValue } from '../support/index.ts'
import { defaultScriptFileMode } from './constants.ts'
import { findFiles, mimeTypeOf, readBeginning, textOf } from './content.ts'
import type { CallOptions, StageOptions, Workspace, WorkspaceFS } from './contract.ts'
import type { File, InputSpec, OutputManifest, PutFile } from './files-contract.ts'
import { relativeGlobs } from './globs.ts'
import { InputStager } from './inputs.ts'
import { invalid } from './invalid.ts'
import { markUpdated } from './metadata.ts'
import type { OpenWorkspaces } from './open-workspaces.ts'
import { collectOutputs } from './outputs.ts'
import type { OutputSpec } from './output-spec.ts'
import { stageTree } from './stage-tree.ts'

const MAX_COLLECTED_FILES = 1000
const MAX_FILE_BYTES = 4 * 1024 * 1024

/** Files in workspaces of a Sandglass. */
export class SandglassFS implements WorkspaceFS {
  readonly #open: OpenWorkspaces
  readonly #hostDirectories: readonly string[]

  constructor(open: OpenWorkspaces, hostDirectories: readonly string[]) {
    this.#open = open
    this.#hostDirectories = hostDirectories
  }

  async putFiles(ws: Workspace, files: readonly PutFile[], options: CallOptions = {}): Promise<void> {
    const workspace = this.#open.of(ws)
    const entries = files.map(
      ({ path, content, mode = 0 }): [string, { content: Uint8Array | string; mode: number }] => [
        checkPath('path', path),
        // 0 stands for an absent field, as in Go.
        { content, mode: mode === 0 ? defaultScriptFileMode : mode },
      ],
    )
    await workspace.sandbox.put(Object.fromEntries(entries), options)
  }

  async stageDirectory(
    ws: Workspace,
    src: string,
    to: string,
    options: StageOptions = {},
  ): Promise<{ readonly mountUsed: boolean }> {
    const workspace = this.#open.of(ws)
    const { mountUsed } = await stageTree(workspace, src, checkPath('to', to), options)
    await workspace.update(markUpdated)
    return { mountUsed }
  }

  async collect(ws: Workspace, patterns: readonly string[], { signal }: CallOptions = {}): Promise<File[]> {
    const workspace = this.#open.of(ws)
    const { files } = await findFiles(workspace, relativeGlobs(patterns), { maxFiles: MAX_COLLECTED_FILES, signal })
    if (files.length > MAX_COLLECTED_FILES)
      throw invalid('patterns', `more than ${MAX_COLLECTED_FILES} files match; use collectOutputs, which has limits`)
    const collected: File[] = []
    for (const { path, size } of files) {
      const data = await readBeginning(workspace, path, MAX_FILE_BYTES, signal)
      const mimeType = await mimeTypeOf(path, data)
      const content = textOf(mimeType, data)
      const sizeBytes = Math.max(size, data.length)
      collected.push({ name: path, content, data, mimeType, sizeBytes, truncated: sizeBytes > data.length })
    }
    return collected
  }

  async stageInputs(ws: Workspace, specs: readonly InputSpec[], { signal }: CallOptions = {}): Promise<void> {
    const workspace = this.#open.of(ws)
    const stager = new InputStager(workspace, this.#hostDirectories, signal)
    for (const spec of specs) await stager.stage(spec)
    await workspace.update(markUpdated)
  }

  async collectOutputs(ws: Workspace, spec: OutputSpec, { signal }: CallOptions = {}): Promise<OutputManifest> {
    const workspace = this.#open.of(ws)
    return collectOutputs(workspace, spec, signal)
  }
}

/** @throws SandglassError `invalid_request` */
function checkPath(field: string, path: unknown): string {
  const problem = typeof path === 'string' ? pathProblem(path) : 'it is not a string'
  if (typeof path === 'string' && problem === undefined) return path
  throw invalid(field, `${formatValue(path)} is not a path in the workspace: ${problem}`)
}
