import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, link, open, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import { awaitLock, formatPath, makeDirectory, parseBounded } from '../support/index.ts'
import { dirOut, dirRuns, dirSkills, dirWork, metaFileName } from './constants.ts'

/** A staged skill. */
export interface SkillMeta {
  readonly name: string
  /** Relative to the workspace. */
  readonly relPath: string
  /** The SHA-256 that `dirDigest` computes. */
  readonly digest: string
  /** True if it is mounted from the host, and read-only. */
  readonly mounted: boolean
  readonly stagedAt: Date
}

/** An input that was staged. */
export interface InputRecord {
  readonly from: string
  readonly to: string
  /** The name of the artifact, or the path that was found. */
  readonly resolved?: string
  /** The version of the artifact. */
  readonly version?: number
  readonly mode?: string
  readonly timestamp: Date
}

/** A collection by a spec. */
export interface OutputRecord {
  readonly globs: readonly string[]
  readonly savedAs: readonly string[]
  readonly versions: readonly number[]
  readonly limitsHit: boolean
  readonly timestamp: Date
}

/** A record of everything that was staged in a workspace, and collected from it. */
export interface WorkspaceMetadata {
  readonly version: number
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly lastAccess: Date
  readonly skills: Readonly<Record<string, SkillMeta>>
  readonly inputs: readonly InputRecord[]
  readonly outputs: readonly OutputRecord[]
}

const VERSION = 1
const MAX_FILE_BYTES = 16 * 1024 * 1024
/** Bounds the file, because every call adds records. */
const MAX_RECORDS = 1000
const DIRECTORIES = [dirSkills, dirWork, dirRuns, dirOut]
/** The names of drafts of the file, also those of other programs: process, time, counter, random. */
const DRAFT = /^\.metadata\.(?:[1-9]\d*\.\d+\.\d+\.(?:[0-9a-f]{16}|norand)\.)?tmp$/

/** Makes the metadata of a new workspace. */
export function newMetadata(now: Date = new Date()): WorkspaceMetadata {
  return { version: VERSION, createdAt: now, updatedAt: now, lastAccess: now, skills: {}, inputs: [], outputs: [] }
}

/**
 * Makes the missing directories and metadata of a workspace in a directory of the host.
 * @returns the path of each directory by its name, and of the root under `''`.
 * @throws SandglassError `workspace_io`
 */
export async function ensureLayout(root: string): Promise<Readonly<Record<string, string>>> {
  try {
    for (const name of DIRECTORIES) makeDirectory(join(root, name))
  } catch (error) {
    throw metadataError(root, 'could not be laid out', error)
  }
  const isThere = await stat(join(root, metaFileName)).then(
    () => true,
    () => false,
  )
  if (!isThere) await saveMetadata(root, newMetadata())
  return Object.fromEntries(['', ...DIRECTORIES].map((name) => [name, name === '' ? root : join(root, name)]))
}

/**
 * Reads the metadata of a directory of the host; returns new ones if there are none.
 * @throws SandglassError `workspace_io` if they cannot be read, or are damaged: the file is then renamed to `metadata.json.corrupt-…`,
 * which the message names, and the next call returns new ones.
 */
export async function loadMetadata(root: string): Promise<WorkspaceMetadata> {
  const path = join(root, metaFileName)
  let file: FileHandle
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return newMetadata()
    throw metadataError(path, 'could not be read', error)
  }
  // While the file is open, no other file can get its inode number.
  await using read = file
  let bytes: Buffer
  try {
    bytes = await readBounded(read)
  } catch (error) {
    throw metadataError(path, 'could not be read', error)
  }
  try {
    return metadataOf(bytes)
  } catch (error) {
    const aside = await setAside(path, (await read.stat()).ino)
    if (aside === undefined) return await loadMetadata(root)
    throw metadataError(path, `is damaged, and was set aside as ${formatPath(aside)}`, error)
  }
}

async function readBounded(file: FileHandle): Promise<Buffer> {
  const { size } = await file.stat()
  if (size > MAX_FILE_BYTES) throw new RangeError(`it has ${size} bytes; the limit is ${MAX_FILE_BYTES}`)
  return file.readFile()
}

/** Renames a damaged file. Returns undefined if another file has replaced it meanwhile. */
async function setAside(path: string, ino: number): Promise<string | undefined> {
  const aside = `${path}.corrupt-${randomUUID()}`
  try {
    await rename(path, aside)
    if ((await stat(aside)).ino === ino) return aside
    // Put the newer file back, unless an even newer one exists.
    await link(aside, path).catch((error: unknown) => {
      if (errnoOf(error) !== 'EEXIST') throw error
    })
    await rm(aside)
    return undefined
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw metadataError(path, `is damaged, and could not be set aside as ${formatPath(aside)}`, error)
  }
}

/**
 * Writes the metadata of a directory of the host atomically.
 * @throws SandglassError `workspace_io`
 */
export async function saveMetadata(root: string, metadata: WorkspaceMetadata): Promise<void> {
  const path = join(root, metaFileName)
  const [random] =
    randomUUID()
      .replaceAll('-', '')
      .match(/^.{16}/) ?? []
  const draft = join(root, `.metadata.${process.pid}.${process.hrtime.bigint()}.0.${random}.tmp`)
  try {
    await using file = await open(draft, 'wx', 0o644)
    await file.writeFile(metadataText(metadata))
    await file.sync()
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    throw metadataError(path, 'could not be written', error)
  }
}

