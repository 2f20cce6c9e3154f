import { createHash } from 'node:crypto'
import { traceSpan, withoutSpans } from '../telemetry/index.ts'
import { hashedFile, listHostTree } from '../workspace/index.ts'
import {
  attrExecId,
  attrHostPath,
  attrMountUsed,
  attrTo,
  defaultExecFileMode,
  defaultScriptFileMode,
  spanWorkspaceStageDir,
} from './constants.ts'
import { SandglassError } from '../errors/index.ts'
import type { StageOptions } from './contract.ts'
import { linkInside } from './inside-scripts.ts'
import type { OpenWorkspace } from './open-workspaces.ts'

/** A directory of the host in a workspace. */
export interface StagedTree {
  /** True if it is mounted from the host, and read-only. */
  readonly mountUsed: boolean
  /** The digest that `dirDigest` computes. */
  readonly digest: string
}

/** Options of a staged directory. */
interface TreeOptions extends StageOptions {
  /** True to refuse a path that leads through a link, even if the link appears meanwhile. */
  readonly noLinks?: boolean
}

/** Stages a directory of the host at a path of the workspace. */
export async function stageTree(
  workspace: OpenWorkspace,
  source: string,
  to: string,
  { readOnly = false, allowMount = readOnly, noLinks = false, signal }: TreeOptions = {},
): Promise<StagedTree> {
  if (readOnly && !allowMount)
    throw new SandglassError(
      'limit_not_enforceable',
      'readOnly without allowMount: a copy in the workspace can be changed there, whatever its mode; allow the mount, or leave readOnly out',
    )
  if (readOnly) return mountTree(workspace, source, to, noLinks, signal)
  const attributes = { [attrExecId]: workspace.execId, [attrHostPath]: source, [attrTo]: to, [attrMountUsed]: false }
  return traceSpan(spanWorkspaceStageDir, attributes, () =>
    withoutSpans(() => copyTreeInto(workspace, source, to, noLinks, signal)),
  )
}

async function mountTree(
  workspace: OpenWorkspace,
  source: string,
  to: string,
  noLinks: boolean,
  signal: AbortSignal | undefined,
): Promise<StagedTree> {
  const { path, sha256 = '' } = await workspace.sandbox.addInput(to, source, {
    readOnly: true,
    replace: true,
    noLinks,
    ...(signal === undefined ? {} : { signal }),
  })
  workspace.mounted.set(to, path)
  await linkInside(workspace, path, to, signal)
  return { mountUsed: true, digest: sha256 }
}

async function copyTreeInto(
  workspace: OpenWorkspace,
  source: string,
  to: string,
  noLinks: boolean,
  signal: AbortSignal | undefined,
): Promise<StagedTree> {
  const { files, directories } = await listHostTree(source, signal, noLinks)
  const options = signal === undefined ? {} : { signal }
  for (const path of [to, ...directories.map((below) => `${to}/${below}`)])
    await workspace.sandbox.makeDirectory(path, options)
  const hash = createHash('sha256')
  const entries = files.map(
    (file) =>
      [
        `${to}/${file.path}`,
        {
          stream: hashedFile(file, hash, signal),
          mode: file.isExecutable ? defaultExecFileMode : defaultScriptFileMode,
        },
      ] as const,
  )
  await workspace.sandbox.put(Object.fromEntries(entries), options)
  workspace.mounted.delete(to)
  return { mountUsed: false, digest: hash.digest('hex') }
}
