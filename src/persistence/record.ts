import { createHash } from 'node:crypto'
import { z } from 'zod'
import { SandglassError } from '../errors/index.ts'
import { formatValue, parseBounded } from '../support/index.ts'
import type { Store, StoreRecord } from '../stores/index.ts'

/** A state of all files of a workspace: the digest of its manifest, and the totals. */
export interface TreeState {
  readonly sha256: string
  readonly files: number
  readonly bytes: number
  /** The time of the state, ISO 8601. */
  readonly at: string
}

/** The state of a checkpoint. */
export interface CheckpointState extends TreeState {
  readonly id: string
}

/** The owner of a workspace. */
export interface WorkspaceOwnerState {
  /** Unique to this owner. */
  readonly token: string
  /** By the clock of the owner, which may be wrong. */
  readonly renewedAt: string
  /** Its process; null if its machine cannot identify processes. */
  readonly process: OwnerProcess | null
}

/** Identifies a process. Other machines have other boot ids. */
export interface OwnerProcess {
  readonly boot: string
  readonly namespace: string
  readonly pid: number
  readonly start: string
}

/** The state of a workspace in a store. */
export interface WorkspaceRecord {
  readonly id: string
  /** The number of owners so far. */
  readonly generation: number
  readonly owner: WorkspaceOwnerState | null
  /** Null before the first synchronisation, and after a removal. */
  readonly tree: TreeState | null
  readonly checkpoints: readonly CheckpointState[]
}

/** The area of the records of workspaces. */
export const RECORDS_AREA = 'workspaces'
/** Maximum number of checkpoints of a workspace; a new one replaces the oldest. */
export const MAX_CHECKPOINTS = 100

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
const sha256 = z.string().regex(/^[0-9a-f]{64}$/)
const count = z.int().nonnegative()
const text = z.string().max(256)
const tree = { sha256, files: count, bytes: count, at: z.iso.datetime() }

const SHAPE = z.object({
  v: z.literal(1),
  id: z.string().regex(ID),
  generation: count,
  owner: z
    .object({
      token: text,
      renewed_at: z.iso.datetime(),
      process: z.object({ boot: text, namespace: text, pid: count, start: text }).nullable(),
    })
    .nullable(),
  tree: z.object(tree).nullable(),
  checkpoints: z.array(z.object({ id: text, ...tree })).max(MAX_CHECKPOINTS),
})

/** @throws SandglassError `invalid_request` for an invalid id. */
export function checkWorkspaceId(id: unknown): string {
  if (typeof id === 'string' && ID.test(id)) return id
  throw new SandglassError(
    'invalid_request',
    `${formatValue(id)} cannot be the id of a workspace: use 1 to 128 letters, digits, ., _ and -, a letter or digit first`,
  )
}

/** The area of the content of one workspace. No other workspace shares it, so its owner may remove unused content. */
export function areaOf(id: string): string {
  return `workspace-${digestOf(id)}`
}

/** The state of a workspace, and the tag to change it; a workspace that never existed has no tag. @throws SandglassError `store_damaged` */
export async function readRecord(
  store: Store,
  id: string,
): Promise<{ readonly record: WorkspaceRecord; readonly tag: string | undefined }> {
  const found = await store.read(RECORDS_AREA, digestOf(id))
  if (found === undefined)
    return { record: { id, generation: 0, owner: null, tree: null, checkpoints: [] }, tag: undefined }
  const record = parseRecord(found, store.name)
  if (record.id === id) return { record, tag: found.tag }
  throw new SandglassError(
    'store_damaged',
    `${store.name} returned the record of another workspace for ${formatValue(id)}`,
  )
}

/** @returns the new tag, or undefined if the record has another state by now. */
export function writeRecord(
  store: Store,
  { id, generation, owner, tree, checkpoints }: WorkspaceRecord,
  tag: string | undefined,
): Promise<string | undefined> {
  const onDisk = {
    v: 1,
    id,
    generation,
    owner: owner === null ? null : { token: owner.token, renewed_at: owner.renewedAt, process: owner.process },
    tree,
    checkpoints,
  }
  return store.write(RECORDS_AREA, digestOf(id), JSON.stringify(onDisk), tag)
}

/** @throws SandglassError `store_damaged` for a record that Sandglass did not write. */
export function parseRecord({ key, text }: StoreRecord, store: string): WorkspaceRecord {
  const parsed = SHAPE.safeParse(parseJson(text))
  if (!parsed.success) {
    throw new SandglassError(
      'store_damaged',
      `${store} has a record that does not describe a workspace, ${key}: remove it, or update Sandglass`,
      { cause: parsed.error },
    )
  }
  const { id, generation, owner, tree, checkpoints } = parsed.data
  return {
    id,
    generation,
    owner: owner === null ? null : { token: owner.token, renewedAt: owner.renewed_at, process: owner.process },
    tree,
    checkpoints,
  }
}

function digestOf(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 32)
}

function parseJson(text: string): unknown {
  try {
    return parseBounded(text)
  } catch {
    return undefined
  }
}