/**
 * Changes the metadata of a directory of the host, one process at a time.
 * @throws SandglassError `aborted`; the errors of `loadMetadata`, `saveMetadata` and `change`
 */
export async function updateMetadata(
  root: string,
  change: (metadata: WorkspaceMetadata) => WorkspaceMetadata,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<WorkspaceMetadata> {
  const lock = await awaitLock(join(root, '.metadata.lock'), 'exclusive', signal).catch((error: unknown) => {
    if (signal?.aborted === true) throw new SandglassError('aborted', 'the wait for the metadata was aborted')
    throw metadataError(root, 'could not be locked', error)
  })
  try {
    const changed = { ...change(await loadMetadata(root)), updatedAt: new Date() }
    await saveMetadata(root, changed)
    return changed
  } finally {
    lock.release()
  }
}

/** Adds a record to metadata; above the limit, the oldest records are dropped. */
export function withRecord<K extends 'inputs' | 'outputs'>(
  metadata: WorkspaceMetadata,
  kind: K,
  record: WorkspaceMetadata[K][number],
): WorkspaceMetadata {
  return { ...markUpdated(metadata), [kind]: [...metadata[kind], record].slice(-MAX_RECORDS) }
}

/** Sets the times of metadata to now. */
export function markUpdated(metadata: WorkspaceMetadata): WorkspaceMetadata {
  const now = new Date()
  return { ...metadata, updatedAt: now, lastAccess: now }
}

/** The version of an artifact that was last staged to a path; undefined if none was. */
export function pinnedVersion(inputs: readonly InputRecord[], name: string, to: string): number | undefined {
  if (name === '') return undefined
  return inputs.findLast((record) => record.resolved === name && record.to === to && record.version !== undefined)
    ?.version
}

/** True for the name of a draft of the metadata at the root of a workspace. */
export function isMetadataDraft(path: string): boolean {
  return DRAFT.test(path)
}

/** Formats metadata as the text of their file, in snake_case. */
export function metadataText(metadata: WorkspaceMetadata): string {
  const { version, createdAt, updatedAt, lastAccess, skills, inputs, outputs } = metadata
  const skillsOnFile = Object.entries(skills).map(
    ([name, { relPath, digest, mounted, stagedAt }]) =>
      [name, { name, rel_path: relPath, digest, mounted, staged_at: stagedAt }] as const,
  )
  const file = {
    version,
    created_at: createdAt,
    updated_at: updatedAt,
    last_access: lastAccess,
    skills: Object.fromEntries(skillsOnFile),
    inputs: inputs.map(({ timestamp, ...record }) => ({ ...record, ts: timestamp })),
    outputs: outputs.map(({ globs, savedAs, versions, limitsHit, timestamp }) => ({
      globs,
      saved_as: savedAs,
      versions,
      limits_hit: limitsHit,
      ts: timestamp,
    })),
  }
  return `${JSON.stringify(file, null, 2)}\n`
}

const time = z.iso.datetime({ offset: true }).transform((text) => new Date(text))
const count = z.number().int().nonnegative()
const fileShape = z.object({
  version: z.literal(VERSION),
  created_at: time,
  updated_at: time,
  last_access: time,
  skills: z
    .record(
      z.string(),
      z.object({ name: z.string(), rel_path: z.string(), digest: z.string(), mounted: z.boolean(), staged_at: time }),
    )
    .nullish(),
  inputs: z
    .array(
      z.object({
        from: z.string(),
        to: z.string(),
        resolved: z.string().optional(),
        version: count.optional(),
        mode: z.string().optional(),
        ts: time,
      }),
    )
    .nullish(),
  outputs: z
    .array(
      z.object({
        globs: z.array(z.string()).nullish(),
        saved_as: z.array(z.string()).nullish(),
        versions: z.array(count).nullish(),
        limits_hit: z.boolean(),
        ts: time,
      }),
    )
    .nullish(),
})

/** @throws Error that names the invalid field. */
function metadataOf(bytes: Uint8Array): WorkspaceMetadata {
  const parsed = fileShape.safeParse(parseBounded(bytes))
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new Error(`${issue?.path.join('.')}: ${issue?.message}`)
  }
  const { version, created_at, updated_at, last_access, skills, inputs, outputs } = parsed.data
  const skillsRead = Object.entries(skills ?? {}).map(
    ([name, { rel_path, staged_at, ...skill }]) =>
      [name, { ...skill, relPath: rel_path, stagedAt: staged_at }] as const,
  )
  return {
    version,
    createdAt: created_at,
    updatedAt: updated_at,
    lastAccess: last_access,
    skills: Object.fromEntries(skillsRead),
    inputs: (inputs ?? []).map(({ from, to, ts, resolved, version: pinned, mode }) => ({
      from,
      to,
      timestamp: ts,
      ...(resolved === undefined ? {} : { resolved }),
      ...(pinned === undefined ? {} : { version: pinned }),
      ...(mode === undefined ? {} : { mode }),
    })),
    outputs: (outputs ?? []).map(({ globs, saved_as, versions, limits_hit, ts }) => ({
      globs: globs ?? [],
      savedAs: saved_as ?? [],
      versions: versions ?? [],
      limitsHit: limits_hit,
      timestamp: ts,
    })),
  }
}

function metadataError(path: string, what: string, error: unknown): SandglassError {
  return new SandglassError('workspace_io', `${formatPath(path)} ${what}: ${messageOf(error)}`, { cause: error })
}
