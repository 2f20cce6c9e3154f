import { SandglassError } from '../errors/index.ts'
import type { Store } from '../stores/index.ts'
import { WorkspaceLease } from './lease.ts'
import { checkWorkspaceId, parseRecord, readRecord, RECORDS_AREA, type WorkspaceRecord } from './record.ts'
import { StoredTrees } from './stored-trees.ts'

/** The workspaces in a store, sorted by id. */
export async function listStored(store: Store): Promise<readonly WorkspaceRecord[]> {
  const found: WorkspaceRecord[] = []
  for await (const stored of store.records(RECORDS_AREA)) {
    const record = parseRecord(stored, store.name)
    if (exists(record)) found.push(record)
  }
  return found.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

/** @throws SandglassError `workspace_not_found`, `invalid_request` */
export async function findStored(store: Store, id: string): Promise<WorkspaceRecord> {
  const { record } = await readRecord(store, checkWorkspaceId(id))
  if (exists(record)) return record
  throw new SandglassError('workspace_not_found', `${store.name} has no workspace ${JSON.stringify(id)}`)
}

/** Removes a workspace and its checkpoints. @throws SandglassError `workspace_not_found`, `workspace_owned`, `aborted` */
export async function removeStored(store: Store, id: string, signal?: AbortSignal): Promise<WorkspaceRecord> {
  const found = await findStored(store, id)
  const lease = await WorkspaceLease.acquire(store, id, { signal })
  try {
    await lease.update((record) => ({ ...record, tree: null, checkpoints: [] }))
    await new StoredTrees(store, id).clear()
  } finally {
    await lease.release()
  }
  return found
}

function exists({ tree, owner, checkpoints }: WorkspaceRecord): boolean {
  return tree !== null || owner !== null || checkpoints.length > 0
}
