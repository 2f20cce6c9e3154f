import {
  artifactServiceFromContext,
  checkArtifactName,
  isUserArtifact,
  saveArtifactHelper,
} from '../artifacts/index.ts'
import { SandglassError } from '../errors/index.ts'
import { formatPath, formatValue, refuseUnknown } from '../support/index.ts'
import { findFiles, type FoundFile, mimeTypeOf, readBeginning, textOf } from './content.ts'
import type { FileRef, OutputManifest } from './files-contract.ts'
import { relativeGlobs } from './globs.ts'
import { invalid } from './invalid.ts'
import { withRecord } from './metadata.ts'
import type { OpenWorkspace } from './open-workspaces.ts'
import type { OutputSpec } from './output-spec.ts'

const MiB = 1024 * 1024
const DEFAULTS = { maxFiles: 100, maxFileBytes: 4 * MiB, maxTotalBytes: 64 * MiB }
/** Collected files are in the memory of the host. */
const MAX_LIMIT = 1024 * MiB
const OPTIONS = ['globs', 'maxFiles', 'maxFileBytes', 'maxTotalBytes', 'save', 'nameTemplate', 'inline']

interface ReadFile extends FoundFile {
  readonly data: Uint8Array
  readonly mimeType: string
  readonly truncated: boolean
}

/** Collects files by a spec, and saves them if it says so. */
export async function collectOutputs(
  workspace: OpenWorkspace,
  spec: OutputSpec,
  signal: AbortSignal | undefined,
): Promise<OutputManifest> {
  const { globs, save, nameTemplate, inline, ...limits } = checkSpec(spec)
  if (save && artifactServiceFromContext() === undefined)
    throw invalid('save', 'there is no artifact service here: call this within withArtifactService(service, () => …)')
  const found = await findFiles(workspace, relativeGlobs(globs), { maxFiles: limits.maxFiles, signal })
  const chosen = found.files.slice(0, limits.maxFiles)
  const { files, isOver } = await readFiles(workspace, chosen, limits, { reads: save || inline, signal })
  const cut = files.find(({ truncated }) => truncated)
  if (save && cut !== undefined)
    throw new SandglassError(
      'too_large',
      `${formatPath(cut.path)} has ${cut.size} bytes, more than maxFileBytes (${limits.maxFileBytes}) or maxTotalBytes (${limits.maxTotalBytes}) allows; nothing was saved`,
    )
  if (save) for (const { path } of files) checkSavedName(nameTemplate, path)
  const refs: FileRef[] = []
  for (const { path, size, data, mimeType, truncated } of files) {
    const savedAs = save ? `${nameTemplate}${path}` : ''
    const version = save ? await saveArtifactHelper(savedAs, data, mimeType) : 0
    const content = inline ? textOf(mimeType, data) : ''
    refs.push({ name: path, mimeType, content, savedAs, version, sizeBytes: size, truncated })
  }
  const limitsHit = isOver || found.files.length > chosen.length
  await workspace.update((now) =>
    withRecord(now, 'outputs', {
      globs,
      savedAs: refs.flatMap(({ savedAs }) => (savedAs === '' ? [] : [savedAs])),
      versions: save ? refs.map(({ version }) => version) : [],
      limitsHit,
      timestamp: new Date(),
    }),
  )
  const skipped = found.skipped.map(({ path, message }) => ({ path, message }))
  return { files: refs, limitsHit, skipped }
}

/**
 * Scripts choose the names of files: nothing is saved if one is not a valid name of an artifact, or would make it an artifact of the
 * user, which other sessions share, unless the template says so.
 */
function checkSavedName(nameTemplate: string, path: string): void {
  const name = checkArtifactName(`${nameTemplate}${path}`)
  if (isUserArtifact(name) && !isUserArtifact(nameTemplate))
    throw new SandglassError(
      'invalid_request',
      `${formatPath(path)} would be an artifact of the user; set a nameTemplate, such as out/, or user: if it may be one; nothing was saved`,
    )
}

/** Applies the limits to files, and reads them if their bytes are needed. */
async function readFiles(
  workspace: OpenWorkspace,
  found: readonly FoundFile[],
  { maxFileBytes, maxTotalBytes }: Limits,
  { reads, signal }: { readonly reads: boolean; readonly signal: AbortSignal | undefined },
): Promise<{ readonly files: ReadFile[]; readonly isOver: boolean }> {
  const files: ReadFile[] = []
  let left = maxTotalBytes
  let isOver = false
  for (const { path, size } of found) {
    if (left === 0 && size > 0) return { files, isOver: true }
    const maxBytes = Math.min(maxFileBytes, left)
    // Read one byte more, which shows whether the file has grown since it was listed.
    const data = reads ? await readBeginning(workspace, path, Math.min(maxBytes, size) + 1, signal) : new Uint8Array()
    const length = reads ? data.length : size
    const truncated = Math.max(length, size) > maxBytes
    const kept = data.subarray(0, maxBytes)
    left -= Math.min(length, maxBytes)
    isOver ||= truncated
    files.push({ path, size: Math.max(length, size), data: kept, mimeType: await mimeTypeOf(path, kept), truncated })
  }
  return { files, isOver }
}

type Limits = Record<'maxFiles' | 'maxFileBytes' | 'maxTotalBytes', number>

function checkSpec(spec: OutputSpec): Required<OutputSpec> {
  refuseUnknown('collectOutputs', spec, OPTIONS)
  const { globs, save = false, nameTemplate = '', inline = false } = spec
  if (!Array.isArray(globs) || !globs.every((glob) => typeof glob === 'string'))
    throw invalid('globs', `${formatValue(globs)} is not an array of globs`)
  if (typeof nameTemplate !== 'string') throw invalid('nameTemplate', `${formatValue(nameTemplate)} is not a string`)
  const limits = {
    // 0 stands for an absent field, as in Go.
    maxFiles: spec.maxFiles || DEFAULTS.maxFiles,
    maxFileBytes: spec.maxFileBytes || DEFAULTS.maxFileBytes,
    maxTotalBytes: spec.maxTotalBytes || DEFAULTS.maxTotalBytes,
  }
  for (const [name, value] of Object.entries(limits))
    if (!Number.isSafeInteger(value) || value < 1 || value > MAX_LIMIT)
      throw invalid(name, `${formatValue(value)} is not a whole number from 1 to ${MAX_LIMIT}`)
  return { globs, save, nameTemplate, inline, ...limits }
}
