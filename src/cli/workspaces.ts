import { storeInDirectory } from '../artifacts/index.ts'
import { findStored, listStored, removeStored, type WorkspaceRecord } from '../persistence/index.ts'
import type { Given } from './args.ts'
import type { Context } from './context.ts'
import { EXIT } from './exit-codes.ts'
import { UsageError } from './failure.ts'
import { countText } from '../support/index.ts'
import { whenText } from './figures.ts'
import { nameText } from './foreign-text.ts'
import { storeDirectory } from './store-directory.ts'
import { table } from './table.ts'

/** `sandglass workspaces`: the files of workspaces in the store of this machine. Resolves to the exit code. */
export async function workspaces(given: Given, context: Context): Promise<number> {
  const [word, id, ...more] = given.positionals
  const store = storeInDirectory(storeDirectory(given, context.env))
  let found: readonly WorkspaceRecord[]
  if (word === 'list' && id === undefined) found = await listStored(store)
  else if (word === 'show' && id !== undefined && more.length === 0) found = [await findStored(store, id)]
  else if (word === 'rm' && id !== undefined && more.length === 0)
    found = [await removeStored(store, id, context.signal)]
  else
    throw new UsageError('invalid_request', 'workspaces needs list, show ID or rm ID; see sandglass workspaces --help')
  if (given.has('--json')) for (const one of found) await context.stdout.line(workspaceLine(one))
  else await context.stdout.write(found.length === 0 ? 'no workspaces in this store\n' : tableOf(found))
  return EXIT.ok
}

/** A workspace as one line of JSON (docs/cli.md). */
function workspaceLine({ id, tree, owner }: WorkspaceRecord): Record<string, unknown> {
  return {
    v: 1,
    type: 'workspace',
    id,
    files: tree?.files ?? 0,
    bytes: tree?.bytes ?? 0,
    owner: owner === null ? null : { pid: owner.process?.pid ?? null, seen_at: owner.renewedAt },
    synced_at: tree?.at ?? null,
  }
}

function tableOf(found: readonly WorkspaceRecord[]): string {
  const rows = found.map(({ id, tree, owner }) => [
    nameText(id),
    countText(tree?.files ?? 0),
    `${countText(tree?.bytes ?? 0)} B`,
    tree === null ? 'never' : whenText(tree.at),
    owner === null ? '-' : `process ${owner.process?.pid ?? '?'}, seen ${whenText(owner.renewedAt)}`,
  ])
  return table(['WORKSPACE', 'FILES', 'SIZE', 'SYNCED (UTC)', 'OWNER'], rows)
}
